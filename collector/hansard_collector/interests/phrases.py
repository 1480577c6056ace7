"""The offline extractor of topics: phrases that several entries share, ranked.

A candidate is a run of up to four words that says something (common words end it). Its words may
stand in another order elsewhere: "linking corrections" is "correction linking". What counts is in
how many entries it stands; a phrase within longer ones counts as far as it stands alone (C-value:
Frantzi, Ananiadou and Mima, "Automatic recognition of multi-word terms", 2000).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hansard_collector.interests.topics import MOST_TOPICS, Entry, Topic, roots
from hansard_compiler.words import is_dense

# Words that say nothing of a topic: they end a phrase, and are none.
#
# Function words of several languages, and the verbs, adverbs and general nouns of English in which
# notes about any subject are written. No word of a field of work ends a phrase.

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


NAME: Final = "phrases/1"
_LONGEST: Final = 4  # words of a phrase
_MOST_STEMS: Final = 5
_LEAST_ENTRIES: Final = 2  # that a topic is in
_LEAST_OF_WORD: Final = 3  # entries that a single word is in
_SINGLE_SHARE: Final = 0.4  # what a single word counts beside a phrase
_LOOSE_SHARE: Final = 0.5  # what an entry counts with a phrase's words apart, in one sentence
_AGAIN_SHARE: Final = 0.4  # what it counts that a phrase stands in another place of an entry
_SUBJECT_SHARE: Final = 0.5  # more for what is the subject of a record
_OVERLAP_PCT: Final = 50  # of the words of two topics: with as many they are one
_MOST_COMPARED: Final = 400  # phrases
_MOST_CHARACTERS: Final = 120_000  # of all entries: more take seconds
_LONGEST_DENSE: Final = 8  # characters of a phrase of a script without spaces

_REMOVED: Final = re.compile(r"[‹<\[]\s*(?:redacted|withheld)[^›>\]]*[›>\]]", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_BREAK: Final = re.compile(r"[^\w\s'’.&-]|\.(?=\s|$)|\s[-–—]\s")
# A word with what it is made of: hyphens, apostrophes and dots within.
_TOKEN: Final = re.compile(r"[^\W_]+(?:[-'’._][^\W_]+)*")
_NOT_A_WORD: Final = re.compile(r"[\d.,:%-]+|(?=.*\d)[0-9a-f-]{7,}|.*\d{4,}.*|.+\.\w{1,4}")
_EDGE: Final = re.compile(r"\w{3,}(?:ed|ly)")  # begins and ends no phrase: "quickly", "delayed"

Key = frozenset[str]
Sentence = tuple[int, int]  # an entry and its sentence; 0 is the subject
Position = tuple[int, int, int]  # an entry, its sentence, and a clause in it


class _Word(NamedTuple):
    surface: str
    stems: tuple[str, ...]
    is_either: bool


@dataclass(slots=True)
class _Phrase:
    """One set of words that occurs together somewhere."""

    key: Key
    surfaces: dict[str, int] = field(default_factory=dict)
    places: set[Position] = field(default_factory=set)
    is_subject: bool = False

    def add(self, surface: str, position: Position, *, is_subject: bool) -> None:
        """Count one occurrence."""
        self.surfaces[surface] = self.surfaces.get(surface, 0) + 1
        self.places.add(position)
        self.is_subject |= is_subject

    @property
    def entries(self) -> set[int]:
        return {entry for entry, _, _ in self.places}

    @property
    def surface(self) -> str:
        """How it is mostly written; of equals the first."""
        return max(self.surfaces, key=self.surfaces.__getitem__)


@dataclass(frozen=True, slots=True)
class PhraseExtractor:
    """Finds topics by counting; the same on every machine."""

    name: str = NAME

    def __call__(self, entries: Sequence[Entry], /, *, limit: int = MOST_TOPICS) -> list[Topic]:
        """Return topics that two entries or more share, each with those entries."""
        phrases, apart = _read(_shown(entries))
        supported = {
            phrase.key: found
            for phrase in phrases.values()
            if _is_repeated(phrase, found := _entries_of(phrase, apart))
        }
        weights = _heaviest(
            {key: _weight(phrases[key], found) for key, found in supported.items()}, phrases
        )
        ranked = sorted(
            ((_score(phrases[key], weights), key) for key in weights),
            key=lambda one: (-one[0], phrases[one[1]].surface),
        )
        chosen: list[Key] = []
        for score, key in ranked:
            if score <= 0 or len(chosen) == limit:
                break
            if not any(_are_one(key, other) for other in chosen):
                chosen.append(key)
        return [
            Topic(phrases[key].surface, [entries[at].memory_id for at in sorted(supported[key])])
            for key in chosen
        ]


# ---- what counts


def _is_repeated(phrase: _Phrase, entries: set[int]) -> bool:
    """Return whether a phrase is more than a remark: in several entries, or twice in one."""
    if len(phrase.key) == 1:
        return len(entries) >= _LEAST_OF_WORD
    return len(entries) >= _LEAST_ENTRIES or len(phrase.places) >= _LEAST_ENTRIES


def _entries_of(phrase: _Phrase, apart: Mapping[str, set[Sentence]]) -> set[int]:
    """Return the entries that have a phrase's words in one sentence, together or apart."""
    if len(phrase.key) == 1:
        return phrase.entries
    places = sorted((apart[stem] for stem in phrase.key), key=len)
    if len(places[0]) == 1:
        return phrase.entries  # one of its words stands in no other sentence
    return phrase.entries | {entry for entry, _ in set.intersection(*places)}


