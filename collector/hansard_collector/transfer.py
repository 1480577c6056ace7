"""Telemetry from files into a store, and out of it into a file.

Read are OTLP/JSON (one object, or one a line, as the OpenTelemetry Collector's file exporter and
our own export write it) and OTLP protobuf (one request, or many, each behind its length in four
bytes), plain or packed with gzip or zstd. What is imported goes the way of what is received.
"""

from __future__ import annotations

import gzip
import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

import apsw
import orjson
import zstandard
from google.protobuf.message import DecodeError, Message

from hansard_collector.errors import MalformedRequest, StoreBusy
from hansard_collector.otlp.json_codec import encode_json
from hansard_collector.otlp.signals import CONTRACTS
from hansard_collector.otlp.stored_records import Reexport
from hansard_collector.pipeline.requests import (
    Encoding,
    Ingest,
    IngestRequest,
    IngestResult,
    RequestSender,
    Signal,
)
from hansard_compiler.errors import HansardError
from hansard_store.annotations.queries import annotation_json, written_annotations
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.maintenance.export import all_ids

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_AT_ONCE_BYTES = 4 * 1024 * 1024  # of one request
_UNDERWAY = 16  # requests that wait for their commit together
_ENVELOPES = {
    "resourceSpans": Signal.TRACES,
    "resourceLogs": Signal.LOGS,
    "resourceMetrics": Signal.METRICS,
}
_SLICE = 200  # items of one exported line
# Beside the keys of OTLP/JSON, where receivers leave out what they do not know.
ANNOTATIONS = "hansardAnnotations"
Restore = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class _Problem:
    """Something in a file that was not imported."""

    where: str  # file, and line if it has lines
    message: str


