"""Executions of tools as the record has them, read only as far as a claim needs them.

The rows of a run are read once; arguments and results are in the spans' records, and those are read
for the few executions that may decide.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import apsw

from hansard.adapters.claims.shell import shell_text
from hansard_collector.derivation.stored_span import StepReader
from hansard_collector.evaluation.outcomes import Status, ToolExecution, is_relevant
from hansard_collector.evaluation.topics import ClaimTopic, tool_key
from hansard_store.errors import StoreError
from hansard_store.evaluation.sources import EvaluatedRun, EvaluatedStep, runs_of_conversation
from hansard_store.evaluation.sources import steps_of as read_steps
from hansard_store.steps.flags import SpanFlag

_STATUS_OK: Final = 1
_ANY_COMMAND: Final = {"command": "x"}
_STATUS_ERROR: Final = 2
_MOST_RUNS: Final = 300  # whose rows are held at once
_MOST_CALLS: Final = 60_000  # tool calls of runs that are held at once
_MOST_HELD: Final = 5_000  # spans whose arguments and results are held at once
_MOST_BACK: Final = 500  # shell calls that are read for one claim
MOST_DURING: Final = 20_000  # executions of a topic in a window
_MOST_WHOLE: Final = 50  # of these whose results are read
_MOST_BEFORE: Final = 20  # earlier runs of a conversation

# What a tool is to a topic: named by it, a shell that may run its commands, neither.
_Kind = Literal["named", "shell", "other"]


@dataclass(slots=True)
class History:
    """Reads executions; `reads` counts the records that were read whole."""

    connection: apsw.Connection
    reads: int = 0
    _runs: OrderedDict[bytes, Sequence[EvaluatedStep]] = field(default_factory=OrderedDict)
    _tools: OrderedDict[bytes, Sequence[EvaluatedStep]] = field(default_factory=OrderedDict)
    _steps: StepReader = field(init=False)
    _held: int = 0  # calls in _tools
    _kinds: dict[tuple[bool, str, str], _Kind] = field(default_factory=dict)
    _contents: OrderedDict[int, tuple[Any, Any]] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self._steps = StepReader(self.connection)

    def steps_of(self, trace_id: bytes) -> Sequence[EvaluatedStep]:
        """Return the steps of a run that call tools or have text."""
        found = self._runs.get(trace_id)
        if found is None:
            found = self._runs[trace_id] = read_steps(self.connection, trace_id)
            if len(self._runs) > _MOST_RUNS:
                self._runs.popitem(last=False)
        return found

    def before(
        self, run: EvaluatedRun, topic: ClaimTopic, *, at_ns: int
    ) -> Iterator[ToolExecution]:
        """Yield relevant executions of a run that ended before a time, the newest first.

        Behind them those of the earlier runs of its conversation.
        """
        yield from self._of_run(run.trace_id, topic, until_ns=at_ns)
        for other in runs_of_conversation(self.connection, run, limit=_MOST_BEFORE):
            yield from self._of_run(other.trace_id, topic, until_ns=at_ns)

    def during(
        self, traces: Iterable[bytes], topic: ClaimTopic, *, since_ns: int, until_ns: int
    ) -> list[ToolExecution]:
        """Return relevant executions of some runs within a time, the oldest first.

        Results are read of the newest 50 that did not fail by their status; older ones count by
        their status alone.
        """
        steps = [
            step
            for trace_id in traces
            for step in self._ended_last(trace_id)
            if since_ns <= _ended(step) <= until_ns and self._may_be_of(step, topic)
        ]
        steps.sort(key=_ended, reverse=True)
        found: list[ToolExecution] = []
        whole = 0
        for step in steps[:MOST_DURING]:
            is_named = self._kind_of(step, topic) == "named"
            is_light = is_named and (_status(step) == "error" or whole >= _MOST_WHOLE)
            if not is_named and whole >= _MOST_BACK:
                break
            whole += not is_light
            one = self._execution(step, is_light=is_light)
            if is_named or is_relevant(one, topic):
                found.append(one)
        return found[::-1]

    def _of_run(
        self, trace_id: bytes, topic: ClaimTopic, *, until_ns: int
    ) -> Iterator[ToolExecution]:
        steps = self._ended_last(trace_id)
        shells = 0
        for step in steps:
            if _ended(step) > until_ns or not self._may_be_of(step, topic):
                continue
            if self._kind_of(step, topic) != "named":
                shells += 1
                if shells > _MOST_BACK:
                    return
            one = self._execution(step)
            if is_relevant(one, topic):
                yield one

    def _ended_last(self, trace_id: bytes) -> Sequence[EvaluatedStep]:
        """Return the tool calls of a run, the last to end first."""
        found = self._tools.get(trace_id)
        if found is None:
            found = sorted(
                (one for one in self.steps_of(trace_id) if one.is_tool), key=_ended, reverse=True
            )
            self._tools[trace_id] = found
            self._held += len(found)
            while self._held > _MOST_CALLS and len(self._tools) > 1:
                self._held -= len(self._tools.popitem(last=False)[1])
        return found

    def _may_be_of(self, step: EvaluatedStep, topic: ClaimTopic) -> bool:
        """Return whether a tool call may be of a topic, by its name and its summary alone."""
        kind = self._kind_of(step, topic)
        if kind != "shell":
            return kind == "named"
        summary = step.summary or ""
        if not summary or summary.endswith("…") or step.flags & SpanFlag.ERROR:
            return True  # it is not the whole of its arguments
        return any(hint.search(summary) for hint in topic.hints)

    def _kind_of(self, step: EvaluatedStep, topic: ClaimTopic) -> _Kind:
        """Return what a tool is to a topic, by its name; worked out once."""
        name = step.tool_name or ""
        key = (topic.is_tool, topic.name, name)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = _kind(tool_key(name), topic)
        return found

    def _execution(self, step: EvaluatedStep, *, is_light: bool = False) -> ToolExecution:
        arguments, result = (None, None) if is_light else self._content(step)
        return ToolExecution(
            step.step_id,
            step.tool_name or "",
            _status(step),
            step.sort_ns,
            step.end_ns,
            arguments,
            result,
        )

    def _content(self, step: EvaluatedStep) -> tuple[Any, Any]:
        known = self._contents.get(step.id)
        if known is None:
            self.reads += 1
            try:
                tool = self._steps.read(
                    step.id, has_logs=bool(step.flags & SpanFlag.HAS_LOGS)
                ).normal.tool
            except StoreError:  # a part of it is gone: its status remains
                tool = None
            known = (None, None) if tool is None else (tool.arguments, tool.result)
            self._contents[step.id] = known
            if len(self._contents) > _MOST_HELD:
                self._contents.popitem(last=False)
        return known


def _kind(key: str, topic: ClaimTopic) -> _Kind:
    if topic.matches_tool(key):
        return "named"
    is_shell = bool(topic.commands) and shell_text(key, _ANY_COMMAND) is not None
    return "shell" if is_shell else "other"


def _status(step: EvaluatedStep) -> Status:
    if step.flags & SpanFlag.CANCELLED:
        return "cancelled"
    if step.flags & SpanFlag.ERROR or step.status == _STATUS_ERROR:
        return "error"
    if step.end_ns is None and not step.flags & SpanFlag.TIME_HUGE:
        return "open"
    return "ok" if step.status == _STATUS_OK else "unset"


def _ended(step: EvaluatedStep) -> int:
    return step.sort_ns if step.end_ns is None else step.end_ns
