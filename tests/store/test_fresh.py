"""What is known of a new run in memory says what the tables say of a stored one."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from tests.store.maker import StoreMaker
from tests.store.test_counting import Step, add, forests, tool

_ROWS = (
    "SELECT * FROM tool_event ORDER BY call_id, name, requested, ran",
    "SELECT * FROM usage_below ORDER BY span_id",
    "SELECT span, candidate, counted FROM call ORDER BY span",
    "SELECT span, counted FROM usage_sum ORDER BY span",
    "SELECT id, flags FROM span ORDER BY id",
    "SELECT model_calls, tool_calls, step_count, tokens_input, cost_usd_nano FROM run",
)


def rows(steps: Sequence[Step], *, at_once: int) -> list[Any]:
    """Store steps in their order, some in each transaction, and return every derived row."""
    with tempfile.TemporaryDirectory() as path:
        store = StoreMaker(Path(path))
        for start in range(0, len(steps), at_once):
            with store.batch():
                for step in steps[start : start + at_once]:
                    add(store, step)
        found = [_without_ids(store.db.execute(sql).fetchall()) for sql in _ROWS]
        store.close()
        return found


def _without_ids(found: list[Any]) -> list[Any]:
    # The id of a tool event is no fact: halves that were joined in memory have one row less.
    return sorted((row[1:] if len(row) == 6 else row for row in found), key=repr)


@settings(max_examples=40)
@given(forests())
def test_a_run_stored_at_once_has_the_rows_of_one_stored_step_by_step(steps: list[Step]) -> None:
    assert rows(steps, at_once=len(steps)) == rows(steps, at_once=1)


def test_very_many_tool_calls_of_one_new_run_are_joined_as_a_few_are() -> None:
    steps = [Step(f"s{number}", None, number, tool("f", f"c{number}")) for number in range(600)]

    assert rows(steps, at_once=600) == rows(steps, at_once=300)
