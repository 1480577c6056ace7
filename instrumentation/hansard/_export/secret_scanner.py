"""Scans for secrets and forks never overlap.

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
from typing import Final

from hansard_compiler.redaction.redactor import RedactedBytes, RedactedText, Redactor
from hansard_compiler.redaction.rules import SECRET_RULES, SecretRule

SHORTEST_BYTES: Final = 5  # of what any rule takes for a secret, by test
_LONGEST_S: Final = 5.0  # that a fork waits: a scan of 64 MiB takes less


class _Scans:
    """Knows the threads that scan, and keeps them waiting while one forks or the program ends.

    A scan takes no lock otherwise. It is noted first and looks at the flag then; a fork sets
    the flag first and looks at what is noted then: one of the two sees the other, as adding to a
    list, removing from it and setting a flag are each one step of the interpreter.
    """

    def __init__(self) -> None:
        self._scanning: list[int] = []  # threads, as often as they are in a scan
        self._is_guarded = False  # the flag
        self._changed = threading.Condition(threading.Lock())  # guards what follows
        self._is_forking = False
        self._ends_in: int | None = None  # the thread in which the interpreter ends

    def __enter__(self) -> None:
        mine = threading.get_ident()
        self._scanning.append(mine)
        if self._is_guarded:
            self._wait(mine)

    def __exit__(self, *_: object) -> None:
        self._scanning.remove(threading.get_ident())
        if self._is_guarded:
            with self._changed:
                self._changed.notify_all()

    def _wait(self, mine: int) -> None:
        """Let a fork go first, or the end; but for a scan within a scan, which they wait for."""
        if self._scanning.count(mine) > 1:
            return
        with self._changed:
            while self._is_forking or self._ends_in not in (None, mine):
                self._scanning.remove(mine)
                self._changed.notify_all()
                self._changed.wait()
                self._scanning.append(mine)

    def _others(self) -> int:
        """How many scans are under way in other threads."""
        return len(self._scanning) - self._scanning.count(threading.get_ident())

    def before_fork(self) -> None:
        """Wait until no other thread scans, and keep it so."""
        self._changed.acquire()
        self._is_forking = self._is_guarded = True
        # A signal handler may fork in the middle of a scan of its own thread.
        self._changed.wait_for(lambda: not self._others(), timeout=_LONGEST_S)

    def after_in_parent(self) -> None:
        self._is_forking = False
        self._is_guarded = self._ends_in is not None
        self._changed.notify_all()
        self._changed.release()

    def after_in_child(self) -> None:
        """Only the thread that forked is here."""
        mine = threading.get_ident()
        depth = self._scanning.count(mine)
        self.__init__()  # type: ignore[misc]  # what waited on the old condition is gone
        self._scanning = [mine] * depth

    def at_exit(self) -> None:
        """Wait until no other thread scans, and let none begin: they are daemons that remain."""
        with self._changed:
            self._ends_in = threading.get_ident()
            self._is_guarded = True
            self._changed.wait_for(lambda: not self._others(), timeout=_LONGEST_S)


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

    def with_rules(self, rules: Sequence[SecretRule]) -> ForkSafeRedactor:
        """Return one with the same key and other rules."""
        return ForkSafeRedactor(self._key, rules=rules)

    def __init__(self, key: bytes, *, rules: Sequence[SecretRule] = SECRET_RULES) -> None:
        with _scans:  # its automata are tried when they are made
            super().__init__(key, rules=rules)

    def scan_bytes(self, raw: bytes) -> bool:
        with _scans:
            return super().scan_bytes(raw)

    def redact_text(self, text: str, *, key: str = "") -> RedactedText:
        with _scans:
            return super().redact_text(text, key=key)

    def redact_bytes(self, data: bytes, media_type: str = "", *, key: str = "") -> RedactedBytes:
        if len(data) < SHORTEST_BYTES:
            return RedactedBytes(data, [])
        with _scans:
            return super().redact_bytes(data, media_type, key=key)
