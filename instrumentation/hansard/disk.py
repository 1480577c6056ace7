"""Batches on their way to the disk: encoded, written behind all others, or counted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from hansard.answers import Answer
from hansard.backlog import Backlog
from hansard.courier import encode
from hansard.errors import SpoolError
from hansard.forwarding import tell_refused
from hansard.losses import Reason
from hansard.spool import Kind, SpoolFile
from hansard.trouble import warn_once

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
