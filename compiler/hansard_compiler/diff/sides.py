"""One side of a comparison of compiles, whatever it was read from.

A side comes from a compile just made, from its stored result, or from rows of a store that has the
receipts only. What a source does not tell is None, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hansard_compiler.compile.engine import CompileResult
from hansard_compiler.compile.models import CompilationRequest, Json


class ScoreTerm(NamedTuple):
    """One term of a score: value in millionths, weight in thousandths, points in billionths."""

    value: int
    weight: int
    points: int


@dataclass(frozen=True, slots=True)
class ItemSide:
    """What one compile did with one item. Scores are billionths of a point."""

    item_id: str
    kind: str | None
    decision: str
    reason: str
    pass_name: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    score: int | None = None
    terms: Mapping[str, ScoreTerm] = field(default_factory=dict)
    section: str | None = None
    source: str | None = None
    rule_ids: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()  # `rule:fingerprint` of what was cut out of it
    related: str | None = None
    missed_tokens: int | None = None
    missed_score: int | None = None
    original_ref: str | None = None
    final_ref: str | None = None

    @property
    def is_sent(self) -> bool:
        return self.decision != "exclude"


@dataclass(frozen=True, slots=True)
class CompileSide:
    """One compile: its items in the order of their receipts, and what it spent."""

    hash: str | None
    provider: str | None
    model: str | None
    items: tuple[ItemSide, ...]
    budget: Mapping[str, int | None] = field(default_factory=dict)  # budget reserve available …
    by_class: Mapping[str, int] = field(default_factory=dict)
    by_section: Mapping[str, int] = field(default_factory=dict)
    request: CompilationRequest | None = None  # where it is here, and whole enough to be read


def side_of_result(result: CompileResult) -> CompileSide:
    """Return a compile that was just made."""
    return side_of_context(result.context().plain(), request=result.request)


def side_of_context(
    context: Mapping[str, Any], *, request: CompilationRequest | None = None
) -> CompileSide:
    """Return a compile from its result as it is stored; fields that are no such thing are None."""
    decisions = [one for one in _list(context.get("decisions")) if isinstance(one, Mapping)]
    allocation = _mapping(context.get("token_allocation"))
    return CompileSide(
        hash=_text(context.get("compile_hash")),
        provider=_text(context.get("provider")),
        model=_text(context.get("model")),
        items=tuple(_item(one) for one in decisions if isinstance(one.get("item_id"), str)),
        budget={name: _int(allocation.get(name)) for name in BUDGET},
        by_class=_ints(allocation.get("by_class")),
        by_section=_ints(allocation.get("by_section")),
        request=request,
    )


BUDGET = ("budget", "reserve", "available", "used", "free")


def terms_of(breakdown: Any) -> dict[str, ScoreTerm]:
    """Return the terms of a score as they are stored; what is no term is left out."""
    found = {}
    for name, one in _mapping(breakdown).items():
        parts = (
            [_int(one.get(part)) for part in ScoreTerm._fields] if isinstance(one, Mapping) else []
        )
        if parts and None not in parts:
            value, weight, points = parts
            found[name] = ScoreTerm(value or 0, weight or 0, points or 0)
    return found


def _item(one: Mapping[str, Any]) -> ItemSide:
    breakdown: Json = _mapping(one.get("score_breakdown"))
    return ItemSide(
        item_id=str(one["item_id"]),
        kind=_text(one.get("kind")),
        decision=_text(one.get("decision")) or "",
        reason=_text(one.get("reason_code")) or "",
        pass_name=_text(one.get("pass_name")),
        tokens_before=_int(one.get("original_tokens")),
        tokens_after=_int(one.get("final_tokens")),
        score=_int(breakdown.get("score")),
        terms=terms_of(breakdown),
        section=_text(one.get("section")),
        source=_text(one.get("source")),
        rule_ids=_texts(one.get("rule_ids")),
        removed=_texts(one.get("removed")),
        related=_text(one.get("related_item_id")),
        missed_tokens=_int(one.get("missed_by_tokens")),
        missed_score=_int(one.get("missed_by_score")),
        original_ref=_text(one.get("original_ref")),
        final_ref=_text(one.get("final_ref")),
    )


# ---- a stored result is JSON that anybody may have sent


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in _list(value) if isinstance(one, str))


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _ints(value: Any) -> dict[str, int]:
    known = ((name, _int(one)) for name, one in _mapping(value).items())
    return {name: one for name, one in known if one is not None}
