"""Marked runs and steps as a data set: a JSON line each, to be used for evaluations as it is.

Read slice by slice, each in a state of its own: memory stays flat, and a slow reader keeps nothing
from being written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_collector.derivation.stored_span import StepReading, read_step
from hansard_compiler.errors import NotFoundError
from hansard_store.annotations.queries import (
    MarkCondition,
    mark_conditions,
    marked_targets,
    outer_calls,
    read_scores,
    read_tags,
    standing_on,
)
from hansard_store.annotations.rows import AnnotationRow, AnnotationTarget
from hansard_store.bodies import body_of
from hansard_store.runs.queries import RunItem, find_trace_id, get_run
from hansard_store.steps.queries import StepSkeleton, get_step, steps_by_number
from hansard_store.times import time_text
from hansard_web.annotations.bodies import DatasetExample, DatasetLine, DatasetNote, DatasetScore
from hansard_web.api.values import SCHEMA_VERSION, dump, plain
from hansard_web.app.readers import Readers
from hansard_web.steps.bodies import message_body

_AT_ONCE: Final = 500  # things found in one state of the store; each line is read in its own
_TIMEOUT_MS: Final = 30_000  # a rare tag is looked for among all that is marked
_MOST_OF_ONE: Final = 1_000


@dataclass(frozen=True, slots=True)
class DatasetWanted:
    """Which marked runs and steps: each condition must be met by an annotation of the thing."""

    conditions: tuple[MarkCondition, ...] = ()
    run: str | None = None

    @classmethod
    def read(cls, tags: tuple[str, ...], scores: tuple[str, ...], run: str | None) -> DatasetWanted:
        """Return what was requested in words; raises InvalidQueryError."""
        conditions = (tuple(filter(None, tags)), tuple(filter(None, scores)))
        return cls(mark_conditions(read_tags(conditions[0]), read_scores(conditions[1])), run)


def open_dataset(readers: Readers, selection: DatasetWanted) -> Iterator[bytes]:
    """Begin to write a data set; what cannot be meant is refused before the first line."""
    run = None
    if selection.run is not None:
        with readers.read() as connection:
            run = find_trace_id(connection, selection.run)
    return _lines(readers, selection.conditions, run)


def _lines(
    readers: Readers, conditions: Sequence[MarkCondition], run: bytes | None
) -> Iterator[bytes]:
    after: AnnotationTarget | None = None
    runs = _Runs()
    while True:
        with readers.read(timeout_ms=_TIMEOUT_MS) as connection:
            found = marked_targets(connection, conditions, run=run, after=after, limit=_AT_ONCE)
        if not found:
            return
        for target in found:
            with readers.read() as connection:
                line = _line(connection, target, runs)
            if line is not None:
                yield dump(line) + b"\n"
        after = found[-1]


class _Runs:
    """The run of the line before: those of a run come together, and it sums all that is marked."""

    def __init__(self) -> None:
        self._last: RunItem | None = None

    def get(self, connection: apsw.Connection, run_id: str) -> RunItem:
        """Return a run; raises NotFoundError."""
        if self._last is None or self._last.run_id != run_id:
            self._last = get_run(connection, run_id, now_ns=time.time_ns())
        return self._last


def _line(connection: apsw.Connection, target: AnnotationTarget, runs: _Runs) -> DatasetLine | None:
    """Return the line of a run or step; None for one that was deleted meanwhile."""
    now_ns = time.time_ns()
    standing = standing_on(connection, target, limit=_MOST_OF_ONE)
    try:
        run = runs.get(connection, target.trace_id.hex())
        if not target.span_id:
            example = _of_run(connection, run)
        else:
            side = ".server" if target.side else ""
            step_id = f"{run.run_id}-{target.span_id.hex()}"
            example = _of_step(connection, _step(connection, step_id, side, now_ns))
    except NotFoundError:
        return None
    ordered = [one.row for one in reversed(standing)]
    return body_of(
        DatasetLine,
        run,
        schema_version=SCHEMA_VERSION,
        **example,
        expected=next((one.row.expected for one in standing if one.row.expected), None),
        tags=[one.name for one in ordered if one.kind == "tag"],
        scores=[_score(one) for one in ordered if one.kind == "score"],
        notes=[_note(one) for one in ordered if one.kind == "note"],
        agent=run.agent_name,
        run_name=run.name,
    )


def _step(connection: apsw.Connection, step_id: str, side: str, now_ns: int) -> StepSkeleton:
    try:
        return get_step(connection, step_id + side, now_ns=now_ns)
    except NotFoundError:
        return get_step(connection, step_id, now_ns=now_ns)


def _of_step(connection: apsw.Connection, step: StepSkeleton) -> DatasetExample:
    content = _content_of(read_step(connection, step.id))
    return body_of(DatasetExample, step, started_at=time_text(step.start_ns), **content)


def _of_run(connection: apsw.Connection, run: RunItem) -> DatasetExample:
    """Of a whole run: the input of its first model call, and the output of its last one."""
    first, last = outer_calls(connection, run.id)
    content: dict[str, Any] = {"input": [], "tools": [], "output": []}
    model = None
    if first is not None and last is not None:
        content = _content_of(read_step(connection, first))
        content["output"] = _content_of(read_step(connection, last))["output"]
        model = steps_by_number(connection, [last], now_ns=time.time_ns())[last].model
    return body_of(DatasetExample, run, step_id=None, role="run", model=model, **content)


def _content_of(reading: StepReading) -> dict[str, Any]:
    """Return the input and the output of a step: messages of a call, else whatever it reported."""
    normal = reading.normal
    if normal.call is not None:
        call = normal.call
        return {
            "input": [_message(message_body(one)) for one in call.input],
            "tools": plain(call.tools),
            "output": [_message(message_body(one)) for one in call.output],
        }
    if normal.tool is not None:
        tool = normal.tool
        arguments = {"name": tool.name, "arguments": plain(tool.arguments)}
        return {"input": arguments, "tools": [], "output": plain(tool.result)}
    return {"input": plain(normal.input), "tools": [], "output": plain(normal.output)}


def _message(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "hash"}


def _score(row: AnnotationRow) -> DatasetScore:
    return body_of(DatasetScore, row, author=row.author or None, explanation=row.text)


def _note(row: AnnotationRow) -> DatasetNote:
    return body_of(DatasetNote, row, author=row.author or None)
