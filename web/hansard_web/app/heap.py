"""How the server's process handles its memory: Python's collector of cycles, and glibc's heap."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from hansard_collector.receivers.memory import give_back_free_pages, resident_bytes

# Objects made since the collector's last walk over the youngest. What ingest makes of 512 spans is
# some 50,000 objects and hardly a cycle: with fewer, each transaction paid for a walk that found
# nothing, 5 % of its time.
_GC_OBJECTS: Final = 200_000
# `mallopt(3)`. Requests of megabytes are copied a few times on their way, and each copy was fresh
# pages of the kernel, to be cleared and given back: 4 % of ingest.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_KEPT_BYTES: Final = 64 * 1024 * 1024  # of freed memory at the end of the heap
_OWN_PAGES_BYTES: Final = 4 * 1024 * 1024  # larger blocks are given back at once
# Each thread would get an arena of its own, whose free memory no other thread uses: there are a
# hundred threads, and Python's lock lets one of them allocate at a time anyhow.
_ARENAS: Final = 2

_TICK_S: Final = 1.0
_GROWTH_BYTES: Final = 32 * 1024 * 1024  # over the last low that is worth a look
_FAST_GROWTH_BYTES: Final = 192 * 1024 * 1024  # that is looked into even under load
_IDLE_SHARE: Final = 0.1  # of a processor


def bound_arenas() -> None:
    """Let threads share the heap; to be called before they are started."""
    _mallopt(_M_ARENA_MAX, _ARENAS)


def settle_heap() -> None:
    """Set both for a process that stores spans by the million; nothing where there is no glibc."""
    # What is loaded by now stays anyhow and need not be walked at all.
    gc.freeze()
    gc.set_threshold(_GC_OBJECTS, 20, 20)
    _mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES_BYTES)
    _mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def _mallopt(name: int, value: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(name, value)


class HeapKeeper:
    """Gives memory back that is free and kept: after a load, and when the process grows fast.

    The collector counts objects, and a cycle of a few may hold megabytes: it would stay until
    200,000 others are made. And glibc keeps what threads freed in pieces until it is asked.
    """

    def __init__(
        self,
        *,
        resident: Callable[[], int] = resident_bytes,
        processor_s: Callable[[], float] = time.process_time,
    ) -> None:
        self._resident = resident
        self._processor_s = processor_s
        self._low_bytes = resident()
        self._high_bytes = self._low_bytes  # at the last look under load
        self._used_s = processor_s()
        self._end = threading.Event()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Look once a second for as long as the block lasts; not where memory cannot be read."""
        thread = threading.Thread(target=self._run, name="hansard-heap", daemon=True)
        if self._low_bytes:
            thread.start()
        try:
            yield
        finally:
            self._end.set()
            if thread.ident is not None:
                thread.join()

    def _run(self) -> None:
        while not self._end.wait(_TICK_S):
            self.look()

    def look(self) -> bool:
        """Give back what can be, if there may be much of it; return whether it was tried."""
        used_s = self._processor_s()
        is_idle = used_s - self._used_s < _IDLE_SHARE * _TICK_S
        now_bytes = self._resident()
        self._low_bytes = min(self._low_bytes, now_bytes)
        self._high_bytes = min(self._high_bytes, now_bytes)
        grew_fast = now_bytes - self._high_bytes > _FAST_GROWTH_BYTES
        is_due = grew_fast or (is_idle and now_bytes - self._low_bytes > _GROWTH_BYTES)
        if is_due:
            # All generations only when nobody waits: that walks over every cache.
            gc.collect(2 if is_idle else 1)
            give_back_free_pages()
            self._high_bytes = self._resident()
            if is_idle:
                self._low_bytes = self._high_bytes
        self._used_s = self._processor_s()
        return is_due
