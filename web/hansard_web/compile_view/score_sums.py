"""A score as a sum on paper: each term with value, weight and points, all decimals in line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hansard_web.compile_view.result import (
    Breakdown,
    Term,
    decimal,
    places_of,
    value_text,
    weight_text,
)

_PLACES: Final = 9  # points are billionths
_LEAST: Final = 3
_ZERO_PCT: Final = 25.0  # where the bars begin; what is subtracted goes to the left of it


@dataclass(frozen=True, slots=True)
class TermRow:
    """One line of the sum, with its bar."""

    name: str
    value: str
    weight: str
    points: str
    is_zero: bool
    css: str
    x_pct: float
    width_pct: float


@dataclass(frozen=True, slots=True)
class Sum:
    """A score, written out."""

    rows: tuple[TermRow, ...]
    nothing: tuple[str, ...]  # names of the terms that add nothing
    total: str
    is_exact: bool  # the terms add up to the total
    adds_up_to: str  # what they add up to where they do not


def sum_of(breakdown: Breakdown) -> Sum:
    """Lay out a breakdown; every figure is exact."""
    amounts = [term.points for term in breakdown.terms]
    shown = places_of([*amounts, breakdown.total], _PLACES, least=_LEAST)
    largest = max([1, *map(abs, amounts)])
    counted = [term for term in breakdown.terms if term.points]
    return Sum(
        rows=tuple(_row(term, shown, largest) for term in counted),
        nothing=tuple(_name(term) for term in breakdown.terms if not term.points),
        total=decimal(breakdown.total, _PLACES, shown),
        is_exact=breakdown.sum == breakdown.total,
        adds_up_to=decimal(
            breakdown.sum, _PLACES, places_of([breakdown.sum], _PLACES, least=shown)
        ),
    )


def _row(term: Term, shown: int, largest: int) -> TermRow:
    share = abs(term.points) / largest
    is_negative = term.points < 0
    width = share * (_ZERO_PCT if is_negative else 100 - _ZERO_PCT)
    sign = "" if is_negative else "+"
    return TermRow(
        name=_name(term),
        value=value_text(term),
        weight=weight_text(term),
        points=sign + decimal(term.points, _PLACES, shown),
        is_zero=not term.points,
        css="neg" if is_negative else "pos",
        x_pct=round(_ZERO_PCT - width if is_negative else _ZERO_PCT, 2),
        width_pct=round(width, 2),
    )


def _name(term: Term) -> str:
    return term.name.replace("_", " ")
