"""Which two things a pair of ids names, and their comparison cached while neither changes."""

from __future__ import annotations

import apsw

from hansard_store.errors import InvalidQueryError
from hansard_store.runs.queries import get_run
from hansard_web.diff.runs import RunDiff, Trees, compare_runs
from hansard_web.run_page.geometry import Recent

Comparisons = Recent[RunDiff]
TIMEOUT_MS = 30_000  # reading two runs of 10,000 steps takes some seconds


class MixedSidesError(InvalidQueryError):
    """One id names a run and the other a step."""

    code = "mixed_target_types"

    def __init__(self, left: str, right: str) -> None:
        super().__init__(
            "right",
            f"{left!r} and {right!r} are a run and a step: two runs or two steps can be compared",
        )


def is_step_id(text: str) -> bool:
    """Return whether an id names a step: `<run>-<span>`, or a beginning with the dash in it."""
    return "-" in text


def are_steps(left: str, right: str) -> bool:
    """Return whether both ids name steps; raises MixedSidesError for one of each."""
    if is_step_id(left) != is_step_id(right):
        raise MixedSidesError(left, right)
    return is_step_id(left)


def find_run_diff(
    connection: apsw.Connection,
    left_id: str,
    right_id: str,
    *,
    trees: Trees,
    comparisons: Comparisons,
    now_ns: int,
) -> RunDiff:
    """Return the comparison of two runs, made once for each version of the two."""
    left = get_run(connection, left_id, now_ns=now_ns)
    right = get_run(connection, right_id, now_ns=now_ns)
    key = (left.id, left.version, left.status, right.id, right.version, right.status)

    def made() -> RunDiff:
        return compare_runs(connection, left.run_id, right.run_id, trees=trees, now_ns=now_ns)

    return comparisons.get(key, made)
