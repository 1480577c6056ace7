"""How statements are made in four languages: success, failure, negation, doubt, intent, reports.

These are words of languages and of no domain: what tools are about comes from data sets. A text in
another language is not understood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

LANGUAGES: Final = ("en", "de", "fr", "es")
_NEITHER: Final = "other"

# What identifies a language: words that stand in nearly every sentence of it and rarely in others.
_FUNCTION_WORDS: Final[Mapping[str, str]] = {
    "en": """the a an is are was were has have had been be and or not but with for to of in on at
        i we you it this that they all no now my your there from by as did do does will would can
        could should which after before still every""",
    "de": """der die das ein eine einen ist sind war waren hat habe haben wurde wurden und oder
        nicht aber mit für zu von im am ich wir sie es dieser alle kein keine jetzt noch wird
        werden auf aus den dem des dass wenn falls läuft laufen
        funktioniert funktionieren erfolgreich""",
    "fr": """le la les un une des est sont était a ont été et ou ne pas mais avec pour du dans au
        je nous vous il elle ce cette tous toutes aucun maintenant l' d' j' n' qu' c' s' que si sur
        bien sans fonctionne fonctionnent""",
    "es": """el la los las un una es son fue fueron era ha he han sido y o no pero con para de del
        en al yo nosotros se este esta todos todas ningún ahora ya que si por lo más sin
        funciona funcionan éxito""",
    _NEITHER: """il gli lo uno è non sono ho che di tutti i della nel os um uma foi não em todas
        com às het een ik heb niet zijn van de voor jag har och inte är att det en på jeg ikke og
        er af w nie jest są się wszystkie na z do bir ve için değil bu všechny je to va nu este
        sunt și alle kaikki on ei ja minden az""",
}

_SUCCESS: Final[Mapping[str, str]] = {
    "en": """succeed|succeeds|succeeded; was|were|is|are|has|have ~ successful; successful;
        completed|finished|ended|ran|runs|executed|done ~ successfully; successfully
        completed|finished|ran|executed|applied|deployed;
        completed|finished|ended|ran|runs|done|passed|exited|exits without
        any? error|errors|problem|problems|issue|issues|failure|failures;
        completed|finished|ran|exited|applied cleanly; went through; worked; works; working;
        work; healthy; operational; operating normally; functional; reliable; up and running;
        running fine|smoothly|normally|again; responding; responds normally|fine|again; fully
        functional; in good health|order; back up; back online; completed; finished""",
    "de": """erfolgreich; erfolgreich abgeschlossen|beendet|durchgelaufen; ohne
        fehler|probleme|fehlern|problemen; funktioniert; funktionieren; funktionierte; geklappt;
        klappt; klappte; ist gesund; läuft wieder; läuft einwandfrei|fehlerfrei|stabil|gut; in
        ordnung; gelungen; abgeschlossen; durchgelaufen""",
    "fr": """a|ont|est|sont|avait ~ réussi|réussie|réussis|réussies; réussit; réussissent; avec
        succès; sans erreur|erreurs|problème|problèmes; fonctionne; fonctionnent; fonctionnait; a
        fonctionné; marche; opérationnel|opérationnelle; terminé|terminée|terminés|terminées""",
    "es": """fue|es|está|ha sido|son ~ exitoso|exitosa|exitosos|exitosas; con éxito; exitosamente;
        sin errores|error|problemas; funciona; funcionan; funcionó; funcionaba; correctamente;
        terminó; completó; operativo|operativa; completado|completada""",
}
# These say that something is well only after a form of "to be", or a colon.
_WEAK_SUCCESS: Final[Mapping[str, str]] = {
    "en": "ok; okay; fine; up; stable; available; good; green; clean; online; live; normal; done",
    "de": "ok; okay; gesund; stabil; erreichbar; grün; verfügbar",
    "fr": "ok; stable; disponible; vert|verte|verts; au vert; sain|saine",
    "es": "ok; estable; disponible; verde|verdes; en verde; sano|sana",
}
_FAILURE: Final[Mapping[str, str]] = {
    "en": """fail; fails; failed; failing; timed out; times out; crashed; crashes; crashing;
        errored; broke; threw an? error|exception; returned an? error; returns an? error; ended
        with an? error|errors; unsuccessful; did not succeed|work|complete; aborted""",
    "de": """fehlgeschlagen; schlug ~ fehl; schlagen ~ fehl; schlägt ~ fehl; schlugen ~ fehl;
        gescheitert; scheitert; scheiterte; abgebrochen; abgestürzt; schiefgegangen""",
    "fr": """a|ont ~ échoué; échoue; échouent; échouait; planté; a planté; en échec; en erreur""",
    "es": """falló; fallo; falla; fallan; fallaron; ha|han ~ fallado; fracasó; está|están
        fallando""",
}
_WEAK_FAILURE: Final[Mapping[str, str]] = {
    "en": "broken; down; red; unhealthy; unavailable; unreliable; unresponsive; offline; dead",
    "de": "kaputt; rot; defekt; nicht erreichbar; unerreichbar; ungesund; offline",
    "fr": "cassé|cassée|cassés; en panne; rouge|rouges; indisponible; au rouge",
    "es": "roto|rota|rotos|rotas; caído|caída; rojo|rojos; indisponible; en rojo",
}
# A success that is denied is no failure here: what has not finished may still succeed.
_UNDENIABLE: Final[Mapping[str, str]] = {
    "en": "completed finished done up",
    "de": "abgeschlossen durchgelaufen",
    "fr": "terminé terminée terminés terminées",
    "es": "terminó completó completado completada",
}
_NEGATIONS: Final[Mapping[str, str]] = {
    "en": """not; no longer; never; none; neither; nor; no; zero; not yet; not all; not every;
        hardly; barely; rarely; without; nothing""",
    "de": """nicht; nicht mehr; noch nicht; nie; niemals; kein; keine; keiner; keines; keinen; nicht
        alle; kaum""",
    "fr": """ne; n'; pas; plus; jamais; aucun; aucune; ne ~ pas|plus|jamais; n' ~ pas|plus|jamais;
        pas encore; pas tous|toutes""",
    "es": "no; nunca; jamás; ningún; ninguna; ninguno; ya no; aún no; todavía no; no todos|todas",
}
# Before a subject they say that there is none: none that fails is a success.
_NONE: Final[Mapping[str, str]] = {
    "en": "no zero none neither",
    "de": "kein keine keiner keines keinen",
    "fr": "aucun aucune",
    "es": "ningún ninguna ninguno",
}
_DOUBTS: Final[Mapping[str, str]] = {
    "en": """should; would; could; may; might; ought; probably; perhaps; maybe; possibly;
        presumably; likely; apparently; seemingly; allegedly; supposedly; hopefully; seem; seems;
        seemed; appear; appears; appeared; look|looks|looked like; look|looks good|fine; i|we
        think; i|we believe; i|we guess; i|we assume; i|we suspect; i|we hope; i|we expect; i|we
        wish; i|we doubt; as far as; assume; assuming; not sure; unsure; unclear; unknown whether;
        can not say|tell|confirm|verify; could not verify|confirm; expected to; expect; in theory;
        theoretically; almost; nearly; supposed to; potentially; in principle; ideally; i
        imagine; suggests; suggest; indicates; mostly; partly; partially; kind of; sort of;
        pretend; pretending; imagine; hypothetically; untested; unverified; not verified; not
        tested; approximately; not think|believe|guess|assume; not true|correct|right that;
        false|untrue|wrong that; not the case; far from""",
    "de": """sollte; sollten; soll; sollen; könnte; könnten; dürfte; dürften; müsste; müssten;
        würde; würden; wäre; wären; wahrscheinlich; vielleicht; vermutlich; möglicherweise;
        anscheinend; scheinbar; offenbar; angeblich; hoffentlich; scheint; scheinen; ich|wir
        glaube|glauben; ich|wir denke|denken; ich|wir hoffe|hoffen; ich nehme an; vermute; wohl;
        eventuell; fast; beinahe; theoretisch; teilweise; unklar; nicht wahr|richtig; stimmt nicht;
        falsch; glaube|denke nicht""",
    "fr": """devrait; devraient; pourrait; pourraient; serait; seraient; peut être; peut-être;
        probablement; sans doute; apparemment; semble; semblent; semblait; je crois; je pense;
        j' espère; je suppose; il paraît; éventuellement; presque; en théorie; censé; censés;
        censée; on dirait; supposé; pas vrai|exact; faux que; aimerais; aimerions; voudrais;
        souhaite""",
    "es": """debería; deberían; podría; podrían; sería; serían; quizá; quizás; tal vez;
        probablemente; posiblemente; aparentemente; parece; parecen; creo; pienso; espero;
        supongo; a lo mejor; casi; en teoría; supuestamente; tendría|tendrían; no es cierto|verdad;
        falso que; quisiera; gustaría; no creo""",
}
_PLANS: Final[Mapping[str, str]] = {
    "en": """will; shall; going to; gonna; let me; let us; need to; needs to; need; needs; want to;
        wants; want; have to; has to; must; plan to; plans to; planning to; the plan; to make sure;
        make sure; making sure; ensure; ensures; to ensure; to confirm; to verify; to check; to
        see; wait for; wait until; waiting for; retry; goal; the aim; todo; to do; so that;
        please; would like; try to; tries to; trying to; in order to; then i; next; first i;
        afterwards; later; tomorrow; soon; about to; can; remember to; intend; intends; requires;
        require; required; requirement; acceptance criteria; definition of done;
        verify that|whether;
        check that|whether; confirm that|whether; you can; so it; be sure;
        aiming; remaining; pending; expects; proposal; propose; suggest; let""",
    "de": """werde; werden; will; wollen; wird; muss; müssen; lass; lasst; lassen sie; bitte; um zu;
        damit; sicherstellen; stelle sicher; stell sicher; als nächstes; danach; dann; plane;
        planen; ziel; morgen; später; kann; können; möchte; möchten; versuche; versuchen; bis""",
    "fr": """vais; va; allons; vont; vérifier; assurer; il faut; faut; doit; doivent; veux;
        voulons; pour que; afin; ensuite; puis; prochaine; demain; peux; pouvez; s'il vous plaît;
        objectif; jusqu' à; essayer; essaie; assure; assurez; je vérifierai""",
    "es": """voy a; vamos a; va a; van a; hay que; tengo que; tenemos que; debe; deben; quiero;
        queremos; para que; asegurar; asegúrate; verificar; después; luego; siguiente; mañana;
        puedo; puede; puedes; por favor; objetivo; hasta; intentar; intento; intenta""",
}
_CONDITIONS: Final[Mapping[str, str]] = {
    "en": """if; when; whenever; unless; in case; whether; provided; as long as; only if; once;
        until; till; even if; suppose; supposing; otherwise; depending; as soon as; except; but
        one|two|three|for; apart from; only; without the|this|that|my|our""",
    "de": "wenn; falls; sobald; sofern; ob; solange; bis; außer; vorausgesetzt; ansonsten",
    "fr": "si; s' il|ils|elle|elles; quand; lorsque; dès que; à condition; tant que; sauf; sinon",
    "es": "si; cuando; en caso; siempre que; a menos; mientras; una vez; salvo; en cuanto",
}
# They begin a clause about another time; the clause after the next comma is free of them.
_SUBORDINATE: Final[Mapping[str, str]] = {
    "en": "after; before; while; since; although; though; because; whereas; as; prior to",
    "de": "nachdem; bevor; während; seit; obwohl; weil; da; ehe; als",
    "fr": "après; avant; pendant; depuis; bien que; parce que; car; alors que; comme",
    "es": "después; antes; mientras; desde; aunque; porque; ya que; puesto que; como",
}
_REPORTS: Final[Mapping[str, str]] = {
    "en": """said; says; say; saying; claim; claims; claimed; claiming; stated; states; state that;
        report that; reports; reported; reporting; wrote; writes; writing; mention; mentions;
        mentioned; according; told; tells; heard; announced; announces; argues; insists; insisted;
        thinks; believes; asserts; quoted; quote; documented; readme; documentation; promised;
        read that; reads; he; she; their; his; her; prints; expected output""",
    "de": """sagte; sagt; sagen; behauptet; behauptete; laut; meldet; meldete; berichtet;
        berichtete; schrieb; schreibt; meint; zufolge; er; ihnen; gemeldet; angekündigt""",
    "fr": """dit; disent; disait; affirme; affirment; selon; indique; rapporte; écrit; prétend;
        d' après; signale; annonce; ils; elle""",
    "es": """dijo; dice; dicen; afirma; afirman; según; indica; informó; informa; escribió;
        menciona; reporta; reportó; anuncia; él; ella""",
}
_OTHER_TIMES: Final[Mapping[str, str]] = {
    "en": """used to; yesterday; last week|night|month|year|time|run; previously; earlier;
        originally; formerly; initially; back then; at first; at the time; in the past; ago; the
        day before; on monday|tuesday|wednesday|thursday|friday|saturday|sunday; for
        example|instance; historically; the first attempt|run|try; the previous; the old; the
        original; the last time; elsewhere; locally; on my|your|his|her|their|another|the other;
        in my|your|his|their; for you|me|him|her|them; upstream; simulated; example; in an|the
        example""",
    "de": """gestern; letzte woche|nacht; vorher; früher; zuvor; ursprünglich; damals; zunächst;
        anfangs; zum beispiel; beispielsweise; lokal; bei dir; bei mir""",
    "fr": """hier; la semaine dernière; auparavant; avant cela; précédemment; à l' origine;
        autrefois; initialement; d' abord; par exemple; localement""",
    "es": """ayer; la semana pasada; anteriormente; antes; originalmente; al principio; en su
        momento; por ejemplo; localmente""",
}
# Between a subject and what is said of it: forms of to be, to have and to do, and adverbs.
_FILLERS: Final[Mapping[str, str]] = {
    "en": """is are was were be been being am has have had do does did now again all also still
        both just finally currently indeed already fully completely it they everything each and
        then really consistently always actually correctly properly quickly that which the tool
        server tools command function api service here run runs job back get gets got keep keeps
        kept continue continues very perfectly once more today since fine well just-now clearly
        definitely certainly verified confirmed too only yet quite so step call calls""",
    "de": """ist sind war waren wurde wurden hat haben jetzt wieder alle auch noch nun endlich
        bereits vollständig es sie alles und tatsächlich immer mehr sehr gut einwandfrei
        werkzeug tool dienst worden sich derzeit aktuell leider immer nur mit schon""",
    "fr": """est sont était a ont été maintenant tous toutes aussi encore enfin déjà tout et
        toujours de nouveau nouveau bien très désormais actuellement s' outil service à se""",
    "es": """es son fue fueron era está están ha han sido ahora todos todas también ya por fin
        todo y siempre de nuevo nuevo bien muy correctamente actualmente se herramienta servicio
        lo""",
}
_BE: Final[Mapping[str, str]] = {
    "en": "is are was were be been am : remain remains remained stays looks gets got became runs",
    "de": "ist sind war waren : bleibt bleiben läuft steht stehen",
    "fr": "est sont était été : reste restent",
    "es": "es son fue está están : sigue siguen quedó",
}
# After them come the words of a place or circumstance, which say nothing of the outcome.
_PREPOSITIONS: Final[Mapping[str, str]] = {
    "en": "to in on for of from into with against at over through via by under within",
    "de": "in im auf für von mit nach gegen über zum zur aus bei am an der des",
    "fr": "de du des dans sur en pour vers avec au aux par d'",
    "es": "de del en para con al a por sobre desde",
}
# What makes "it works" something else: "works by hashing", "passes the folder to it".
_OBJECTS: Final[Mapping[str, str]] = {
    "en": """a an the them it by like through him her this these those his its their your my our
        arguments values data how together closely around best only similar differently""",
    "de": "indem durch wie",
    "fr": "par comme en",
    "es": "mediante como por",
}
_SELF: Final[Mapping[str, str]] = {
    "en": "i we",
    "de": "ich wir",
    "fr": "je j' nous",
    "es": "he hemos yo nosotros",
}
# Who else does something: "the customer updated the ticket" says nothing of our tool.
_PASSIVE: Final[Mapping[str, str]] = {
    "en": "is are was were been",
    "de": "wurde wurden ist sind worden",
    "fr": "été est sont",
    "es": "sido fue fueron está están",
}
_UNABLE: Final[Mapping[str, str]] = {
    "en": """could not; can not; unable to; not able to; failed to; not possible to; was|were
        unable to; did not manage to; not manage to; failed in""",
    "de": "konnte ~ nicht; kann ~ nicht; konnten ~ nicht; nicht möglich; nicht gelungen",
    "fr": "n' ai pas pu; n' avons pas pu; impossible de; n' a pas pu; ne peux pas; pas réussi à",
    "es": "no pude; no pudimos; no he podido; no puedo; no se pudo; no fue posible; no logré",
}
_PLAN_HEADINGS: Final = (
    "plan", "next", "todo", "to do", "to-do", "goal", "remaining", "open", "steps", "acceptance",
    "requirement", "criteria", "checklist", "task", "expected", "example", "instruction", "how to",
    "should", "will", "must", "before merging", "nächste", "ziel", "offen", "aufgabe", "prochaines",
    "à faire", "objectif", "reste", "siguiente", "próximo", "objetivo", "pendiente", "quote",
    "original", "readme", "proposal", "idea", "if ", "when ", "previous", "before",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Language:
    """The words of one language, by what they do in a statement."""

    name: str
    success: tuple[str, ...]
    weak_success: tuple[str, ...]
    failure: tuple[str, ...]
    weak_failure: tuple[str, ...]
    undeniable: frozenset[str]
    negations: tuple[str, ...]
    none: frozenset[str]
    doubts: tuple[str, ...]
    plans: tuple[str, ...]
    conditions: tuple[str, ...]
    subordinate: tuple[str, ...]
    reports: tuple[str, ...]
    other_times: tuple[str, ...]
    fillers: frozenset[str]
    be: frozenset[str]
    prepositions: frozenset[str]
    objects: frozenset[str]
    self: frozenset[str]
    passive: frozenset[str]
    unable: tuple[str, ...]


@cache
def language(name: str) -> Language:
    """Return the words of one of LANGUAGES."""
    return Language(
        name=name,
        success=_phrases(_SUCCESS[name]),
        weak_success=_phrases(_WEAK_SUCCESS[name]),
        failure=_phrases(_FAILURE[name]),
        weak_failure=_phrases(_WEAK_FAILURE[name]),
        undeniable=_words(_UNDENIABLE[name]),
        negations=_phrases(_NEGATIONS[name]),
        none=_words(_NONE[name]),
        doubts=_phrases(_DOUBTS[name]),
        plans=_phrases(_PLANS[name]),
        conditions=_phrases(_CONDITIONS[name]),
        subordinate=_phrases(_SUBORDINATE[name]),
        reports=_phrases(_REPORTS[name]),
        other_times=_phrases(_OTHER_TIMES[name]),
        fillers=_words(_FILLERS[name]),
        be=_words(_BE[name]),
        prepositions=_words(_PREPOSITIONS[name]),
        objects=_words(_OBJECTS[name]),
        self=_words(_SELF[name]),
        passive=_words(_PASSIVE[name]),
        unable=_phrases(_UNABLE[name]),
    )


def language_of(
    words: Sequence[str], *, usual: Callable[[], str | None] = lambda: None
) -> str | None:
    """Return the language of words, lower case; None for one that is not known.

    Function words tell it. Where none stands in it, it is that of the rest of the text (`usual`),
    or English if all of its letters are ASCII.
    """
    counts = dict.fromkeys(_FUNCTION, 0)
    for word in filter(_WORD_LANGUAGES.__contains__, words):
        for name in _WORD_LANGUAGES[word]:
            counts[name] += 1
    best = max(counts.values())
    if best:
        # Of equal ones the first: English, which short statements of programs are in.
        found = next(name for name, count in counts.items() if count == best)
        return None if found == _NEITHER else found
    if (other := usual()) is not None:
        return other
    return "en" if all(word.isascii() for word in words) else None


def is_of_plans(heading: str) -> bool:
    """Return whether what is under a heading is intended, shown or required, and not so."""
    return any(word in heading for word in _PLAN_HEADINGS)


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase for one in text.split(";") if (phrase := " ".join(one.split())))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FUNCTION: Final = {name: _words(text) for name, text in _FUNCTION_WORDS.items()}
_WORD_LANGUAGES: Final[Mapping[str, tuple[str, ...]]] = {
    word: tuple(name for name, known in _FUNCTION.items() if word in known)
    for words in _FUNCTION.values()
    for word in words
}