def _heaviest(weights: Mapping[Key, float], phrases: Mapping[Key, _Phrase]) -> dict[Key, float]:
    """Return the phrases that are compared with each other: so many that it stays quick."""
    if len(weights) <= _MOST_COMPARED:
        return dict(weights)

    def order(key: Key) -> tuple[float, str]:
        return -weights[key] * len(key), phrases[key].surface

    return {key: weights[key] for key in sorted(weights, key=order)[:_MOST_COMPARED]}


def _weight(phrase: _Phrase, entries: set[int]) -> float:
    strict = len(phrase.entries)
    again = min(1, len(phrase.places) - strict)
    return strict + _LOOSE_SHARE * (len(entries) - strict) + _AGAIN_SHARE * again


def _score(phrase: _Phrase, weights: Mapping[Key, float]) -> float:
    longer = [weight for key, weight in weights.items() if phrase.key < key]
    alone = weights[phrase.key] - (math.fsum(longer) / len(longer) if longer else 0.0)
    share = _SINGLE_SHARE if len(phrase.key) == 1 else math.log2(1 + len(phrase.key))
    return alone * share * (1 + _SUBJECT_SHARE * phrase.is_subject)


def _are_one(a: Key, b: Key) -> bool:
    common = len(a & b)
    return common > 0 and (
        common == min(len(a), len(b)) or 100 * common >= _OVERLAP_PCT * len(a | b)
    )


# ---- reading


def _shown(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that are read: of very many those that come first, the newest."""
    shown, left = [], _MOST_CHARACTERS
    for one in entries:
        left -= len(one.text)
        if left < 0:
            break
        shown.append(one)
    return shown


def _read(entries: Sequence[Entry]) -> tuple[dict[Key, _Phrase], dict[str, set[Sentence]]]:
    """Return the phrases of entries, and in which sentences each stem occurs."""
    phrases: dict[Key, _Phrase] = {}
    apart: dict[str, set[Sentence]] = defaultdict(set)
    for at, entry in enumerate(entries):
        sentences = [entry.subject, *_SENTENCE.split(_REMOVED.sub(" | ", entry.content))]
        for number, sentence in enumerate(sentences):
            for clause, run in enumerate(_runs(sentence)):
                for word in run:
                    for stem in word.stems:
                        apart[stem].add((at, number))
                for gram in _grams(run):
                    if len(gram) == 1 and not number:
                        continue  # the subject of a record by itself: a category, and no topic
                    key = frozenset(stem for word in gram for stem in word.stems)
                    surface = " ".join(word.surface for word in gram)
                    phrase = phrases.setdefault(key, _Phrase(key))
                    phrase.add(surface, (at, number, clause), is_subject=not number)
    return phrases, apart


def _runs(sentence: str) -> Iterator[list[_Word]]:
    """Yield the runs of words with content."""
    for clause in _BREAK.split(sentence):
        run: list[_Word] = []
        for found in _TOKEN.finditer(clause):
            word = _word(found[0], is_first=found.start() == 0)
            if word is not None:
                run.append(word)
            elif run:
                yield run
                run = []
        if run:
            yield run


def _word(token: str, *, is_first: bool) -> _Word | None:
    """Return a word, in small letters unless it is a name; None for one without content."""
    token = re.sub(r"['’]s$", "", token)
    low = token.lower()
    if low in COMMON or _NOT_A_WORD.fullmatch(low):
        return None
    stems = tuple(roots(token))
    if not stems or (is_dense(stems[0]) and len(token) > _LONGEST_DENSE):
        return None
    is_name = any(map(str.isupper, token[1:])) or any(map(str.isdigit, token))
    is_title = token[:1].isupper() and not is_first
    return _Word(token if is_name or is_title else low, stems, low in EITHER)


def _grams(run: Sequence[_Word]) -> Iterator[Sequence[_Word]]:
    """Yield the phrases of a run: those that begin and end with a noun, as far as is known."""
    for begin in range(len(run)):
        for end in range(begin + 1, min(begin + _LONGEST, len(run)) + 1):
            gram = run[begin:end]
            edges = (gram[0].surface, gram[-1].surface)
            stems = {stem for word in gram for stem in word.stems}
            if any(map(_EDGE.fullmatch, edges)) or len(stems) > _MOST_STEMS:
                continue
            if not all(word.is_either for word in gram):
                yield gram
