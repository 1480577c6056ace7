"""Scans for secrets and forks, kept apart.

RE2 lets other Python threads run while it scans, and holds a lock of its own meanwhile. A child
that is forked at that moment inherits the lock and nobody who would release it: its first scan
would wait for ever. So a fork waits for the scans of other threads, and scans wait for a fork.

The end of the interpreter is like a fork: a thread that comes back from a scan then finds no Python
to come back to, and RE2's binding ends the process with an abort. So the end waits for scans, too.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Final

from hansard_compiler.redaction import RedactedBytes, RedactedText, Redactor
from hansard_compiler.redaction_rules import SECRET_RULES, Rule

_LONGEST_S: Final = 5.0  # that a fork waits: a scan of 64 MiB takes less


class _Scans:
    """Counts the threads that scan. The condition guards the count and who forks."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._scanning = 0
        self._is_forking = False
        self._ends_in: int | None = None  # the thread in which the interpreter ends
        self._mine = threading.local()

    def __enter__(self) -> None:
        depth = getattr(self._mine, "depth", 0)
        if not depth:
            with self._changed:
                while self._is_forking or self._ends_in not in (None, threading.get_ident()):
                    self._changed.wait()
                self._scanning += 1
        self._mine.depth = depth + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._mine.depth -= 1
        if not self._mine.depth:
            with self._changed:
                self._scanning -= 1
                if self._is_forking or self._ends_in is not None:
                    self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until no other thread scans, and keep it so."""
        # A signal handler may fork in the middle of a scan of its own thread.
        own = 1 if getattr(self._mine, "depth", 0) else 0
        self._changed.acquire()
        self._is_forking = True
        self._changed.wait_for(lambda: self._scanning <= own, timeout=_LONGEST_S)

    def after_in_parent(self) -> None:
        self._is_forking = False
        self._changed.notify_all()
        self._changed.release()

    def after_in_child(self) -> None:
        """Only the thread that forked is here."""
        depth = getattr(self._mine, "depth", 0)
        self.__init__()  # type: ignore[misc]  # what waited on the old condition is gone
        self._mine.depth = depth
        self._scanning = 1 if depth else 0

    def at_exit(self) -> None:
        """Wait until no other thread scans, and let none begin: they are daemons that remain."""
        with self._changed:
            self._ends_in = threading.get_ident()
            self._changed.wait_for(lambda: not self._scanning, timeout=_LONGEST_S)


_scans = _Scans()
atexit.register(_scans.at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_scans.before_fork,
        after_in_parent=_scans.after_in_parent,
        after_in_child=_scans.after_in_child,
    )


class ForkSafeRedactor(Redactor):
    """A redactor that any thread of a program may use, whatever forks."""

    def with_rules(self, rules: Sequence[Rule]) -> ForkSafeRedactor:
        """Return one with the same key and other rules."""
        return ForkSafeRedactor(self._key, rules=rules)

    def __init__(self, key: bytes, *, rules: Sequence[Rule] = SECRET_RULES) -> None:
        with _scans:  # its automata are tried when they are made
            super().__init__(key, rules=rules)

    def scan_bytes(self, raw: bytes) -> bool:
        with _scans:
            return super().scan_bytes(raw)

    def redact_text(self, text: str, *, key: str = "") -> RedactedText:
        with _scans:
            return super().redact_text(text, key=key)

    def redact_bytes(self, data: bytes, media_type: str = "", *, key: str = "") -> RedactedBytes:
        with _scans:
            return super().redact_bytes(data, media_type, key=key)
