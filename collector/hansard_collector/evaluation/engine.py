"""Evaluation of a store over a window: claims are found, judged, stored, and corrected.

It reads what changed since the last evaluation and leaves the rest: a second one with nothing new
costs a few look-ups. Nothing is judged on the absence of evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import apsw

from hansard_collector.evaluation.claims import Tools, tools_of
from hansard_collector.evaluation.corrections import correction_of_memory, correction_of_run
from hansard_collector.evaluation.history import History
from hansard_collector.evaluation.memory_verdicts import MemoryJudge
from hansard_collector.evaluation.settings import EvaluationRules
from hansard_collector.evaluation.statements import ClaimStatement, Reader
from hansard_collector.evaluation.topics import ClaimTopic, topic_of_tool
from hansard_collector.evaluation.verdicts import ClaimJudgement, judge_claim
from hansard_compiler.models.memory import WriteMemory
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.connections import OwnConnections
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.database.transactions import snapshot, transaction
from hansard_store.evaluation import sources, verdicts
from hansard_store.evaluation import verdicts as rows
from hansard_store.evaluation.sources import EvaluatedRun, TranscriptText
from hansard_store.evaluation.verdicts import Progress, VerdictRow
from hansard_store.memory.rows import memories_by_number
from hansard_store.memory.service import MemoryService

_AT_ONCE: Final = 200  # rows of one transaction
_MOST_STANDING: Final = 50_000
_MOST_LISTED: Final = 20

Progressed = Callable[[int, int], None]  # runs read, of how many


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What an evaluation found. Verdicts that are new or changed, in the order of what was said."""

    runs: int  # that were read
    texts: int  # that were searched for claims
    new: Sequence[VerdictRow]
    corrections: int  # written
    counted: int  # contradictions seen again
    verdicts: Mapping[rows.Verdict, int]  # of all claims of the window
    unverified: Sequence[tuple[str, int]]  # claimed without evidence: tool or topic, how often
    unrecorded: Sequence[tuple[str, int]]  # tools that were called and that no step shows

    @property
    def figures(self) -> dict[str, Any]:
        """The same as JSON, without anything recorded but names of tools."""
        new = Counter(one.verdict for one in self.new)
        return {
            "runs": self.runs,
            "texts": self.texts,
            "new": {one: new[one] for one in rows.VERDICTS},
            "corrections": self.corrections,
            "seen_again": self.counted,
            "verdicts": dict(self.verdicts),
            "unverified": [{"tool": name, "claims": n} for name, n in self.unverified],
            "without_diagnostics": [{"tool": name, "calls": n} for name, n in self.unrecorded],
        }


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Evaluates one store."""

    folder: DataFolder
    rules: EvaluationRules
    mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS

    def run(
        self,
        *,
        now_ns: int,
        since_ns: int,
        step_id: str | None = None,
        dry_run: bool = False,
        progress: Progressed = lambda *_: None,
    ) -> Evaluated:
        """Judge what was said since a time. Raises StoreError.

        `step_id` is the step that does it, named as the writer of corrections. A dry run judges and
        writes nothing: neither verdicts nor corrections, nor how far it came.
        """
        with ExitStack() as opened:
            connection = opened.enter_context(closing(open_reader(self.folder)))
            with snapshot(connection):
                found = _Judging(connection, self.rules, since_ns, now_ns).judge(progress)
            counted = corrections = 0
            if not dry_run:
                writer = _Writer(self.folder, self.mode, connection, step_id, now_ns)
                opened.callback(writer.close)
                corrections = writer.write(found)
                counted = writer.finish(found, since_ns)
            with snapshot(connection):
                return Evaluated(
                    runs=found.runs,
                    texts=found.texts,
                    new=found.changed,
                    corrections=corrections,
                    counted=counted,
                    verdicts=rows.count_verdicts(connection, since_ns=since_ns),
                    unverified=rows.unverified_subjects(
                        connection, since_ns=since_ns, limit=_MOST_LISTED
                    ),
                    unrecorded=sources.unrecorded_tools(
                        connection, since_ns=since_ns, limit=_MOST_LISTED
                    ),
                )


@dataclass(slots=True)
class _Found:
    """What is to be written."""

    progress: Progress
    is_new_rules: bool
    runs: int = 0
    texts: int = 0
    changed: list[VerdictRow] = field(default_factory=list)
    before: dict[bytes, VerdictRow] = field(default_factory=dict)
    digests: dict[bytes, bytes] = field(default_factory=dict)
    keys: dict[bytes, list[bytes]] = field(default_factory=dict)  # keys by run


class _Judging:
    """Judges what is new. Reads only, in one snapshot."""

    def __init__(
        self, connection: apsw.Connection, rules: EvaluationRules, since_ns: int, now_ns: int
    ) -> None:
        self._connection = connection
        self._rules = rules
        self._since_ns, self._now_ns = since_ns, now_ns
        known = verdicts.read_progress(connection)
        self._is_new_rules = known.rules != rules.digest
        self._known = Progress() if self._is_new_rules else known
        self._history = History(connection)
        self._topics: dict[str, ClaimTopic] = {}

    def judge(self, progress: Progressed) -> _Found:
        """Return new and changed verdicts, and how far evaluation is with them."""
        known, connection = self._known, self._connection
        last = sources.last_change(connection)
        reached = Progress(
            change=last,
            memory=sources.last_memory(connection),
            message=sources.last_message(connection),
            since_ns=min(known.since_ns, self._since_ns),
            rules=self._rules.digest,
        )
        found = _Found(reached, self._is_new_rules)
        is_longer = self._since_ns < known.since_ns
        runs = sources.changed_runs(
            connection, after=known.change, last=last, since_ns=self._since_ns,
            covered_ns=known.since_ns,
        )  # fmt: skip
        is_quiet = known.memory == reached.memory and known.message == reached.message
        if not runs and is_quiet and not is_longer:
            return found
        reader = Reader(connection, self._rules.lexicon, self._tools())
        self._judge_runs(found, runs, reader, progress)
        if not found.runs and is_quiet and not is_longer:
            return found  # what changed of these runs are our own results
        self._judge_transcripts(found, reader, 0 if is_longer else known.message)
        self._judge_memory(found, reader, 0 if is_longer else known.memory)
        found.texts = reader.texts
        found.changed.sort(key=lambda one: one.claimed_ns)
        return found

    def _tools(self) -> Tools:
        named = sources.tool_names(self._connection)
        named += [name for name, _ in sources.unrecorded_tools(
            self._connection, since_ns=self._since_ns, limit=1_000)]  # fmt: skip
        configured = [one for rule in self._rules.evidence for one in rule.tools]
        known = [*named, *(one for one in configured if one.isidentifier())]
        return tools_of(known, self._rules.lexicon)

    # ---- what runs say

    def _judge_runs(
        self, found: _Found, runs: Sequence[EvaluatedRun], reader: Reader, progress: Progressed
    ) -> None:
        for at in range(0, len(runs), _AT_ONCE):
            part = runs[at : at + _AT_ONCE]
            for run in self._unread(part):
                found.runs += 1
                steps = self._history.steps_of(run.trace_id)
                found.digests[run.trace_id] = sources.digest_of(steps)
                statements = list(reader.of_run(run, self._history))
                self._judge_statements(found, statements, run)
                found.keys[run.trace_id] = [one.key for one in statements]
            progress(min(at + _AT_ONCE, len(runs)), len(runs))

    def _unread(self, runs: Sequence[EvaluatedRun]) -> list[EvaluatedRun]:
        """Return the runs that are new, or whose steps are not as they were read before."""
        traces = [run.trace_id for run in runs]
        known = verdicts.known_digests(self._connection, traces)
        if self._is_new_rules or not known:
            return list(runs)
        now, nothing = sources.digests_of(self._connection, known), sources.digest_of(())
        return [
            run
            for run in runs
            if run.trace_id not in known or known[run.trace_id] != now.get(run.trace_id, nothing)
        ]

    def _judge_statements(
        self, found: _Found, statements: Sequence[ClaimStatement], run: EvaluatedRun | None
    ) -> None:
        judged = []
        for one in statements:
            before = (
                ()
                if run is None
                else self._history.before(run, one.claim.topic, at_ns=one.output_ns)
            )
            judgement = judge_claim(one.claim, before, self._rules.evidence)
            judged.append(_row(one, judgement))
        self._compare(found, judged)

    def _judge_transcripts(self, found: _Found, reader: Reader, after: int) -> None:
        traced: dict[bytes, list[ClaimStatement]] = {}
        bare: list[ClaimStatement] = []
        for message in self._messages(found, after):
            for one in reader.of_transcript(message):
                if one.trace_id is None:
                    bare.append(one)
                else:
                    traced.setdefault(one.trace_id, []).append(one)
        runs = {run.trace_id: run for run in sources.runs_by_trace(self._connection, traced)}
        for trace_id, statements in traced.items():
            run = runs.get(trace_id)
            known = set() if run is None else {
                (one.claim.sentence, one.claim.topic.name)
                for one in reader.of_run(run, self._history)
            }  # fmt: skip
            fresh = [o for o in statements if (o.claim.sentence, o.claim.topic.name) not in known]
            if trace_id in found.keys:
                found.keys[trace_id] += [one.key for one in fresh]
            self._judge_statements(found, fresh, run)
        self._judge_statements(found, bare, None)

    def _messages(self, found: _Found, after: int) -> Iterator[TranscriptText]:
        """Yield new messages, and earlier ones of runs that are judged again."""
        new: set[bytes] = set()
        for message in sources.iter_transcripts(
            self._connection, after=after, since_ns=self._since_ns
        ):
            new.add(message.message_id)
            yield message
        earlier = {one for run in found.keys for one in rows.messages_of_run(self._connection, run)}
        yield from sources.transcripts_by_id(self._connection, sorted(earlier - new))

    # ---- what memory says

    def _judge_memory(self, found: _Found, reader: Reader, after: int) -> None:
        statements: dict[bytes, ClaimStatement] = {}
        for memory in sources.iter_memories(
            self._connection, after=after, since_ns=self._since_ns, now_ns=self._now_ns
        ):
            statements.update((one.key, one) for one in reader.of_memory(memory))
        standing = rows.standing_verdicts(
            self._connection, since_ns=self._since_ns, limit=_MOST_STANDING
        )
        judged = [_row(one, None) for one in statements.values()]
        judged += [one for one in standing if one.key not in statements]
        numbers = sorted({one.memory for one in judged if one.memory is not None})
        memories = memories_by_number(self._connection, numbers, now_ns=self._now_ns)
        made = MemoryJudge(
            self._connection, self._history, self._rules.evidence, self._since_ns, self._now_ns
        )
        self._compare(
            found,
            [
                _with(one, made.judge(one, memories[one.memory], self._topic(one)))
                for one in judged
                if one.memory in memories
            ],
        )

    def _topic(self, row: VerdictRow) -> ClaimTopic:
        if not row.is_tool and row.subject in self._rules.lexicon.topics:
            return self._rules.lexicon.topics[row.subject]
        return self._topics.setdefault(row.subject, topic_of_tool(row.subject))

    def _compare(self, found: _Found, judged: Sequence[VerdictRow]) -> None:
        """Take the verdicts that are new, or differ from what is stored."""
        for at in range(0, len(judged), _AT_ONCE):
            part = judged[at : at + _AT_ONCE]
            known = rows.known_verdicts(self._connection, [one.key for one in part])
            for one in part:
                before = known.get(one.key)
                if before is not None and not _is_news(one, before):
                    continue
                found.changed.append(one)
                if before is not None:
                    found.before[one.key] = before


class _Writer:
    """Writes verdicts and corrections, each correction in one transaction with its verdict."""

    def __init__(
        self,
        folder: DataFolder,
        mode: RetentionMode,
        connection: apsw.Connection,
        step_id: str | None,
        now_ns: int,
    ) -> None:
        self._connections = OwnConnections(folder)
        self._reader = connection
        self._step_id, self._now_ns = step_id, now_ns
        self._memory = None
        if mode is not RetentionMode.METADATA_ONLY:
            self._memory = MemoryService(folder, mode, origin="cli", clock=lambda: now_ns)

    def close(self) -> None:
        self._connections.close()
        if self._memory is not None:
            self._memory.close()

    def write(self, found: _Found) -> int:
        """Write what changed; return how many corrections were."""
        corrected: list[VerdictRow] = []
        plain: list[VerdictRow] = []
        for one in found.changed:
            needs = one.verdict == "contradicted" or _had_correction(found.before.get(one.key))
            (corrected if needs else plain).append(one)
        connection = self._connections.get()
        for at in range(0, len(plain), _AT_ONCE):
            with transaction(connection):
                for one in plain[at : at + _AT_ONCE]:
                    rows.put_verdict(connection, one, now_ns=self._now_ns)
        return sum(self._write_corrected(*one) for one in self._by_correction(corrected))

    def finish(self, found: _Found, since_ns: int) -> int:
        """Record how far evaluation is; return how many contradictions were seen again."""
        connection = self._connections.get()
        with transaction(connection):
            if found.is_new_rules:
                verdicts.forget_digests(connection)
            for trace_id, keys in found.keys.items():
                rows.drop_others(connection, trace_id, keys)
            verdicts.put_digests(connection, found.digests)
            verdicts.write_progress(connection, found.progress)
            return rows.count_again(connection, since_ns=since_ns, now_ns=self._now_ns)

    def _by_correction(
        self, corrected: Sequence[VerdictRow]
    ) -> list[tuple[WriteMemory | None, list[VerdictRow]]]:
        """Return corrections with the verdicts that each corrects; None: those nobody would read.

        Runs of one agent that are wrong of one tool share one: it names the last of them.
        """
        found: dict[object, tuple[WriteMemory | None, list[VerdictRow]]] = {}
        for row in sorted(corrected, key=lambda one: (one.decided_ns or 0, one.claimed_ns)):
            made = self._correction(row)
            key = made and (made.namespace.parts, made.subject, made.attribute)
            _, others = found.get(key, (None, []))
            others.append(row)
            found[key] = (made, others)
        return list(found.values())

    def _write_corrected(self, request: WriteMemory | None, found: Sequence[VerdictRow]) -> bool:
        def put(connection: apsw.Connection, correction: int | None) -> None:
            for row in found:
                rows.put_verdict(
                    connection, replace(row, correction=correction), now_ns=self._now_ns
                )

        if request is None or self._memory is None:
            with transaction(connection := self._connections.get()):
                put(connection, None)
            return False
        self._memory.write(request, along=lambda connection, one: put(connection, one.memory.id))
        return True

    def _correction(self, row: VerdictRow) -> WriteMemory | None:
        if row.memory is not None:
            found = memories_by_number(self._reader, [row.memory], now_ns=self._now_ns)
            memory = found.get(row.memory)
            if memory is None:
                return None
            return correction_of_memory(row, memory, step_id=self._step_id)
        if row.trace_id is None:
            return None
        return correction_of_run(row, self._namespace(row.trace_id), step_id=self._step_id)

    def _namespace(self, trace_id: bytes) -> dict[str, str]:
        """Return the namespace that a run's agent reads: of the memory it used, else its name."""
        used = sources.place_of_run(self._reader, trace_id)
        if used is not None:
            return dict(zip(("project", "user", "agent"), used, strict=True))
        runs = sources.runs_by_trace(self._reader, [trace_id])
        agent = runs[0].agent_name if runs else None
        return {"agent": agent} if agent else {}


