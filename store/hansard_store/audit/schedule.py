"""When a process seals: every few seconds while something was written, and when it ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from hansard_compiler.errors import HansardError
from hansard_store.audit.sealer import Sealed

_EVERY_S: Final = 5.0
_AT_LEAST_S: Final = 1.0  # between two seals, however much waits
_log = logging.getLogger("hansard.store")


class SealSchedule:
    """Seals now and then; used by one thread at a time."""

    def __init__(self, seal: Callable[[], Sealed | None]) -> None:
        self._seal = seal
        self._next_s = time.monotonic() + _EVERY_S

    def look(self) -> None:
        """Seal if it is time; what fails is tried again."""
        if time.monotonic() >= self._next_s:
            self._try()

    def end(self) -> None:
        """Seal what is left, as the process ends; at most some seconds' work."""
        while (sealed := self._try()) is not None and not sealed.is_all:
            continue

    def _try(self) -> Sealed | None:
        self._next_s = time.monotonic() + _EVERY_S
        try:
            sealed = self._seal()
        except (HansardError, OSError) as error:
            _log.warning("rows are sealed later: %s", error)
            return None
        if sealed is not None and not sealed.is_all:
            self._next_s = time.monotonic() + _AT_LEAST_S
        return sealed
