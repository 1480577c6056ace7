"""Makers of payloads, of the log records that carry them, and of spans that name them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_store.database.compression import unpack
from hansard_store.errors import StoreCorruptError
from tests.collector.ingesting import START_NS, Ingesting, pairs, span, tables

DIGEST = "hansard.payload.digest"
MEDIA_TYPE = "hansard.payload.media_type"
SECRET = "sk-ant-api03-" + "Qx7Rm2Vp9Lk4" * 8 + "AA"
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o-mini",
    "gen_ai.usage.input_tokens": 12,
    "gen_ai.usage.output_tokens": 7,
}


def ref_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_of(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def record(
    data: bytes,
    *,
    ref: str | None = None,
    media_type: str | None = "application/json",
    body: AnyValue | None = None,
) -> LogRecord:
    """Return the log record in which the SDK sends a payload."""
    told = {DIGEST: ref_of(data) if ref is None else ref}
    return LogRecord(
        time_unix_nano=START_NS,
        event_name="hansard.payload",
        attributes=pairs(told | ({MEDIA_TYPE: media_type} if media_type else {})),
        body=AnyValue(bytes_value=data) if body is None else body,
    )


def message_json(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def asked(text: str) -> bytes:
    """Return input messages as the bytes of a payload."""
    return json.dumps([message_json("user", text)]).encode()


def answered(text: str) -> bytes:
    return json.dumps([message_json("assistant", text)]).encode()


def chat(refs: Mapping[str, bytes], number: int = 1, *, attributes: Mapping[str, Any] = {}) -> Span:
    """Return a model call whose content stands in payloads: `{"gen_ai.input.messages": b"…"}`."""
    named = {f"{key}_ref": ref_of(data) for key, data in refs.items()}
    return span(number, name="chat gpt-4o-mini", attributes={**CHAT, **named, **attributes})


def kept_somewhere(ingesting: Ingesting, canary: bytes) -> list[str]:
    """Return where these bytes are kept: in which file as they are, in which table unpacked."""
    return [
        *kept_in_files(ingesting.folder.path, canary),
        *kept_in_tables(ingesting.db, canary),
    ]


def kept_in_files(folder: Path, canary: bytes) -> list[str]:
    """Return the files below a folder that hold these bytes as they are."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if canary in path.read_bytes()]


def kept_in_tables(connection: apsw.Connection, canary: bytes) -> list[str]:
    """Return the tables that hold these bytes, packed or not."""
    found = []
    for table, rows in tables(connection).items():
        if any(canary in value for row in rows for value in _readings(row)):
            found.append(table)
    return found


def _readings(row: Iterable[Any]) -> Iterator[bytes]:
    for value in row:
        if isinstance(value, str):
            yield value.encode("utf-8", "replace")
        elif isinstance(value, bytes):
            yield value
            with suppress(StoreCorruptError):
                yield unpack(value)
