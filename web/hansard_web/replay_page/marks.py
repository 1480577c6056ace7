"""What steps and runs say of replays: the way to them, and that a replay made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_store.ids import short_id
from hansard_store.replays import ReplayRow, list_replays, replay_that_made
from hansard_store.steps.queries import StepSkeleton

_ROLES: Final = ("llm", "embedding", "compile")
_MOST: Final = 50


@dataclass(frozen=True, slots=True)
class MadeBy:
    """The replay that made a step or a run."""

    say: str
    short_id: str
    href: str
    source_href: str


@dataclass(frozen=True, slots=True)
class ReplayMark:
    """Of a step: where it is replayed, how often it was, and whether a replay made it."""

    href: str | None = None  # None: its kind cannot be replayed
    count: int = 0
    made_by: MadeBy | None = None


def replay_mark(connection: apsw.Connection, step: StepSkeleton) -> ReplayMark:
    """Return what a step says of replays."""
    made_by = replay_that_made(connection, step.run_id)
    can = step.role in _ROLES
    made = list_replays(connection, step_id=step.step_id, limit=_MOST, cursor=None) if can else None
    return ReplayMark(
        f"/replay/{step.step_id}" if can else None,
        0 if made is None else len(made.items),
        None if made_by is None else made_by_words(made_by),
    )


def made_by_words(row: ReplayRow) -> MadeBy:
    """Return a replay as what it made names it."""
    kind = {
        "exact": "an exact replay",
        "mutated": "a replay with changes",
        "forward": "a replay from a step on",
    }.get(row.mode, "a replay")
    return MadeBy(
        f"{kind}, answered from the recording" if row.is_recorded else kind,
        short_id(row.replay_id),
        f"/replays/{row.replay_id}",
        f"/steps/{row.source_step_id}",
    )


def runs_made(rows: Sequence[ReplayRow]) -> set[str]:
    """Return the runs that replays made."""
    return {row.run_id for row in rows if row.run_id is not None}
