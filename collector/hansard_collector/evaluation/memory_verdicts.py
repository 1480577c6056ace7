"""Verdicts on claims in memory: they hold until taken back, so later executions count too.

Which executions are meant depends on whose memory it is. A tool that is named is that tool in the
runs of the record's agent, or in all runs where it names none. What a topic such as "the tests" is
about is what ran in the run that wrote the record, and in later runs of its agent or project. Where
nothing says whose tests they are, all runs of the window have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import apsw

from hansard.adapters.claims.shell import shell_text
from hansard_collector.evaluation.history import History
from hansard_collector.evaluation.outcomes import OutcomeEvidence, outcome_of
from hansard_collector.evaluation.topics import ClaimTopic, tool_key
from hansard_collector.evaluation.verdicts import ClaimJudgement, VerdictRecord, judge_standing
from hansard_store.evaluation import sources
from hansard_store.evaluation.verdicts import VerdictRow
from hansard_store.memory.records import Memory

_MOST_RUNS: Final = 5_000  # of a window that are looked at for one record

Traces = Mapping[bytes, None]  # of runs, in the order in which they are looked at


@dataclass(frozen=True, slots=True)
class _Scope:
    name: tuple[str, ...]  # of two with one name the runs are the same
    traces: Traces
    is_certain: bool = True  # False: whose they are is not said


@dataclass(slots=True)
class MemoryJudge:
    """Judges records of memory; what several ask for is read once."""

    connection: apsw.Connection
    history: History
    evidence: Sequence[OutcomeEvidence]
    since_ns: int
    now_ns: int
    _records: dict[tuple[str, ...], VerdictRecord] = field(default_factory=dict)
    _scopes: dict[tuple[str, ...], Traces] = field(default_factory=dict)
    _agents: dict[str, str] = field(default_factory=dict)  # of the runs that wrote records
    _tools: list[str] | None = None

    def judge(self, row: VerdictRow, memory: Memory, topic: ClaimTopic) -> ClaimJudgement:
        """Return the verdict on one claim of a record."""
        scope = self._scope(memory, topic)
        record = self._record(topic, scope)
        found = judge_standing(row.polarity, record, output_ns=row.claimed_ns)  # type: ignore[arg-type]  # one of three
        if found.verdict == "contradicted" and not scope.is_certain and record.is_mixed:
            why = "nothing says which runs are meant, and they do not agree"
            return ClaimJudgement("unknown", why, found.evidence, found.tool, found.executions)
        return found

    def _record(self, topic: ClaimTopic, scope: _Scope) -> VerdictRecord:
        key = (topic.name, str(topic.is_tool), *scope.name)
        if key not in self._records:
            executions = self.history.during(
                scope.traces, topic, since_ns=self.since_ns, until_ns=self.now_ns
            )
            outcomes = [outcome_of(one, topic, self.evidence) for one in executions]
            self._records[key] = VerdictRecord.of(executions, outcomes)
        return self._records[key]

    def _scope(self, memory: Memory, topic: ClaimTopic) -> _Scope:
        if memory.run_id is not None:
            return _Scope(("run", memory.run_id), {bytes.fromhex(memory.run_id): None})
        if topic.is_tool:
            if memory.agent and (both := self._of_both(topic, memory.agent)):
                return _Scope(("topic", "agent", memory.agent), both)
            return _Scope(("topic",), self._of_tools(topic))
        name, own = self._own(memory)
        return _Scope(name, own) if own else _Scope(("topic",), self._of_tools(topic), False)

    def _of_both(self, topic: ClaimTopic, agent: str) -> Traces:
        """Return the runs of an agent that called a tool."""
        own = self._of_agent(agent)
        return self._once(
            ("both", topic.name, agent),
            lambda: (one for one in self._of_tools(topic) if one in own),
        )

    def _own(self, memory: Memory) -> tuple[tuple[str, ...], Traces]:
        """Return the runs that a record speaks for: that wrote it, of its agent or project."""
        source = memory.source_run_id or ""
        agent = memory.agent or (self._agent_of(source) if source else "")
        name: tuple[str, ...] = ()
        found: Traces = {}
        if agent:
            name, found = ("agent", agent), self._of_agent(agent)
        elif memory.project:
            name, found = ("project", memory.project), self._of_project(memory.project)
        if source and (trace_id := bytes.fromhex(source)) not in found:
            return (*name, "and", source), {trace_id: None, **found}
        return name, found

    def _agent_of(self, run_id: str) -> str:
        """Return the agent of a run; empty where it names none, or is not stored."""
        if run_id not in self._agents:
            runs = sources.runs_by_trace(self.connection, [bytes.fromhex(run_id)])
            self._agents[run_id] = (runs[0].agent_name or "") if runs else ""
        return self._agents[run_id]

    def _of_agent(self, agent: str) -> Traces:
        return self._once(
            ("agent", agent),
            lambda: (
                one.trace_id
                for one in sources.runs_of_agent(
                    self.connection, agent, since_ns=self.since_ns, limit=_MOST_RUNS
                )
            ),
        )

    def _of_project(self, project: str) -> Traces:
        return self._once(
            ("project", project),
            lambda: sources.runs_touching(
                self.connection, project, since_ns=self.since_ns, limit=_MOST_RUNS
            ),
        )

    def _of_tools(self, topic: ClaimTopic) -> Traces:
        def read() -> Iterable[bytes]:
            named = [name for name in self._names() if _may_run(name, topic)]
            runs = sources.runs_of_tools(
                self.connection, named, since_ns=self.since_ns, limit=_MOST_RUNS
            )
            return (one.trace_id for one in runs)

        return self._once(("topic", str(topic.is_tool), topic.name), read)

    def _once(self, key: tuple[str, ...], read: Callable[[], Iterable[bytes]]) -> Traces:
        if key not in self._scopes:
            self._scopes[key] = dict.fromkeys(read())
        return self._scopes[key]

    def _names(self) -> list[str]:
        if self._tools is None:
            self._tools = sources.tool_names(self.connection)
        return self._tools


def _may_run(name: str, topic: ClaimTopic) -> bool:
    key = tool_key(name)
    is_shell = bool(topic.commands) and shell_text(key, {"command": "x"}) is not None
    return topic.matches_tool(key) or is_shell
