"""Runs and steps on their way out, as the OTLP they came in, in slices."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hansard_collector.otlp.json_codec import encode_json
from hansard_collector.otlp.stored_records import Reexport, slices
from hansard_collector.transfer import ANNOTATIONS
from hansard_store.annotations.queries import AnnotationBody, annotation_json, written_in_run
from hansard_store.errors import InvalidQueryError
from hansard_store.maintenance.export import is_sent, log_ids, span_ids
from hansard_store.runs.queries import get_run
from hansard_store.steps.queries import get_step, get_tree
from hansard_web.api.values import dump
from hansard_web.app.readers import Readers

_SLICE = 200  # items read, encoded and sent at a time
JSON, PROTOBUF, LINES = "application/json", "application/x-protobuf", "application/x-ndjson"
HTML = "text/html; charset=utf-8"
_SUFFIXES = {"otlp-json": "json", "otlp-proto": "binpb", "jsonl": "jsonl", "html": "html"}
FORMATS = tuple(_SUFFIXES)
_HTML_TIMEOUT_MS = 30_000  # 2,000 steps are read


@dataclass(frozen=True, slots=True)
class Contents:
    """What an export holds: span.ids and log_record.ids, in the order they were stored."""

    spans: list[int]
    logs: list[int]
    annotations: Sequence[AnnotationBody] = ()  # written here; other receivers leave it out


@dataclass(frozen=True, slots=True)
class Export:
    """A run on its way out."""

    name: str  # of a file to keep it in
    media_type: str
    body: Iterator[bytes]


def open_raw(readers: Readers, step_id: str) -> Iterator[bytes]:
    """Begin to read one step back as OTLP/JSON."""
    with readers.read() as connection:
        step = get_step(connection, step_id, now_ns=time.time_ns())
        trace_id, span_id = bytes.fromhex(step.run_id), bytes.fromhex(step.span_id)
        spans = [step.id] if is_sent(connection, step.id) else []
        contents = Contents(spans, log_ids(connection, trace_id, span_id=span_id))
    return _as_json(readers, contents)


def _as_html(readers: Readers, run_id: str) -> Export:
    from hansard_web.html_export import saved_run  # loads what draws the pages

    with readers.read(timeout_ms=_HTML_TIMEOUT_MS) as connection:
        file = saved_run(connection, run_id, trees=get_tree, now_ns=time.time_ns())
    return Export(file.name, HTML, iter([file.body]))


def open_export(readers: Readers, run_id: str, format: str) -> Export:
    """Begin to export a run; its body is read from the store while it is consumed."""
    if format not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise InvalidQueryError("format", f"format is {format!r}; it can be {known}")
    if format == "html":
        return _as_html(readers, run_id)
    with readers.read() as connection:
        run = get_run(connection, run_id, now_ns=time.time_ns())
        trace_id = bytes.fromhex(run.run_id)
        notes = [annotation_json(one) for one in written_in_run(connection, trace_id)]
        contents = Contents(span_ids(connection, trace_id), log_ids(connection, trace_id), notes)
    name = f"run-{run.run_id}.{_SUFFIXES[format]}"
    if format == "otlp-proto":
        return Export(name, PROTOBUF, _as_protobuf(readers, contents))
    if format == "jsonl":
        return Export(name, LINES, _as_lines(readers, contents))
    return Export(name, JSON, _as_json(readers, contents))


# Each slice borrows a connection of its own: a slow reader must not hold a snapshot, which would
# keep the write-ahead log from being checkpointed.


def _as_protobuf(readers: Readers, contents: Contents) -> Iterator[bytes]:
    # Serialised messages joined are the serialisation of the merged message.
    again = Reexport()
    for some in slices(contents.spans, size=_SLICE):
        with readers.read() as connection:
            yield again.spans(connection, some).SerializeToString()


def _as_lines(readers: Readers, contents: Contents) -> Iterator[bytes]:
    for key, envelopes in _envelopes(readers, contents):
        yield dump({key: envelopes}) + b"\n"
    if contents.annotations:
        yield dump({ANNOTATIONS: contents.annotations}) + b"\n"


def _as_json(readers: Readers, contents: Contents) -> Iterator[bytes]:
    yield b'{"resourceSpans":['
    section, comma = "resourceSpans", b""
    for key, envelopes in _envelopes(readers, contents):
        if key != section:
            yield b'],"resourceLogs":['
            section, comma = key, b""
        for envelope in envelopes:
            yield comma + dump(envelope)
            comma = b","
    yield b"]" if section == "resourceLogs" else b'],"resourceLogs":[]'
    if contents.annotations:
        yield b',"%s":' % ANNOTATIONS.encode() + dump(contents.annotations)
    yield b"}"


def _envelopes(readers: Readers, contents: Contents) -> Iterator[tuple[str, list[object]]]:
    """Yield a key of OTLP/JSON and its envelopes, a slice at a time: all spans, then all logs."""
    again = Reexport()
    for some in slices(contents.spans, size=_SLICE):
        with readers.read() as connection:
            data = encode_json(again.spans(connection, some))
        yield "resourceSpans", data.get("resourceSpans", [])
    for some in slices(contents.logs, size=_SLICE):
        with readers.read() as connection:
            data = encode_json(again.logs(connection, some))
        yield "resourceLogs", data.get("resourceLogs", [])
