"""What the readings of one run need beside its tree: names, matches of a search, the log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import apsw
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_store.ingest.otlp_records import restore_shell

_NAMES = "SELECT id, role, coalesce(label, name) FROM span WHERE trace_id = :trace"
_MATCHING_STEPS = """
SELECT id FROM span
WHERE trace_id = :trace
  AND (instr(lower(name), :text) OR instr(lower(coalesce(label, '')), :text)
    OR instr(lower(coalesce(tool_name, '')), :text) OR instr(lower(coalesce(model, '')), :text)
    OR instr(lower(coalesce(agent_name, '')), :text) OR instr(lower(coalesce(summary, '')), :text))
"""
# The step that first carried a text; texts that other runs had first are found by /search.
_MATCHING_TEXTS = """
SELECT DISTINCT span.id
FROM text_fts CROSS JOIN text ON text.id = text_fts.rowid
  CROSS JOIN span ON span.id = text.first_span
WHERE text_fts MATCH :match AND span.trace_id = :trace
LIMIT :limit
"""
_RECORDS = """
SELECT span, record FROM span_record WHERE span IN (SELECT value FROM json_each(:spans))
"""
_LOGS = """
SELECT id, time_ns, span_id, severity, event_name, body_text
FROM log_record INDEXED BY log_record_step
WHERE trace_id = :trace
ORDER BY time_ns, id
LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class _LogLine:
    """A log record of a run, as lists show it."""

    id: int
    time_ns: int
    span_id: bytes | None
    severity: int  # OTLP SeverityNumber, 0 unspecified
    event_name: str | None
    body_text: str | None


@dataclass(frozen=True, slots=True)
class EventTime:
    """When a span event happened."""

    time_ns: int
    failed: bool  # an exception


@dataclass(frozen=True, slots=True)
class EventLine:
    """A span event of a run, as lists show it."""

    span: int
    time_ns: int
    name: str
    text: str  # of an exception: its type and message


def step_kinds(connection: apsw.Connection, trace_id: bytes) -> dict[int, tuple[str, str]]:
    """Return role and name of every span of a run, by span.id: what makes repeats repeats."""
    rows = connection.execute(_NAMES, {"trace": trace_id})
    return {span: (role, name) for span, role, name in rows}


def find_steps(
    connection: apsw.Connection, trace_id: bytes, text: str, *, limit: int = 5_000
) -> set[int]:
    """Return the spans of a run whose name or facts contain a text, or that first said it.

    Names match by part of a word, what was said by whole words (the last one by its beginning).
    """
    found = {
        span
        for (span,) in connection.execute(
            _MATCHING_STEPS, {"trace": trace_id, "text": text.lower()}
        )
    }
    match = phrase_of(text)
    if match is None:
        return found
    bindings = {"trace": trace_id, "match": match, "limit": limit}
    found.update(span for (span,) in connection.execute(_MATCHING_TEXTS, bindings))
    return found


def phrase_of(text: str) -> str | None:
    """Return an FTS5 phrase that means these words in this order, None when there is no word."""
    words = text.replace('"', " ").replace("\0", " ").split()
    if not any(letter.isalnum() for word in words for letter in word):
        return None
    return '"' + " ".join(words) + '" *'


def list_log_lines(
    connection: apsw.Connection, trace_id: bytes, *, limit: int = 20_000
) -> Sequence[_LogLine]:
    """Return the log records of a run in order of time."""
    rows = connection.execute(_LOGS, {"trace": trace_id, "limit": limit})
    return [_LogLine(*row) for row in rows]


def list_event_times(
    connection: apsw.Connection, spans: Sequence[int], *, limit: int
) -> dict[int, list[EventTime]]:
    """Return the times of span events, by span.id; stops at `limit` events in all.

    Only the shells of the records are read: no large value is fetched for a dot.
    """
    found: dict[int, list[EventTime]] = {}
    for span, record in connection.execute(_RECORDS, {"spans": json.dumps(list(spans))}):
        events = restore_shell(record).events
        found[span] = [
            EventTime(event.time_unix_nano, event.name == "exception") for event in events[:limit]
        ]
        limit -= len(found[span])
        if limit <= 0:
            break
    return found


def list_events(connection: apsw.Connection, spans: Sequence[int]) -> Iterator[EventLine]:
    """Yield the events of some spans; large values are left out."""
    for span, record in connection.execute(_RECORDS, {"spans": json.dumps(list(spans))}):
        for event in restore_shell(record).events:
            yield EventLine(span, event.time_unix_nano, event.name, _exception_text(event))


def _exception_text(event: Span.Event) -> str:
    attributes = {pair.key: pair.value.string_value for pair in event.attributes}
    parts = (attributes.get("exception.type", ""), attributes.get("exception.message", ""))
    return ": ".join(part for part in parts if part)


# Which model each call of a run requested, and which one served it.

_MODELS = "SELECT span, request_model, response_model FROM call WHERE run = :run"


class CallModels(NamedTuple):
    """None: not reported; a library may report one of the two, or neither."""

    requested: str | None
    served: str | None


def call_models(connection: apsw.Connection, run: int) -> dict[int, CallModels]:
    """Return the models of a run's calls by span.id."""
    return {span: CallModels(*rest) for span, *rest in connection.execute(_MODELS, {"run": run})}
