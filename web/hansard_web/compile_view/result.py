"""The stored result of a compile, as far as pages need it: what receipts in rows do not hold.

It is JSON that anybody may have sent under its digest: every part is checked where it is read, and
what does not fit is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from hansard_compiler.compile.passes.score import TERMS
from hansard_compiler.compile.reasons import ReasonCode

Json = Mapping[str, Any]
_MICRO_PLACES: Final = 6
_MILLI_PLACES: Final = 3
_MOST_REMOVED: Final = 100


@dataclass(frozen=True, slots=True)
class ResultTerm:
    """One addend of a score: `value x weight = points`, in millionths, thousandths, billionths."""

    name: str
    value: int
    weight: int
    points: int


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A score in billionths of a point, with its terms as reported."""

    terms: tuple[ResultTerm, ...]
    total: int

    @property
    def sum(self) -> int:
        return sum(term.points for term in self.terms)


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of the prompt, with the ids of its items in the order in which they stand."""

    name: str
    hash: str
    tokens: int
    item_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PassCount:
    """How many items a pass saw, and its counts by decision."""

    name: str
    seen: int
    reasons: Mapping[str, int]


_POSSIBLE: Final = f"{ReasonCode.POSSIBLE_CONFLICT}:"  # as a receipt's note begins to say it


@dataclass(frozen=True, slots=True)
class CompileResultView:
    """A stored result; empty where none is here."""

    ref: str = ""
    size: int = 0  # bytes
    sections: tuple[_Section, ...] = ()
    passes: Mapping[str, PassCount] = field(default_factory=dict)
    by_class: Mapping[str, int] = field(default_factory=dict)
    counter: str = ""
    scorer: str = ""  # what rated relevance, with its version
    rendered: Any = None
    decisions: Mapping[str, Json] = field(default_factory=dict)  # as reported, by item id

    def note(self, item_id: str) -> str:
        return _text(self.decisions.get(item_id, {}).get("notes"))

    @property
    def doubtful(self) -> tuple[str, ...]:
        """The items that are included although another included one may contradict them."""
        return tuple(one for one in self.decisions if _POSSIBLE in self.note(one))

    def removed(self, item_id: str) -> tuple[str, ...]:
        """Return what was cut out of an item, as `rule:fingerprint`."""
        value = self.decisions.get(item_id, {}).get("removed")
        return tuple(map(_text, _list(value)[:_MOST_REMOVED]))

    def breakdown(self, item_id: str) -> Breakdown | None:
        """Return the terms of an item's score; None where it has none, or none is reported."""
        value = _map(self.decisions.get(item_id, {}).get("score_breakdown"))
        total = value.get("score")
        if type(total) is not int:
            return None
        names = [name for name in TERMS if name in value]
        names += [name for name in value if name not in TERMS and name != "score"]
        terms = [_term(name, _map(value[name])) for name in names]
        return Breakdown(tuple(one for one in terms if one is not None), total)


NO_RESULT: Final = CompileResultView()


def read_result(data: bytes, ref: str) -> CompileResultView | None:
    """Return what stored bytes tell; None where they are no result of a compile."""
    document = any_json(data)
    if not isinstance(document, dict) or not isinstance(document.get("decisions"), list):
        return None
    allocation = _map(document.get("token_allocation"))
    passes = [one for one in map(_pass, _list(document.get("passes"))) if one is not None]
    return CompileResultView(
        ref=ref,
        size=len(data),
        sections=tuple(_sections(_list(document.get("layout")))),
        passes={one.name: one for one in passes},
        by_class=_counts(allocation.get("by_class")),
        counter=_text(allocation.get("counter")),
        scorer=_text(document.get("scorer")),
        rendered=document.get("rendered_payload"),
        decisions={
            one["item_id"]: one
            for one in document["decisions"]
            if isinstance(one, dict) and isinstance(one.get("item_id"), str)
        },
    )


def any_json(data: bytes) -> Any:
    """Return what JSON holds, also with the infinities that Python writes; None for no JSON."""
    with suppress(ValueError):
        return orjson.loads(data)
    with suppress(ValueError, RecursionError):
        return json.loads(data)
    return None


def _sections(values: Sequence[Any]) -> Iterator[_Section]:
    for one in map(_map, values):
        if name := _text(one.get("name")):
            ids = tuple(each for each in _list(one.get("item_ids")) if isinstance(each, str))
            yield _Section(name, _text(one.get("hash")), _number(one.get("tokens")), ids)


def _pass(value: Any) -> PassCount | None:
    one = _map(value)
    name = _text(one.get("name"))
    if not name:
        return None
    return PassCount(name, _number(one.get("seen")), _counts(one.get("reasons")))


def _term(name: str, fields: Json) -> ResultTerm | None:
    amounts = [fields.get(key) for key in ("value", "weight", "points")]
    value, weight, points = amounts
    if type(value) is not int or type(weight) is not int or type(points) is not int:
        return None
    return ResultTerm(name, value, weight, points)


def decimal(amount: int, places: int, shown: int) -> str:
    """Return a whole number of 10^-places as a decimal with `shown` places, which must suffice."""
    sign = "−" if amount < 0 else ""
    whole, rest = divmod(abs(amount), 10**places)
    digits = f"{rest:0{places}d}"[:shown]
    return f"{sign}{whole}.{digits}" if shown else f"{sign}{whole}"


def places_of(amounts: Sequence[int], places: int, *, least: int) -> int:
    """Return how many decimals show all of some numbers of 10^-places to the last digit."""
    digits = [f"{abs(amount) % 10**places:0{places}d}".rstrip("0") for amount in amounts]
    return max([least, *map(len, digits)])


def value_text(term: ResultTerm) -> str:
    shown = places_of([term.value], _MICRO_PLACES, least=2)
    return decimal(term.value, _MICRO_PLACES, shown)


def weight_text(term: ResultTerm) -> str:
    shown = places_of([term.weight], _MILLI_PLACES, least=2)
    return decimal(term.weight, _MILLI_PLACES, shown)


def _map(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def _counts(value: Any) -> dict[str, int]:
    return {key: one for key, one in _map(value).items() if type(one) is int}
