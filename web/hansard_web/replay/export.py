"""One step with all that a replay needs, as one file: OTLP/JSON that any Hansard imports.

It holds the span of the call, that of its compile, and every payload they name, so that the step
replays on another machine under the same id. Secrets are as gone in it as in the store.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import apsw
import orjson

from hansard import __version__, semconv
from hansard_collector.otlp.json_codec import encode_json
from hansard_collector.otlp.stored_records import Reexport
from hansard_collector.payloads import standing_of
from hansard_compiler.calls import Json
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_store.content.payloads import folder_of, read_payload
from hansard_store.errors import StoreCorruptError
from hansard_web.api.values import dump
from hansard_web.replay.source import ReplayedStep, read_source

VERSION: Final = "1"
_KEY: Final = "hansard_recipe"
_REF: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_MOST_BYTES: Final = 1 << 30  # of a recipe file that is read


def recipe_file(connection: apsw.Connection, step_id: str) -> bytes:
    """Return a step as a recipe file. Raises NotReplayable, NotFoundError or AmbiguousIdError."""
    source = read_source(connection, step_id, now_ns=time.time_ns())
    spans = [source.step.id]
    if source.compilation is not None and source.compilation.span not in spans:
        spans.append(source.compilation.span)
    data = encode_json(Reexport().spans(connection, spans))
    refs = sorted(set(_REF.findall(dump(data).decode())))
    records, missing = _records(connection, refs)
    head = {
        "version": VERSION,
        "step_id": source.step.step_id,
        "made_by": f"hansard {__version__}",
        "payloads": len(records),
        "missing": missing,
    }
    scope = {"scope": {"name": semconv.SCOPE_NAME}, "logRecords": records}
    logs = [{"resource": {}, "scopeLogs": [scope]}] if records else []
    return dump({_KEY: head, "resourceSpans": _marked(data, source), "resourceLogs": logs})


def step_of_file(path: Path) -> str:
    """Return the step that a recipe file holds; raises NotReplayable for any other file."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise NotReplayable(ReplayReason.RECIPE_UNREADABLE, f"{path} is larger than 1 GiB")
        head = orjson.loads(path.read_bytes())[_KEY]
        step_id, version = head["step_id"], head["version"]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        raise NotReplayable(
            ReplayReason.RECIPE_UNREADABLE, f"{path} is no recipe file (`hansard export --recipe`)"
        ) from None
    if version != VERSION:
        raise NotReplayable(
            ReplayReason.RECIPE_UNREADABLE, f"{path} is version {version!r}; this reads {VERSION!r}"
        )
    return str(step_id)


def _marked(data: Any, source: ReplayedStep) -> Sequence[Any]:
    found: Sequence[Any] = data.get("resourceSpans", [])
    if not found:
        raise NotReplayable(
            ReplayReason.NOT_RECORDED, f"{source.step.step_id} was not sent as a span"
        )
    return found


def _records(connection: apsw.Connection, refs: Sequence[str]) -> tuple[list[Json], list[str]]:
    """Return payloads as log records, and the references whose bytes are not here as sent."""
    records, missing = [], []
    for ref in refs:
        _, payload = standing_of(connection, ref)
        data = None
        if payload is not None and payload.redacted is None:
            with suppress(StoreCorruptError):
                data = read_payload(folder_of(connection), payload)
        if payload is None or data is None:
            missing.append(ref)
        else:
            records.append(_record(ref, data, payload.media_type))
    return records, missing


def _record(ref: str, data: bytes, media_type: str) -> Json:
    attributes = {semconv.PAYLOAD_DIGEST: ref, semconv.PAYLOAD_MEDIA_TYPE: media_type}
    return {
        "timeUnixNano": str(time.time_ns()),
        "eventName": semconv.EVENT_PAYLOAD,
        "body": {"bytesValue": base64.b64encode(data).decode()},
        "attributes": [
            {"key": key, "value": {"stringValue": value}} for key, value in attributes.items()
        ],
    }
