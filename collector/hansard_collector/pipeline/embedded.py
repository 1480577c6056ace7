"""The pipeline inside the program that is traced: no server, no receiver, no thread of its own.

The SDK gets `open_embedded` from `hansard_web.embedded` and knows no more of this floor.
What it hands over are the bodies of OTLP requests, so all of ingest is the same as over the wire.
They are written on the calling thread: the SDK has one for sending, and a program that ends may
start none.

This module is imported while the program starts, and so imports only what shows that the extra
`embedded` is installed; the rest comes with `open_embedded`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw  # noqa: F401

from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode

if TYPE_CHECKING:
    from hansard_collector.pipeline.ingest_queue import Pipeline
    from hansard_store.approvals.service import ApprovalService

_PATIENCE_MS = 500  # with other writers: the SDK tries again, and a fork waits for it
_T = TypeVar("_T")


def open_embedded(
    data: Path,
    *,
    retention: RetentionMode,
    sender: str,
    make_redactor: Callable[[bytes], Redactor] = Redactor,
) -> EmbeddedIngest:
    """Open the store of a data folder, made where there is none, and return the way into it.

    `sender` is what the ledger calls this program's SDK, with its version. `make_redactor` gets the
    store's key: a program that forks, or ends while this stores, hands over one that bears it.
    Raises StoreError when the store cannot be opened, is damaged or too new. Other processes may
    write to it meanwhile; each takes the write lock in turn.
    """
    from hansard_collector.pipeline.ingest_queue import Pipeline
    from hansard_collector.pipeline.redaction import RetentionPolicy
    from hansard_store.approvals.service import ApprovalService
    from hansard_store.database.data_folder import DataFolder
    from hansard_store.errors import StoreError

    folder = DataFolder(data)
    try:
        folder.create()
        key = folder.key()
    except OSError as error:
        raise StoreError(f"cannot use {str(data)!r}: {error.strerror}") from error
    policy = RetentionPolicy(retention, make_redactor(key))
    pipeline = Pipeline(folder, policy, helpers=_AtOnce())
    return EmbeddedIngest(pipeline, ApprovalService(folder), sender=sender)


class EmbeddedIngest:
    """An open store; used by one thread at a time, and never by the child of a fork."""

    def __init__(self, pipeline: Pipeline, approvals: ApprovalService, *, sender: str) -> None:
        from hansard_collector.pipeline.requests import RequestSender
        from hansard_store.audit.schedule import SealSchedule

        pipeline.set_patience(_PATIENCE_MS)
        self._pipeline = pipeline
        self._approvals = approvals
        self._seals = SealSchedule(approvals.seal)
        self._sender = RequestSender(address="", user_agent=sender, transport="embedded")

    def export(self, signal: str, body: bytes) -> str:
        """Store an OTLP request, and return when it is committed: "", or why items were refused.

        `signal` is "traces" or "logs"; `body` is the request in protobuf. What is refused singly is
        counted in the ledger. Raises MalformedRequest when the body cannot be read, StoreBusy when
        it cannot be stored now.
        """
        from hansard_collector.pipeline.requests import Encoding, IngestRequest, Signal

        request = IngestRequest(
            signal=Signal(signal),
            encoding=Encoding.PROTOBUF,
            body=body,
            sender=self._sender,
            received_ns=time.time_ns(),
        )
        stored = self._pipeline.submit(request)
        self._pipeline.work_off()
        self._seals.look()
        try:
            return stored.result(timeout=0).message
        finally:
            del stored  # it holds the error that is raised, and the error this frame

    def close(self) -> None:
        """Close the store without waiting."""
        self._pipeline.set_patience(0)
        self._pipeline.close()
        self._seals.end()
        self._approvals.close()


class _AtOnce(Executor):
    """Runs jobs on the thread of their caller."""

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Return a future that is done."""
        try:
            return _done(fn(*args, **kwargs))
        except Exception as error:
            return _failed(error)


# Made outside of the frames that the error passed through: they must not hold its future.
def _done(result: _T) -> Future[_T]:
    done: Future[_T] = Future()
    done.set_result(result)
    return done


def _failed(error: Exception) -> Future[Any]:
    failed: Future[Any] = Future()
    failed.set_exception(error)
    return failed
