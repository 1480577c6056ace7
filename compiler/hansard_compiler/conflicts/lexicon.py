"""Words the contradiction detector knows, by the part they play in a statement: `lexicon.toml`.

English only: a text in another language states nothing here, so nothing of it is ever dropped.
"""

from __future__ import annotations

import tomllib
from typing import Any, Final

with open(__file__.removesuffix(".py") + ".toml", "rb") as _file:
    _LEXICON: Final[dict[str, Any]] = tomllib.load(_file)


def _words(name: str) -> frozenset[str]:
    return frozenset(_LEXICON["words"][name].split())


def _phrases(name: str) -> list[list[str]]:
    return [phrase.split() for phrase in _LEXICON["phrases"][name].split(",")]


def _pairs(name: str) -> dict[str, str]:
    return dict(_phrases(name))


COPULAS: Final = _words("copulas")
PAST_COPULAS: Final = _words("past_copulas")
ARTICLES: Final = _words("articles")
DEFINITE: Final = _words("definite")
UNRESOLVED: Final = _words("unresolved")
INDEFINITE: Final = _words("indefinite")
HEDGES: Final = _words("hedges")
APPROXIMATE: Final = _words("approximate")
FILLERS: Final = _words("fillers")
NEGATIONS: Final = _words("negations")
AUXILIARIES: Final = _words("auxiliaries")
MODALS: Final = _words("modals")
PREPOSITIONS: Final = _words("prepositions")
LIMITS: Final = _words("limits")
FUNCTIONAL: Final = frozenset(map(tuple, _phrases("functional")))
NAMING: Final = _words("naming")
STATIVE: Final = _words("stative")
PLURAL: Final = _words("plural")
ONCE: Final = _words("once")
PAST: Final = _words("past")
SCHEDULED: Final = _words("scheduled")
ATTRIBUTES: Final = _words("attributes")
MEASURED: Final = _words("measured")
SHARED: Final = _words("shared")
SEVERAL: Final = SHARED - _words("said_once") | _words("listed")
DIMENSIONS: Final = _words("dimensions")
SINGLING: Final = _words("singling")
CONFIGURED: Final = _words("configured")
CONFIGURED_PAIRS: Final = frozenset(map(tuple, _phrases("configured_pairs")))
SETTING: Final = frozenset(map(tuple, _phrases("setting")))
# A place may lie in the other one: `lives in Norway`, `lives in Oslo`.
PLACED: Final = frozenset(pair for pair in FUNCTIONAL if pair[1] == "in" and pair[0] != "written")
FLAGS: Final = _words("flags")
TRANSIENT: Final = _words("transient")
IDENTIFYING: Final = _words("identifying")
PARTS: Final = _words("parts")
REFERENCES: Final = _words("references")
WHICH: Final = _words("which")
VARIED: Final = _words("varied")
POINTED_TO: Final = _words("pointed_to")
QUALITIES: Final = _words("qualities")
RECORDED: Final = _words("recorded") | set(map(" ".join, _phrases("recorded")))
NUMBERS: Final = {word: int(number) for word, number in _pairs("numbers").items()}
DAYS: Final = {
    name + end: number
    for number, name in enumerate(_LEXICON["words"]["days"].split())
    for end in ("", "s")
}
MONTHS: Final = {
    name: number for number, names in enumerate(_phrases("months"), 1) for name in names
}
UNITS: Final[dict[str, tuple[str, float]]] = {
    word: (dimension, factor)
    for dimension, units in _LEXICON["units"].items()
    for factor, words in units
    for word in words.split()
}
MULTIPLIERS: Final = {word: float(times) for word, times in _pairs("multipliers").items()}
OPPOSITES: Final = _pairs("opposites")
AFFIRMED: Final = frozenset(
    {"mandatory", "permitted"}
)  # mapped to the word itself, not its opposite
GROUPS: Final = {word: name for name, words in _LEXICON["groups"].items() for word in words.split()}
ADJECTIVE_ENDINGS: Final = tuple(_LEXICON["words"]["adjective_endings"].split())
LINKS: Final = _words("links")
OBLIGING: Final = _words("obliging")
JOINING: Final = COPULAS | ARTICLES | FILLERS | APPROXIMATE | AUXILIARIES | _words("joining")
ORDINALS: Final = _words("ordinals")
FIRST_PERSON: Final = _words("first_person")
PLURALS: Final = _pairs("plurals")
IRREGULAR: Final = _pairs("irregular") | PLURALS
CIRCUMSTANCES: Final = _words("circumstances")
# A sentence with none of these states nothing that could be compared.
DISTINCTIVE: Final = (COPULAS | STATIVE | MODALS | NAMING | LIMITS | NEGATIONS) - {"one"}
