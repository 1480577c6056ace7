"""The name of this program, for whoever gives it none."""

from __future__ import annotations

import sys
from pathlib import Path

_NAMELESS = ("", "-", "-c", "-m")  # argv[0] of what is typed, piped in, or being looked for


def program_name() -> str | None:
    """Return the script's name, or the package's that `-m` runs; None where somebody types.

    A prompt and a notebook run under a launcher, whose name would say nothing of the work.
    """
    if hasattr(sys, "ps1"):
        return None
    return _module_name() or _script_name()


def _module_name() -> str | None:
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = "" if spec is None else spec.parent or spec.name
    return None if name in ("", "__main__") else str(name)  # a folder or a zip is run as a script


def _script_name() -> str | None:
    told = getattr(sys, "argv", None) or [""]  # an embedded interpreter may have none
    return None if told[0] in _NAMELESS else Path(told[0]).stem or None
