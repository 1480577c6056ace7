"""Errors that repeat: steps of one tool, model or name that fail with the same signature.

Which failed steps count is decided when they are stored (error_groups/steps.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import apsw

from hansard_store.content.texts import read_text
from hansard_store.detection.rules import (
    DetectionFinding,
    DetectionRule,
    Occurrence,
    SubjectKind,
    in_order,
)
from hansard_store.detection.signatures import MOST_CHARS, signature_of
from hansard_store.error_groups.steps import subject_of
from hansard_store.steps.shared_span_ids import shared_side

MOST_ERRORS: Final = 200_000  # of a window; of more, the newest
_FAILED: Final = f"""
SELECT span.id, error_step.time_ns, span.trace_id, span.span_id, {shared_side("span")}, span.run,
  span.role, span.tool_name, span.model, coalesce(span.label, span.name), error_step.message
FROM error_step INDEXED BY error_step_time CROSS JOIN span ON span.id = error_step.span
WHERE error_step.counted = 1 AND error_step.time_ns > :since AND error_step.time_ns <= :now
ORDER BY error_step.time_ns DESC LIMIT {MOST_ERRORS}
"""
_ERRORS_OF_RUN: Final = """
SELECT text.body FROM text_use INDEXED BY text_use_run CROSS JOIN text ON text.id = text_use.text
WHERE text_use.run = ? AND text.field = 'error' ORDER BY text.id
"""
_CUT: Final = "…"  # ends a message that is not the whole message


class _Failure(NamedTuple):
    """A step that failed, and what it is counted for."""

    kind: SubjectKind
    subject: str
    run: int
    summary: str  # the beginning of what it says; "" nothing
    occurrence: Occurrence


def iter_failures(connection: apsw.Connection, *, since_ns: int, now_ns: int) -> Iterator[_Failure]:
    """Yield what failed since a time, the newest first; an error of several steps counts once."""
    rows: Any = connection.execute(_FAILED, {"since": since_ns, "now": now_ns})
    for number, at_ns, trace_id, span_id, server, run, role, tool, model, name, summary in rows:
        kind, subject = subject_of(role, tool, model, name)
        step_id = f"{trace_id.hex()}-{span_id.hex()}{'.server' if server else ''}"
        found = Occurrence(number, at_ns, "step", step_id)
        yield _Failure(kind, subject, run, summary or "", found)


class Kind(NamedTuple):
    """One kind of error: who fails, and what its messages share."""

    subject_kind: SubjectKind
    subject: str
    signature: str


def errors_by_kind(
    connection: apsw.Connection, *, since_ns: int, now_ns: int
) -> dict[Kind, list[Occurrence]]:
    """Return every kind of error since a time, each with its occurrences, the newest first."""
    found: dict[Kind, list[Occurrence]] = defaultdict(list)
    messages = _Messages(connection)
    for one in iter_failures(connection, since_ns=since_ns, now_ns=now_ns):
        signature = messages.signature(one.run, one.summary)
        found[Kind(one.kind, one.subject, signature)].append(one.occurrence)
    return found


def repeated_errors(
    connection: apsw.Connection, rule: DetectionRule, *, now_ns: int
) -> Iterator[DetectionFinding]:
    """Yield what failed in the same way as often as the rule says, within its window."""
    found = errors_by_kind(connection, since_ns=now_ns - rule.window_ns, now_ns=now_ns)
    for kind, occurrences in found.items():
        if len(occurrences) >= rule.threshold:
            yield DetectionFinding(rule, *kind, in_order(occurrences))


class _Messages:
    """Finds error messages, whole: a step's summary has the beginning of it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._signatures: dict[str, str] = {}
        self._of_runs: dict[int, list[str]] = {}

    def signature(self, run: int, summary: str) -> str:
        line = self._whole(run, summary) if summary.endswith(_CUT) else summary
        known = self._signatures.get(line)
        if known is None:
            known = self._signatures[line] = signature_of(line)
        return known

    def _whole(self, run: int, summary: str) -> str:
        """Return the message that begins so in its run; the summary where none is stored."""
        if run not in self._of_runs:
            rows: Any = self._connection.execute(_ERRORS_OF_RUN, (run,))
            texts = (read_text(self._connection, body) for (body,) in rows)
            self._of_runs[run] = sorted(" ".join(text.split())[:MOST_CHARS] for text in texts)
        lines, beginning = self._of_runs[run], summary.removesuffix(_CUT)
        # In order, since a run may fail ten thousand times, each time in other words.
        found = lines[at] if (at := bisect_left(lines, beginning)) < len(lines) else ""
        return found if found.startswith(beginning) else summary
