"""Embedded mode: the program stores its own record, with no server beside it.

A sender like those of the wire, so that batches, the disk spool, open spans, payloads and loss
counts stay as they are; only the last step is another one. The ingest pipeline is found by its
entry point, as the package may be installed without it.

SQLite must not be open when a process forks: its locks belong to the process, and the child would
take the parent's for its own. So before a fork the store is closed, which waits for the batch that
is being written for a second at most. A child that could not wait so long never opens the store;
what it records goes to the spool, and the next process stores it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from hansard._backend.protocol import IngestBackend, embedded_parts
from hansard._export.otlp.batches import encode
from hansard._export.otlp.exporter import ACCEPTED, BROKEN, ExportOutcome, ExportResponse, listening
from hansard._export.otlp.log_records import encode_payloads
from hansard._export.secret_scanner import ForkSafeRedactor
from hansard._export.spool import SpooledPayload, SpoolKind
from hansard._runtime.warnings import warn_once
from hansard_compiler.errors import HansardError

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

    from hansard._config.settings import Settings

_FORK_S: Final = 1.0  # that a fork waits for the batch under way
_OPEN_S: Final = 10.0  # the same while the pipeline is imported and the store opened: half a second
_CLOSE_S: Final = 0.2  # at the end
_NEVER: Final = frozenset({"malformed", "too_large"})  # codes of what no retry makes better
_log = logging.getLogger("hansard")


class EmbeddedSender:
    """Stores the batches that it gets.

    The lock is held while the store is opened, written or closed, and across a fork.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # Its executor's module cannot be imported any more when a program ends.
        import concurrent.futures.thread  # noqa: F401

        self._parts = embedded_parts()
        self._lock = threading.Lock()
        self._ingest: IngestBackend | None = None
        self._is_closed = False
        self._is_opening = False
        _forks.follow(self)

    def send(self, kind: SpoolKind, items: Sequence[Any]) -> ExportResponse:
        """Store spans, ended or not, or log records: keepalives, counts of dropped items."""
        return self._send(kind, partial(encode, kind, items))

    def send_payloads(
        self, payloads: Sequence[SpooledPayload], resource: Resource
    ) -> ExportResponse:
        """Store payloads."""
        return self._send(SpoolKind.LOGS, partial(encode_payloads, payloads, resource))

    def _send(self, signal: str, encoded: Callable[[], bytes]) -> ExportResponse:
        try:
            body = encoded()
        except Exception:  # whatever the encoder raises: halves are tried, and what is left
            return BROKEN
        # What the pipeline logs for a server's owner, the response reports to the program, once.
        with self._lock, listening() as lines:
            if self._is_closed or _forks.is_unsafe:
                return ExportResponse(ExportOutcome.LATER, "the store is not open in this process")
            response = self._store(signal, body)
        for line in lines:
            _log.debug("the store: %s", line.getMessage())
        if response.outcome is ExportOutcome.LATER and lines:
            return ExportResponse(ExportOutcome.LATER, lines[-1].getMessage())  # it has the cause
        return response

    def _store(self, signal: str, body: bytes) -> ExportResponse:
        try:
            if self._ingest is None:
                self._ingest = self._opened()
            refused = self._ingest.export(signal, body)
        except HansardError as error:
            outcome = ExportOutcome.REFUSED if error.code in _NEVER else ExportOutcome.LATER
            return ExportResponse(outcome, str(error))
        except Exception as error:  # of SQLite, of the disk, or a fault of ours
            problem = f"{type(error).__name__}: {error}"
            return ExportResponse(
                ExportOutcome.LATER if self._ingest is None else ExportOutcome.DOUBTFUL, problem
            )
        if refused:
            warn_once("rejected", "the store does not take some of what was recorded: %s", refused)
        return ACCEPTED

    def _opened(self) -> IngestBackend:
        from hansard import __version__

        self._is_opening = True
        try:
            return self._parts.open_embedded(
                self._settings.data,
                retention=self._settings.retention,
                sender=f"hansard-python/{__version__}",
                make_redactor=ForkSafeRedactor,
            )
        finally:
            self._is_opening = False

    def close(self) -> None:
        """Close the store; one that is being written is left to its thread."""
        self._is_closed = True
        if self._lock.acquire(timeout=_CLOSE_S):
            try:
                self._let_go()
            finally:
                self._lock.release()

    def _let_go(self) -> None:
        ingest, self._ingest = self._ingest, None
        if ingest is not None:
            try:
                ingest.close()
            except Exception as error:  # what was committed is safe; the next opening does the rest
                _log.debug("the store was not closed in good order: %r", error)

    # ---- around a fork

    def hold(self) -> bool:
        """Close the store and keep it closed until `go_on`; False when there is no time for it."""
        # Forked during an import, the child would wait for ever for the import's lock.
        wait_s = _OPEN_S if self._is_opening else _FORK_S
        if not self._lock.acquire(timeout=wait_s):
            return False
        self._let_go()
        return True

    def go_on(self) -> None:
        """In the parent: the store is opened again with the next batch."""
        self._lock.release()


class _Forks:
    """Sees to it that no store is open while this process forks."""

    def __init__(self) -> None:
        self.senders: WeakSet[EmbeddedSender] = WeakSet()
        self.is_unsafe = False  # an open store was inherited: never open one here
        self._held: list[EmbeddedSender] = []
        self._missed: list[EmbeddedSender] = []
        self._is_registered = False

    def follow(self, sender: EmbeddedSender) -> None:
        """Close this sender's store whenever the process forks, from now on."""
        self.senders.add(sender)
        if not self._is_registered and hasattr(os, "register_at_fork"):
            import ctypes  # noqa: F401, nothing is imported between a fork and its end

            self._is_registered = True
            os.register_at_fork(
                before=self._before, after_in_parent=self._in_parent, after_in_child=self._in_child
            )

    def _before(self) -> None:
        self._held, self._missed = [], []
        for sender in list(self.senders):
            (self._held if sender.hold() else self._missed).append(sender)

    def _in_parent(self) -> None:
        held, self._held = self._held, []
        for sender in held:
            sender.go_on()

    def _in_child(self) -> None:
        # The parent's senders stay locked here, so they cannot be used by mistake.
        self.senders = WeakSet()
        for sender in self._missed:
            self.is_unsafe = True
            _never_free(sender)
        self._held, self._missed = [], []


def _never_free(value: object) -> None:
    """Keep something beyond the end of the interpreter.

    Closing a connection that was open in the parent would undo, in memory that both share, what the
    parent is writing.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


_forks = _Forks()
