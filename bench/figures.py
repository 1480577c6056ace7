"""A figure beside its bar, printed for people or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. `is_met` is None where the number is only there to compare with."""

    what: str
    measured: float
    unit: str
    bar: str = ""  # in words, as the documentation gives it
    is_met: bool | None = None
    note: str = ""


def at_least(what: str, measured: float, unit: str, *, bar: float, note: str = "") -> Figure:
    """A figure that must not be below its bar."""
    return Figure(what, measured, unit, f">= {bar:,g} {unit}", measured >= bar, note)


def below(what: str, measured: float, unit: str, *, bar: float, note: str = "") -> Figure:
    """A figure that must stay below its bar."""
    return Figure(what, measured, unit, f"< {bar:,g} {unit}", measured < bar, note)


def print_figures(figures: Sequence[Figure], *, as_json: bool) -> None:
    """Print figures, one a line."""
    if as_json:
        print(json.dumps([asdict(figure) for figure in figures], indent=2))
        return
    width = max(len(figure.what) for figure in figures)
    for figure in figures:
        verdict = {True: "ok", False: "MISSED", None: ""}[figure.is_met]
        value = f"{_number(figure.measured)} {figure.unit}"
        print(f"{figure.what:<{width}}  {value:>16}  {figure.bar:<18} {verdict:<7} {figure.note}")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
