"""Two runs of the list set side by side: their headline figures and which way they moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import apsw

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.runs.queries import RunItem, get_run
from hansard_web.runs.filters import ListState
from hansard_web.ui import format as figures

_SIDES: Final = ("left", "right")


@dataclass(frozen=True, slots=True)
class Side:
    """A run that was selected."""

    side: str  # "left" or "right"
    name: str
    run_id: str
    started: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """One or two selected runs; with two, what the second needed more or less than the first."""

    sides: tuple[Side, ...]
    deltas: tuple[str, ...]
    clear_url: str


def compare_runs(
    connection: apsw.Connection, state: ListState, *, now_ns: int
) -> Comparison | None:
    """Return the selected runs of a state; those that do not exist are left out."""
    runs = []
    for run_id in state.compare:
        try:
            runs.append(get_run(connection, run_id, now_ns=now_ns))
        except (NotFoundError, AmbiguousIdError):
            continue  # an old address: the run was deleted since
    if not runs:
        return None
    sides = tuple(
        Side(side, run.agent_name or run.name, run.run_id, figures.clock(run.started_ns)[:5])
        for side, run in zip(_SIDES, runs, strict=False)
    )
    deltas = tuple(_deltas(*runs)) if len(runs) == 2 else ()
    return Comparison(sides, deltas, state.comparing(()).url)


def _deltas(left: RunItem, right: RunItem) -> list[str]:
    """Say in words what B took more or less than A; equal and unknown figures say nothing."""
    texts = []
    if left.duration_ns is not None and right.duration_ns is not None:
        change = right.duration_ns - left.duration_ns
        texts.append(_say(change, figures.duration(abs(change)), "longer", "shorter"))
    if left.tokens and right.tokens:
        change = right.tokens.total - left.tokens.total
        texts.append(_say(change, f"{figures.tokens(abs(change))} tokens", "more", "fewer"))
    if left.cost_usd_nano is not None and right.cost_usd_nano is not None:
        change = right.cost_usd_nano - left.cost_usd_nano
        texts.append(_say(change, figures.money(abs(change)), "more", "less"))
    change = right.step_count - left.step_count
    texts.append(_say(change, figures.plural(abs(change), "step"), "more", "fewer"))
    if left.status != right.status:
        texts.append(f"{right.status.replace('_', ' ')} instead of {left.status.replace('_', ' ')}")
    return [text for text in texts if text]


def _say(change: int, amount: str, more: str, less: str) -> str:
    if not change:
        return ""
    return f"{amount} {more if change > 0 else less}"
