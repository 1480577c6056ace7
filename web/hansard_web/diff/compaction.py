"""What the model was sent before a compaction and after it (DF-03).

A compaction is a step that says so (a coding agent's own, a fold of a transcript, a checkpoint), a
call that ended with one, or any call that continues an earlier one with messages left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from hansard_collector.derived_context.context import place_call, says_something
from hansard_compiler.errors import NotFoundError
from hansard_store.content.messages import CallRow, list_calls
from hansard_store.runs.queries import get_run
from hansard_store.steps.queries import StepSkeleton, get_step

_SAYS_SO = re.compile(r"compact|compress|checkpoint|\bfold", re.IGNORECASE)
# Of these the name is a program's own word: a tool may well compress images.
_OTHER_ROLES = frozenset({"llm", "embedding", "tool", "mcp", "retriever", "compile"})


class NoCompactionError(NotFoundError):
    """A step that is no compaction, or has no call on one side of it."""

    code = "no_compaction"

    def __init__(self, step_id: str) -> None:
        super().__init__("compaction at step", step_id)


@dataclass(frozen=True, slots=True)
class _CompactionSides:
    """The step, and the model calls (by step id) before and after it."""

    step_id: str
    before: str
    after: str


def compaction_sides(connection: apsw.Connection, step_id: str, *, now_ns: int) -> _CompactionSides:
    """Return the calls on either side; raises NotFoundError, NoCompactionError or AmbiguousId."""
    step = get_step(connection, step_id, now_ns=now_ns)
    found = find_compaction(connection, step, now_ns=now_ns)
    if found is None:
        raise NoCompactionError(step.step_id)
    return found


def find_compaction(
    connection: apsw.Connection, step: StepSkeleton, *, now_ns: int
) -> _CompactionSides | None:
    """Return the calls before and after a compaction; None where a step is none."""
    run = get_run(connection, step.run_id, now_ns=now_ns)
    calls = [one for one in list_calls(connection, run.id) if says_something(one)]
    if says_compaction(step):
        return _around(step, calls)
    own = next((one for one in calls if one.span == step.id), None)
    if own is None:
        return None
    if own.finish_reason == "compaction":
        after = next((one for one in calls if one.sort_ns > own.sort_ns), None)
        return (
            None if after is None else _CompactionSides(step.step_id, step.step_id, after.step_id)
        )
    return _fallen_back(connection, step, run.id, run.conversation_id)


def says_compaction(step: StepSkeleton) -> bool:
    """Return whether a step is named as a compaction, a fold or a checkpoint."""
    return step.role not in _OTHER_ROLES and _SAYS_SO.search(step.span_name) is not None


def _around(step: StepSkeleton, calls: Sequence[CallRow]) -> _CompactionSides | None:
    """Return the last call that began before the step, and the first that began after its end."""
    end = step.end_ns or step.sort_ns
    before = [one for one in calls if one.sort_ns < step.sort_ns]
    after = [one for one in calls if one.sort_ns >= end]
    if not before or not after:
        return None
    return _CompactionSides(step.step_id, before[-1].step_id, after[0].step_id)


def _fallen_back(
    connection: apsw.Connection, step: StepSkeleton, run: int, conversation_id: str | None
) -> _CompactionSides | None:
    """Return a call and the one it continues, where it was sent fewer of the messages."""
    placed = place_call(connection, run=run, span=step.id, conversation_id=conversation_id)
    if placed is None or placed.baseline is None:
        return None
    sent = {one.match_hash for one in placed.messages}
    dropped = [one for one in placed.baseline_messages if one.match_hash not in sent]
    if not dropped or len(placed.messages) >= len(placed.baseline_messages):
        return None
    return _CompactionSides(step.step_id, placed.baseline.step_id, step.step_id)
