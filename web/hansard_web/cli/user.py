"""Who uses the command line."""

from __future__ import annotations

import getpass
import os

from hansard_store.principals.model import is_own_name


def user_name() -> str:
    """Return the name of the user, as the record has it; a number where there is none.

    A user of the system whose name is one of Hansard's own, as servers have it, is `user-hansard`.
    """
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a process without a name
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    return f"user-{name}" if is_own_name(name) else name
