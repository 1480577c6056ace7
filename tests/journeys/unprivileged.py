"""Running Hansard as somebody whom file permissions bind: root may write anywhere."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.journeys.processes import HANSARD, environment

_PR_CAPBSET_DROP = 24
# What lets root pass over permissions: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER.
_OVERRIDES = (1, 2, 3)
_libc = ctypes.CDLL(None)
NOBODY = 65534


def give_up_overrides() -> None:
    """Between fork and exec: whatever runs next has not what is dropped here."""
    for capability in _OVERRIDES:
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def bound_hansard(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, without the right to pass over permissions."""
    return subprocess.run(
        [HANSARD, *arguments],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=240,
        preexec_fn=give_up_overrides,
    )


def give_away(paths: Sequence[Path], *, mode: int) -> None:
    """Make files those of somebody else, where we may; else leave them to us without write."""
    for path in paths:
        path.chmod(mode)
        if os.getuid() == 0:
            os.chown(path, NOBODY, NOBODY)
