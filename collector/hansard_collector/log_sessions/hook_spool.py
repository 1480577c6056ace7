"""The spooled records of hooks, written without a server: read into the store, once each.

    <data>/spool/hooks/<time>-<process>-<random>.json    an ExportLogsServiceRequest

A file is removed after its record is committed. One that is read twice is stored once: records are
known by their bytes. A file that is no such request is set aside as `.refused`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hansard._hooks.delivery import FOLDER
from hansard_collector.background import Background
from hansard_collector.errors import MalformedRequest, StoreBusy
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import (
    Encoding,
    Ingest,
    IngestRequest,
    IngestResult,
    RequestSender,
    Signal,
)
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder

_EVERY_S: Final = 15.0
_ANSWER_S: Final = 60.0
_MOST_AT_ONCE: Final = 256  # files that wait for one answer
_MOST_BYTES: Final = 8 << 20  # of one file; a hook writes less
_SENDER: Final = RequestSender(address="", user_agent="hansard-hook", transport="spool")

_log = logging.getLogger("hansard.hooks")


@dataclass(frozen=True, slots=True)
class Ingested:
    """What one look at the folder did; `waiting` files are left for the next."""

    stored: int
    refused: int
    waiting: int


def ingest_hook_spool(
    data: Path, ingest: Ingest, *, stop: threading.Event | None = None
) -> Ingested:
    """Submit all that hooks wrote down, in the order of its time, and wait for the commits."""
    outcomes: Counter[str] = Counter()
    files = _files(data)
    for begin in range(0, len(files), _MOST_AT_ONCE):
        if stop is not None and stop.is_set():
            outcomes["waiting"] += len(files) - begin
            break
        submitted = list(_submitted(files[begin : begin + _MOST_AT_ONCE], ingest))
        for path, future in submitted:
            outcomes[_outcome(path, future)] += 1
    return Ingested(outcomes["stored"], outcomes["refused"], outcomes["waiting"])


def ingest_hook_spool_offline(data: Path, retention: RetentionMode) -> Ingested:
    """The same for a store without a server, with a pipeline for that time; raises StoreError."""
    if not _files(data):
        return Ingested(0, 0, 0)
    folder = DataFolder(data)
    folder.create()
    pipeline = Pipeline(folder, RetentionPolicy(retention, Redactor(folder.key())))
    pipeline.start()
    try:
        return ingest_hook_spool(data, pipeline)
    finally:
        pipeline.close()


def hook_spool_watch(data: Path, ingest: Ingest) -> Background:
    """Return what reads hooks' records beside a running server, at its start and now and again."""
    return Background(
        "hansard-hook-spool",
        lambda stop: ingest_hook_spool(data, ingest, stop=stop),
        every_s=_EVERY_S,
        log=_log,
        put_off="what hooks wrote down is read later",
    )


def _files(data: Path) -> list[Path]:
    """Return the files that wait, the oldest first."""
    try:
        return sorted((data / FOLDER).glob("[0-9]*.json"))
    except OSError:
        return []


def _submitted(
    files: list[Path], ingest: Ingest
) -> Iterator[tuple[Path, Future[IngestResult] | None]]:
    for path in files:
        try:
            if path.stat().st_size > _MOST_BYTES:
                _set_aside(path)
                continue
            body = path.read_bytes()
            request = IngestRequest(
                Signal.LOGS, Encoding.JSON, body, _SENDER, received_ns=time.time_ns()
            )
            yield path, ingest.submit(request)
        except (OSError, StoreBusy):
            yield path, None


def _outcome(path: Path, future: Future[IngestResult] | None) -> str:
    """Wait for one request and settle its file: stored, refused, or waiting for another time."""
    if future is None:
        return "waiting"
    try:
        future.result(_ANSWER_S)
    except MalformedRequest:
        _set_aside(path)
        return "refused"
    except (StoreBusy, TimeoutError):
        return "waiting"
    with contextlib.suppress(OSError):
        path.unlink()
    return "stored"


def _set_aside(path: Path) -> None:
    _log.warning("%s is no record of a hook; it is set aside", path)
    with contextlib.suppress(OSError):
        path.replace(path.with_suffix(".refused"))