def _had_correction(before: VerdictRow | None) -> bool:
    return before is not None and before.correction is not None


def _is_news(row: VerdictRow, before: VerdictRow) -> bool:
    """Return whether a verdict differs from the one that is stored, by what is recorded since.

    What left the window takes nothing back, and further executions that bear a claim out add
    nothing.
    """
    if row.source == "memory" and row.executions < before.executions:
        return False
    return _says(row) != _says(before)


def _says(row: VerdictRow) -> tuple[Any, ...]:
    if row.source == "memory" and row.verdict != "contradicted":
        return (row.verdict,)
    return row.verdict, row.evidence[:1], row.recovered_ns


def _row(one: ClaimStatement, judgement: ClaimJudgement | None) -> VerdictRow:
    claim = one.claim
    row = VerdictRow(
        key=one.key,
        source=one.source,
        trace_id=one.trace_id,
        span_id=one.span_id,
        memory=one.memory,
        message=one.message,
        said=claim.sentence[:1_000],
        start=claim.start,
        subject=claim.topic.name,
        is_tool=claim.topic.is_tool,
        polarity=claim.polarity,
        qualifier=claim.qualifier,
        language=claim.language,
        verdict="unknown",
        why="",
        tool="",
        evidence=(),
        executions=0,
        failures=0,
        claimed_ns=one.output_ns,
        decided_ns=None,
        recovered_ns=None,
    )
    return row if judgement is None else _with(row, judgement)


def _with(row: VerdictRow, judgement: ClaimJudgement) -> VerdictRow:
    """Return a row with a judgement, whose fields have the names of the row's."""
    judged = {one.name: getattr(judgement, one.name) for one in fields(judgement)}
    return replace(row, **judged, correction=None)