@dataclass(slots=True)
class Imported:
    """The outcome of the files."""

    requests: int = 0
    accepted: int = 0  # items, those among them that were known before
    rejected: int = 0
    annotations: int = 0  # that were not known before
    problems: list[_Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Part:
    """A request found in a file; or annotations, which go into the store as they are."""

    where: str
    signal: Signal
    encoding: Encoding
    body: bytes


@dataclass(frozen=True, slots=True)
class _Annotations:
    where: str
    annotations: Sequence[Any]


def import_files(
    ingest: Ingest,
    paths: Sequence[Path],
    *,
    restore: Restore | None = None,
    progress: Callable[[str, int, int], None] = lambda _where, _done, _total: None,
) -> Imported:
    """Put files through a running pipeline; waits until all of it is committed.

    What cannot be read is listed as a problem and does not keep the rest out. Raises StoreBusy when
    the store cannot be written; importing the same files again then costs nothing but time.
    `restore` takes an exported annotation; without it they are left out.
    """
    imported = Imported()
    underway: deque[tuple[_Part, Future[IngestResult]]] = deque()
    for done, path in enumerate(paths):
        progress(str(path), done, len(paths))
        for part in _parts_of(path, imported):
            if isinstance(part, _Annotations):
                while underway:  # what they are on comes first
                    _settle(*underway.popleft(), imported)
                _restore(part, restore, imported)
                continue
            if len(underway) >= _UNDERWAY:
                _settle(*underway.popleft(), imported)
            underway.append((part, _submit(ingest, part, underway, imported)))
    while underway:
        _settle(*underway.popleft(), imported)
    progress("", len(paths), len(paths))
    return imported


def _submit(
    ingest: Ingest,
    part: _Part,
    underway: deque[tuple[_Part, Future[IngestResult]]],
    imported: Imported,
) -> Future[IngestResult]:
    sender = RequestSender(address=part.where, user_agent="hansard import", transport="import")
    request = IngestRequest(part.signal, part.encoding, part.body, sender, time.time_ns())
    while True:
        try:
            return ingest.submit(request)
        except StoreBusy:
            if not underway:
                raise
            _settle(*underway.popleft(), imported)  # makes room in the queue


def _restore(part: _Annotations, restore: Restore | None, imported: Imported) -> None:
    if restore is None:
        return
    for annotation in part.annotations:
        try:
            imported.annotations += restore(annotation if isinstance(annotation, dict) else {})
        except HansardError as error:
            imported.problems.append(_Problem(part.where, f"an annotation is left out: {error}"))


def _settle(part: _Part, future: Future[IngestResult], imported: Imported) -> None:
    try:
        result = future.result()
    except MalformedRequest as error:
        imported.problems.append(_Problem(part.where, str(error)))
        return
    imported.requests += 1
    imported.accepted += result.accepted
    imported.rejected += result.rejected
    if result.message:
        imported.problems.append(_Problem(part.where, result.message))


# ---- what is in a file


def _parts_of(path: Path, imported: Imported) -> Iterator[_Part | _Annotations]:
    try:
        with _opened(path) as file:
            begin = file.peek(1)[:64].lstrip()
            if begin[:1] in (b"{", b"[") or begin.startswith(b"\xef\xbb\xbf"):
                yield from _json_parts(path, file, imported)
            elif begin:
                yield from _protobuf_parts(path, file.read())
    except (OSError, EOFError, zstandard.ZstdError) as error:
        imported.problems.append(_Problem(str(path), f"cannot be read: {error}"))
    except MalformedRequest as error:
        imported.problems.append(_Problem(str(path), str(error)))


def _opened(path: Path) -> BufferedReader:
    """Open a file, unpacking it as it is read."""
    file = path.open("rb")
    begin = file.peek(4)[:4]
    if begin.startswith(_GZIP):
        file.close()
        return BufferedReader(cast(Any, gzip.open(path)))
    if begin.startswith(_ZSTD):
        unpacked = zstandard.ZstdDecompressor().stream_reader(
            file, closefd=True, read_across_frames=True
        )
        return BufferedReader(cast(Any, unpacked))
    return file


def _json_parts(path: Path, file: IO[bytes], imported: Imported) -> Iterator[_Part | _Annotations]:
    """Yield the requests of a line each, or of a file that is one document."""
    first = file.readline()
    document = _parsed(first)
    if document is None:
        whole = first + file.read()
        document = _parsed(whole)
        if document is None:
            raise MalformedRequest("neither JSON nor a JSON object a line")
        yield from _requests_of(str(path), document, whole)
        return
    yield from _line(f"{path}:1", document, first, imported)
    for number, line in enumerate(file, start=2):
        if line.strip():
            yield from _line(f"{path}:{number}", _parsed(line), line, imported)


def _line(
    where: str, document: Any, line: bytes, imported: Imported
) -> Iterator[_Part | _Annotations]:
    try:
        yield from _requests_of(where, document, line)
    except MalformedRequest as error:
        imported.problems.append(_Problem(where, str(error)))


def _parsed(text: bytes) -> Any:
    """Return a JSON document; None for what is none."""
    try:
        return orjson.loads(text.removeprefix(b"\xef\xbb\xbf"))
    except ValueError:
        try:
            return json.loads(text)  # lone surrogates, NaN, integers past 64 bits
        except ValueError:
            return None


def _requests_of(where: str, document: Any, text: bytes) -> Iterator[_Part | _Annotations]:
    """Take a document apart by signals; one that needs it not is left as it was written."""
    if isinstance(document, list):
        for one in document:
            yield from _requests_of(where, one, orjson.dumps(one))
        return
    keys = [key for key in _ENVELOPES if key in document] if isinstance(document, dict) else []
    annotations = document.get(ANNOTATIONS) if isinstance(document, dict) else None
    if not keys and annotations is None:
        raise MalformedRequest("no resourceSpans, resourceLogs or resourceMetrics in it")
    if len(keys) == 1 and annotations is None and len(text) <= _AT_ONCE_BYTES:
        yield _Part(where, _ENVELOPES[keys[0]], Encoding.JSON, text)
        return
    for key in keys:
        for group in _groups(document[key]):
            body = b'{"%s":[%s]}' % (key.encode(), b",".join(group))
            yield _Part(where, _ENVELOPES[key], Encoding.JSON, body)
    if isinstance(annotations, list):
        yield _Annotations(where, annotations)


def _groups(envelopes: Any) -> Iterator[list[bytes]]:
    """Put envelopes together until a request is large enough."""
    group: list[bytes] = []
    size = 0
    for envelope in envelopes if isinstance(envelopes, list) else ():
        text = _dumped(envelope)
        if group and size + len(text) > _AT_ONCE_BYTES:
            yield group
            group, size = [], 0
        group.append(text)
        size += len(text)
    if group:
        yield group


def _dumped(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # what orjson could not read either
        return json.dumps(value).encode("ascii")


def _protobuf_parts(path: Path, data: bytes) -> Iterator[_Part]:
    bodies = _framed(data)
    for number, body in enumerate(bodies, start=1):
        where = str(path) if len(bodies) == 1 else f"{path}, request {number}"
        yield _Part(where, _signal_of(path, body), Encoding.PROTOBUF, body)


def _framed(data: bytes) -> list[bytes]:
    """Return the messages behind their lengths, as the Collector writes them, or all as one."""
    found, position = [], 0
    while position + 4 <= len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        found.append(data[position + 4 : position + 4 + size])
        position += 4 + size
    # A request begins with the byte 10: as a length, that would be more than 160 MB.
    return found if position == len(data) and data[:1] != b"\n" else [data]


_NAMED = re.compile(r"(?:^|[^a-z])(trace|span|log|metric)s?(?:[^a-z]|$)", re.ASCII)
_MEANT = {
    "trace": Signal.TRACES,
    "span": Signal.TRACES,
    "log": Signal.LOGS,
    "metric": Signal.METRICS,
}


def _signal_of(path: Path, body: bytes) -> Signal:
    """Return the signal that a file's name gives, else the one whose message it can be."""
    named = _NAMED.search(path.name.lower())
    if named is not None:
        return _MEANT[named[1]]
    for signal, looks_right in _LOOKS.items():
        items = _items_as(signal, body)
        if items and all(map(looks_right, items)):
            return signal
    raise MalformedRequest(
        "no OTLP request of any signal; JSON begins with {, and the name of a protobuf file may "
        "tell its signal: traces, logs or metrics"
    )


def _items_as(signal: Signal, body: bytes) -> list[Any]:
    """Return the items of a body as a request of a signal; none where it is no such request."""
    outer, inner, leaf = CONTRACTS[signal].levels
    try:
        message = CONTRACTS[signal].request.FromString(body)
    except DecodeError:
        return []
    scopes = (scope for resource in getattr(message, outer) for scope in getattr(resource, inner))
    return [item for scope in scopes for item in getattr(scope, leaf)]


# Whether an item that was read as one of a signal is one.
_LOOKS: Mapping[Signal, Callable[[Any], bool]] = {
    Signal.TRACES: lambda span: len(span.trace_id) == 16,
    Signal.METRICS: lambda metric: bool(metric.WhichOneof("data")),
    Signal.LOGS: lambda record: len(record.trace_id) in (0, 16),
}


# ---- a whole store


def export_store(folder: DataFolder) -> Iterator[bytes]:
    """Yield all spans, log records and metrics as OTLP/JSON, an object a line; then annotations.

    Imported again, they make an equal store. Each line is read in a state of its own, so a slow
    reader of them keeps nothing from being written or checkpointed.
    """
    again = Reexport()
    for key, signal, read in (
        ("resourceSpans", "traces", again.spans),
        ("resourceLogs", "logs", again.logs),
        ("resourceMetrics", "metrics", again.points),
    ):
        after = 0
        while (line := _exported(folder, signal, read, after=after)) is not None:
            after, envelopes = line
            if envelopes:
                yield _dumped({key: envelopes[key]}) + b"\n"
    yield from _exported_annotations(folder)


def _exported_annotations(folder: DataFolder) -> Iterator[bytes]:
    """Yield what people and programs wrote here; what spans state goes with them."""
    after = 0
    while True:
        with closing(open_reader(folder)) as connection:
            found = written_annotations(connection, after=after, limit=_SLICE)
        if not found:
            return
        after = found[-1].id
        yield _dumped({ANNOTATIONS: [annotation_json(one) for one in found]}) + b"\n"


def _exported(
    folder: DataFolder,
    signal: str,
    read: Callable[[apsw.Connection, Sequence[int]], Message],
    *,
    after: int,
) -> tuple[int, dict[str, Any]] | None:
    """Return the last number of the next slice and its items; None when there are no more."""
    with closing(open_reader(folder)) as connection:
        numbers = all_ids(connection, signal, after=after, limit=_SLICE)
        return (numbers[-1], encode_json(read(connection, numbers))) if numbers else None
