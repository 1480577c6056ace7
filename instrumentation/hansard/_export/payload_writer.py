"""Content by reference: bytes are stored once under their digest, and spans name it.

On the caller's thread a payload is redacted, hashed and written to the spool; sending is the export
worker's work. The digest is that of the redacted bytes.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from hansard._export.dropped import DropReason
from hansard._export.spool import BINARY, Spool, SpoolKind
from hansard._runtime.warnings import warn_once
from hansard_compiler.retention_modes import RetentionMode

if TYPE_CHECKING:
    from hansard._config.settings import Settings
    from hansard_compiler.redaction.redactor import Redactor

_PLAIN_TYPES: Final = frozenset({"application/json", "text/plain", ""})  # nobody's secret
_HASHED_AT_ONCE: Final = 64 * 1024  # more is worth another thread's while
_PIECE: Final = 2047  # hashlib keeps Python's lock up to here
MAX_BYTES: Final = 64 * 1024 * 1024  # what the collector takes
_KNOWN: Final = 10_000
# The collector may have dropped it since, with the last run that named it.
_KNOWN_S: Final = 600.0


class PayloadWriter:
    """Keeps payloads for this process; safe to use from any thread, and in forks."""

    def __init__(self, settings: Settings, redactor: Redactor, spool: Spool) -> None:
        self._mode = settings.retention
        self._redactor = redactor
        self.spool = spool
        self._lock = threading.Lock()  # guards what follows
        self._known: OrderedDict[str, float] = OrderedDict()  # ref -> until when, monotonic
        self._lost = 0  # payloads, when `_known` was last right
        self._pid = os.getpid()

    def put(self, data: bytes, *, media_type: str, is_clean: bool = False) -> str:
        """Keep bytes and return `sha256:<hex>` of what is stored; "" where nothing is.

        `is_clean`: the caller has redacted them. Never raises: what is not stored is counted, and
        its reference leads nowhere.
        """
        if self._mode is RetentionMode.METADATA_ONLY:
            return ""
        try:
            return self._put(data, media_type, is_clean=is_clean)
        except Exception as error:
            self._lose(DropReason.SPOOL_UNWRITABLE)
            warn_once("payload", "a payload is not kept: %s", error)
            return ""

    def _put(self, data: bytes, media_type: str, *, is_clean: bool) -> str:
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._lock = threading.Lock()
            self.spool.after_fork()
        if self._mode is RetentionMode.REDACTED_PAYLOADS:
            if not is_clean:
                data = self._redactor.redact_bytes(data, media_type).data
            if media_type not in _PLAIN_TYPES and self._redactor.scan_bytes(media_type.encode()):
                media_type = BINARY
        ref = f"sha256:{_digest_of(data)}"
        if self._is_known(ref):
            return ref
        if len(data) > MAX_BYTES:
            self._lose(DropReason.REFUSED)
            return ref
        if self.spool.add_payload(ref, data, media_type=media_type or BINARY):
            self._know(ref)
        return ref

    def _is_known(self, ref: str) -> bool:
        with self._lock:
            if self._lost != self.spool.lost_payloads:
                # One of those known may be among them; all may be sent again.
                self._lost = self.spool.lost_payloads
                self._known.clear()
            return self._known.get(ref, 0.0) > time.monotonic()

    def _know(self, ref: str) -> None:
        with self._lock:
            self._known[ref] = time.monotonic() + _KNOWN_S
            self._known.move_to_end(ref)
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)

    def _lose(self, reason: DropReason) -> None:
        self.spool.lose(SpoolKind.PAYLOADS.signal, reason, 1)


def _digest_of(data: bytes) -> str:
    # In pieces so small that hashing lets no other thread run: with a busy sender beside it,
    # getting Python's lock back took ten times as long as hashing 4 KiB.
    if len(data) > _HASHED_AT_ONCE:
        return hashlib.sha256(data).hexdigest()
    digest = hashlib.sha256()
    for start in range(0, len(data), _PIECE):
        digest.update(data[start : start + _PIECE])
    return digest.hexdigest()
