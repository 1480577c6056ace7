"""Who uses the command line."""

from __future__ import annotations

import getpass
import os


def user_name() -> str:
    """Return the name of the user, as the record has it; a number where there is none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a process without a name
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"
