"""The state of the collector: reachable, failing, or not known yet; and when to retry."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Final

from hansard._export.otlp.exporter import ExportOutcome, ExportResponse
from hansard._export.spool import SpoolKind
from hansard._runtime.warnings import recovered, warn_once

_FIRST_WAIT_S: Final = 0.5  # after a failed attempt; doubled up to the longest
_LONGEST_WAIT_S: Final = 30.0


class Contact:
    """Callers hold the delivery's lock, except for the two that warn the program."""

    def __init__(self, endpoint: str, spool: Path) -> None:
        self._endpoint = endpoint
        self._spool = spool
        self._wait_s = _FIRST_WAIT_S
        self.is_ill = False
        self.is_known = False  # something was answered, well or not
        self.retry_s = 0.0  # while ill: when to try again, on the monotonic clock

    def arrived(self) -> bool:
        """Note that something arrived; return whether that is news."""
        was_ill, self.is_ill, self.is_known = self.is_ill, False, True
        self._wait_s = _FIRST_WAIT_S
        return was_ill

    def failed(self, response: ExportResponse) -> None:
        """Nothing arrived: wait as long as was requested, else longer each time."""
        self.is_ill = self.is_known = True
        wait_s = self._wait_s * random.uniform(0.8, 1.2)
        if response.retry_after_s is not None:
            wait_s = min(max(response.retry_after_s, wait_s), _LONGEST_WAIT_S)
        self.retry_s = time.monotonic() + wait_s
        self._wait_s = min(self._wait_s * 2, _LONGEST_WAIT_S)

    def complain(self, reason: str) -> None:
        """Warn the program, once."""
        warn_once(
            "collector",
            "nothing can be sent to %s: %s; until it can, spans are kept in %s",
            self._endpoint,
            reason,
            self._spool,
        )

    def rejoice(self) -> None:
        """Report to the program that it is over."""
        recovered("collector", "the collector at %s answers again", self._endpoint)


def may_retry(response: ExportResponse, kind: SpoolKind) -> bool:
    """Whether the same batch is worth another attempt."""
    if response.outcome is ExportOutcome.NOT_RECEIVED:
        # An endpoint without logs is one; without traces, a mistake.
        return kind not in (SpoolKind.LOGS, SpoolKind.PAYLOADS)
    return response.outcome in (ExportOutcome.LATER, ExportOutcome.DOUBTFUL)
