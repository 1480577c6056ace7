"""Verdicts on what memory says: it stands until it is taken back, so later executions count too.

Which executions are meant depends on whose memory it is. A tool that is named is that tool in the
runs of the record's agent, or in all runs where it names none. What a topic such as "the tests" is
about is what ran in the run that wrote the record, and in later runs of its agent or project. Where
nothing says whose tests they are, all runs of the window have to agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import apsw

from hansard.adapters.claims.shell import shell_text
from hansard_collector.evaluation.history import History
from hansard_collector.evaluation.outcomes import Evidence, Execution, Outcome, outcome_of
from hansard_collector.evaluation.topics import Topic, tool_key
from hansard_collector.evaluation.verdicts import Judgement, judge_standing
from hansard_store.evaluation import sources
from hansard_store.evaluation.verdicts import VerdictRow
from hansard_store.memory_types import Memory

_MOST_RUNS: Final = 5_000  # of a window that are looked at for one record


@dataclass(frozen=True, slots=True)
class _Scope:
    traces: Sequence[bytes]
    is_certain: bool  # False: whose they are is not said


@dataclass(slots=True)
class MemoryJudge:
    """Judges records of memory; what several ask for is read once."""

    connection: apsw.Connection
    history: History
    evidence: Sequence[Evidence]
    since_ns: int
    now_ns: int
    _executions: dict[tuple[str, tuple[bytes, ...]], list[Execution]] = field(default_factory=dict)
    _outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    _scopes: dict[tuple[str, ...], Sequence[bytes]] = field(default_factory=dict)
    _tools: list[str] | None = None

    def judge(self, row: VerdictRow, memory: Memory, topic: Topic) -> Judgement:
        """Return the verdict on one claim of a record."""
        scope = self._scope(row, memory, topic)
        executions = self._found(topic, scope.traces)

        def outcome(one: Execution) -> Outcome:
            key = (topic.name, one.step_id)
            if key not in self._outcomes:
                self._outcomes[key] = outcome_of(one, topic, self.evidence)
            return self._outcomes[key]

        found = judge_standing(row.polarity, executions, outcome, said_ns=row.claimed_ns)  # type: ignore[arg-type]  # one of three
        if found.verdict == "contradicted" and not scope.is_certain:
            kinds = {outcome(one).kind for one in executions}
            if "succeeded" in kinds and "failed" in kinds:
                why = "nothing says which runs are meant, and they do not agree"
                return Judgement("unknown", why, found.evidence, found.tool, found.executions)
        return found

    def _found(self, topic: Topic, traces: Sequence[bytes]) -> list[Execution]:
        key = (topic.name, tuple(traces))
        if key not in self._executions:
            self._executions[key] = self.history.during(
                traces, topic, since_ns=self.since_ns, until_ns=self.now_ns
            )
        return self._executions[key]

    def _scope(self, row: VerdictRow, memory: Memory, topic: Topic) -> _Scope:
        if memory.run_id is not None:
            return _Scope((bytes.fromhex(memory.run_id),), True)
        if topic.is_tool:
            everywhere = self._of_tools(topic)
            if memory.agent:
                own = self._of_agent(memory.agent)
                both = tuple(one for one in everywhere if one in set(own))
                return _Scope(both or everywhere, True)
            return _Scope(everywhere, True)
        own = self._own(memory)
        return _Scope(own, True) if own else _Scope(self._of_tools(topic), False)

    def _own(self, memory: Memory) -> Sequence[bytes]:
        """Return the runs that a record speaks for: that wrote it, of its agent or project."""
        found: dict[bytes, None] = {}
        agent = memory.agent
        if memory.source_run_id is not None:
            source = bytes.fromhex(memory.source_run_id)
            found[source] = None
            runs = sources.runs_by_trace(self.connection, [source])
            agent = agent or (runs[0].agent_name or "" if runs else "")
        if agent:
            found.update(dict.fromkeys(self._of_agent(agent)))
        elif memory.project:
            found.update(dict.fromkeys(self._of_project(memory.project)))
        return tuple(found)

    def _of_agent(self, agent: str) -> Sequence[bytes]:
        key = ("agent", agent)
        if key not in self._scopes:
            runs = sources.runs_of_agent(
                self.connection, agent, since_ns=self.since_ns, limit=_MOST_RUNS
            )
            self._scopes[key] = tuple(one.trace_id for one in runs)
        return self._scopes[key]

    def _of_project(self, project: str) -> Sequence[bytes]:
        key = ("project", project)
        if key not in self._scopes:
            self._scopes[key] = tuple(
                sources.runs_touching(
                    self.connection, project, since_ns=self.since_ns, limit=_MOST_RUNS
                )
            )
        return self._scopes[key]

    def _of_tools(self, topic: Topic) -> Sequence[bytes]:
        key = ("topic", topic.name)
        if key not in self._scopes:
            named = [name for name in self._names() if _may_run(name, topic)]
            runs = sources.runs_of_tools(
                self.connection, named, since_ns=self.since_ns, limit=_MOST_RUNS
            )
            self._scopes[key] = tuple(one.trace_id for one in runs)
        return self._scopes[key]

    def _names(self) -> list[str]:
        if self._tools is None:
            self._tools = sources.tool_names(self.connection)
        return self._tools


def _may_run(name: str, topic: Topic) -> bool:
    key = tool_key(name)
    is_shell = bool(topic.commands) and shell_text(key, {"command": "x"}) is not None
    return topic.matches_tool(key) or is_shell


def judge_memory(
    connection: apsw.Connection,
    history: History,
    evidence: Sequence[Evidence],
    *,
    since_ns: int,
    now_ns: int,
) -> MemoryJudge:
    """Return the judge of one evaluation."""
    return MemoryJudge(connection, history, evidence, since_ns, now_ns)
