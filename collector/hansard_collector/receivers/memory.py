"""Memory of this process: how much is resident, and returning what is free."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return the memory of this process; 0 where the system does not report it."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def give_back_free_pages() -> None:
    """Give the free pages of glibc's heap back to the system; nothing where there is no glibc.

    Takes some milliseconds for hundreds of megabytes, without Python's lock.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
