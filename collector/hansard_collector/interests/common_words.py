"""Words that say nothing of a topic: they end a phrase, and are none.

Function words of several languages, and the verbs, adverbs and general nouns of English in which
notes about any subject are written. No word of a field of work ends a phrase.
"""

from __future__ import annotations

from typing import Final

_FUNCTION: Final = """
a about above across after again against ago all almost alone along already also although always am
among an and another any anybody anyone anything anyway are aren't around as at away back be became
because become becomes been before began behind being below beside besides between beyond both but
by came can can't cannot could couldn't despite did didn't do does doesn't doing don't done down due
during each either else enough especially etc even ever every everybody everyone everything except
far few fewer for former from further get gets getting go goes going gone got had hadn't has hasn't
have haven't having he hence her here hers herself him himself his how however i if in indeed inside
instead into is isn't it its it's itself just kept last later latter least less let like likely
little lots many may maybe me meanwhile might mine more moreover most mostly much must my myself
near nearly neither never nevertheless next no nobody none nor not nothing now nowhere of off often
ok on once one ones only onto or other others otherwise our ours ourselves out outside over own per
perhaps quite rather re really said same say says see seem seemed seems seen several shall she
should shouldn't since so some somebody someone something sometimes somewhere soon still such take
taken takes than that that's the their theirs them themselves then there therefore these they
they're thing things this those though through throughout thus till to today together tomorrow
tonight too toward towards twice under unless unlike until up upon us use used useful user's uses
using usually various versus very via vs was wasn't we well went were weren't what whatever when
whenever where whereas wherever whether which while who whoever whole whom whose why will with
within without won't would wouldn't yes yesterday yet you your yours yourself aber als am an auch
auf aus bei bis das dass dem den der des die durch ein eine einem einen einer eines er es für hat
haben ich im in ist kein keine mit nach nicht noch nur oder sich sie sind so über um und uns vom von
vor war waren was wenn werden wie wir wird zu zum zur au aux avec ce ces cette dans de des du elle
en est et il ils je la le les leur lui mais ne nous on ou par pas plus pour qui que sa se ses son
sont sur un une vous al como con cuando de del desde donde el ella en entre era es esta este fue ha
hay la las le lo los más no nos o para pero por que se sin sobre su sus también un una y ya
"""
_VERBS: Final = """
accept accepted accepts add added adding adds agree agreed agrees allow allowed allows apply applied
applies ask asked asking asks avoid avoided avoids bring brings brought building built call called
calling calls caused changed changing checked checking choose chooses chose chosen cleaned closed
come comes complete completed confirm confirmed confirms consider considered contain contained
contains continue continued create created creates creating decide decided decides deciding discuss
discussed dropped enable enabled ended ensure ensured explain explained expect expected expects fail
failed failing fails find finding finds finish finished fixed fixing follow followed follows found
gave give given gives happen happened happens helped hold holds improve improved improves include
included includes including increased keep keeping keeps know known knows leave leaves left looked
looking lose lost made make makes making marked mean means meant mentioned miss missed moved moving
needed noted offered opened opens pass passed passes picked planned prefer preferred prefers prevent
prevented produce produced produces propose proposed provide provided provides put puts ran reached
reading reduce reduced remain remained remains remember remove removed removes removing replace
replaced replaces reported require required requires resolve resolved returned running save saved
saves seek send sending sends sent setting showed showing shown started starting stay stays stopped
stored suggest suggested suggests supported surface surfaced surfaces switched talked tell tells
tested testing think thought tighten told took tracked tried tries trust try trying turned
understand updated updating verify verified verifies waited want wanted wants worked working worth
writing written wrong wrote introduce introduced introduces describe described describes handle
handled handles handling catch catches caught compare compared compares comparing detect detected
detects extract extracted extracts generate generated generates judged linked matched migrate
migrated migrates ordered paid ranked rewrite rewritten scored spend spends treated arrive arrived
arrives bought buy buys grow grown grows hit hits land landed lands measure measured measures pulled
pushed raised rely relies repeat repeated rise rises rose sold shipped sit sits stood sum sums voted
won win wins
"""
_GENERAL: Final = """
able actual actually additional afternoon approach aspect available bad basic best better big bigger
bit briefly carefully certain clear clearly common correct correctly current currently daily day
days decisions different directly early easily easy entire exactly existing explicit extra fast
faster finally fine first fully general good great half hand hard higher hour hours important kind
kinds large larger late latest local longer lot lower main major manual middle minor minute minutes
month monthly months morning name named names new newer night nightly old older original outcome
particular past plain plus poor possible possibly present previous previously probably proper
properly quarter quick quickly ready recent recently relevant right round same second seconds
separate shorter side simple simply single slow slower small smaller special specific stuff sure
third todo total true usual way ways week weekly weeks whole year yearly years zero two three four
five six seven eight nine ten dozen hundred thousand monday tuesday wednesday thursday friday
saturday sunday january february march april june july august september october november december
spring summer autumn winter
"""
_EITHER: Final = """
act address agreement answer area attempt balance block break budget build case cause change charge
check claim clean close command concern contact contract control copy correction cost count cover
cut damage deal decision delay demand design detail difference display draft drop end entries entry
estimate example exchange exit experience export fact feature fight file filter fix flow focus form
full gain group guide help high idea import increase index influence info information input interest
issue item judge label lead level limit line link list load lock log long look loss low mark market
match matter meeting mention merge model monitor move need note notice number offer open option
order output park part pay people permit person pick place plan play point post practice preview
price print problem process profile progress project promise protest proxy pull purchase push
question race raise range rank rate reach read real reason record reference refund refuse release
remark rent repair report request rescue research reserve result return reverse review ride risk
rule run sale sample scale schedule score search sell sense sequence set shape share shift ship
short show sign signal site size sound source split spread stage stand start state status step stop
store stream stress study supply support surge survey switch table tag talk target task taste team
test threshold tie time title touch tour trace track trade train transfer transport trap travel
treat trial trigger trip trouble turn type update upgrade use user value version view visit vote
wait walk wash watch water weight work write yield
"""
COMMON: Final = frozenset(f"{_FUNCTION} {_VERBS} {_GENERAL}".split())
# Verbs and general nouns in one: they say something beside another word, and nothing alone.
EITHER: Final = frozenset(_EITHER.split()) | frozenset(f"{word}s" for word in _EITHER.split())
