"""How the server's process handles its memory: Python's collector of cycles, and glibc's heap."""

from __future__ import annotations

import ctypes
import gc
from typing import Final

# Objects made since the collector's last walk over the youngest. What ingest makes of 512 spans is
# some 50,000 objects and hardly a cycle: with fewer, each transaction paid for a walk that found
# nothing, 5 % of its time.
_GC_OBJECTS: Final = 200_000
# `mallopt(3)`. Requests of megabytes are copied a few times on their way, and each copy was fresh
# pages of the kernel, to be cleared and given back: 4 % of ingest.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_KEPT_BYTES: Final = 64 * 1024 * 1024  # of freed memory at the end of the heap
_OWN_PAGES_BYTES: Final = 4 * 1024 * 1024  # larger blocks are given back at once


def settle_heap() -> None:
    """Set both for a process that stores spans by the million; nothing where there is no glibc."""
    # What is loaded by now stays anyhow and need not be walked at all.
    gc.freeze()
    gc.set_threshold(_GC_OBJECTS, 20, 20)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
