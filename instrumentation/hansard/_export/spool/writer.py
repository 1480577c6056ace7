"""Batches on their way to the disk: encoded, written behind all others, or counted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from hansard._export.dropped import Reason
from hansard._export.otlp.batches import encode
from hansard._export.otlp.results import Answer
from hansard._export.spool.backlog import Backlog
from hansard._export.spool.files import Kind, SpoolFile
from hansard._export.spool.forwarder import tell_refused
from hansard._runtime.warnings import warn_once
from hansard.errors import SpoolError

_WAIT_S: Final = 5.0  # after the spool could not be written


class Disk:
    """Writes to a backlog; callers take care of the order."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self.retry_s = 0.0  # when writing is worth another attempt, on the monotonic clock

    def write(self, kind: Kind, items: Sequence[Any]) -> SpoolFile | None:
        """Write items behind all others; None when nothing can be written now."""
        data, count = self._encode(kind, items)
        try:
            return self._backlog.add(kind, data, items=count)
        except SpoolError as error:
            self.retry_s = time.monotonic() + _WAIT_S
            warn_once("spool", "%s: what cannot be sent is lost, and counted", error)
            return None

    def refuse(self, answer: Answer, kind: Kind, refused: Sequence[Any]) -> None:
        """Count what the collector will never take, and keep it for people to look at."""
        if refused:
            tell_refused(answer, kind, len(refused))
            data, count = self._encode(kind, refused)
            if count:
                self._backlog.refuse(kind, count, data)

    def _encode(self, kind: Kind, items: Sequence[Any]) -> tuple[bytes, int]:
        """Return the bytes of items, and of how many; what has none is counted as lost."""
        try:
            return encode(kind, items), len(items)
        except Exception:  # one of them holds something that has no form on the wire
            sound = [item for item in items if _has_form(kind, item)]
            self._backlog.lose(kind.signal, Reason.BROKEN, len(items) - len(sound))
            return encode(kind, sound), len(sound)


def _has_form(kind: Kind, item: Any) -> bool:
    try:
        encode(kind, [item])
    except Exception:  # whatever the encoder raises
        return False
    return True
