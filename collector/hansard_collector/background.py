"""Upkeep beside a running server: something that is done again and again in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

from hansard_compiler.errors import HansardError
from hansard_store.errors import StoppedError


class Background:
    """Looks at once, or `first_s` later, and then every so often, for as long as `working` lasts.

    What a look raises of the store's errors is logged, and the next look tries again; StoppedError
    ends the thread. `stop` is set when it is to end: it ends the wait, and a long look checks it.
    """

    def __init__(
        self,
        name: str,
        look: Callable[[threading.Event], object],
        *,
        every_s: float,
        log: logging.Logger,
        put_off: str,
        first_s: float = 0.0,
    ) -> None:
        """`put_off` begins the line of the log when a look fails, before its reason."""
        self._look = look
        self._every_s, self._first_s = every_s, first_s
        self._log, self._put_off = log, put_off
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Run the thread for as long as the block lasts; once."""
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()

    def _run(self) -> None:
        if self._first_s and self._stop.wait(self._first_s):
            return
        while True:
            try:
                self._look(self._stop)
            except StoppedError:
                return
            except (HansardError, apsw.Error) as error:
                self._log.warning("%s: %s", self._put_off, error)
            if self._stop.wait(self._every_s):
                return
