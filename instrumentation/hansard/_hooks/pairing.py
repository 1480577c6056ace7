"""Calls without an id: what comes before a call and what comes after it are brought together.

<data>/hooks/<digest of session, tool and input>.<id>    made before the call, gone after it
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hansard._hooks.event import HookEvent

FOLDER = "hooks"
_STALE_S = 24 * 3600


def open_call(event: HookEvent, data: str, *, time_ns: int) -> str:
    """Return the id of a call that begins: the sender's, else one that its end will find."""
    if event.call_id or not event.tool:
        return event.call_id
    from hansard._hooks.delivery import make_private

    digest = _digest(event)
    nonce = f"{time_ns:020}{os.urandom(2).hex()}"
    try:
        make_private(f"{data}/{FOLDER}")
        os.close(os.open(f"{data}/{FOLDER}/{digest}.{nonce}", os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError:
        pass  # its end will be a step of its own
    return f"{digest}.{nonce}"


def close_call(event: HookEvent, data: str, *, time_ns: int) -> str:
    """Return the id of a call that ends; of equal calls that are open, the one that began first."""
    if event.call_id or not event.tool:
        return event.call_id
    digest = _digest(event)
    folder = f"{data}/{FOLDER}"
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(f"{digest}."))
    except OSError:
        names = []
    for name in names:
        try:
            os.unlink(f"{folder}/{name}")
        except OSError:
            continue  # another process was first
        return name
    return f"{digest}.{time_ns:020}"


def drop_stale(data: str) -> None:
    """Remove what calls left that never ended."""
    folder = f"{data}/{FOLDER}"
    limit = time.time() - _STALE_S
    try:
        for name in os.listdir(folder):
            path = f"{folder}/{name}"
            if os.stat(path).st_mtime < limit:
                os.unlink(path)
    except OSError:
        return


def _digest(event: HookEvent) -> str:
    """Return 16 hex digits; content leaves nothing else here."""
    import hashlib
    import json

    arguments = json.dumps(event.tool_input, sort_keys=True, default=str)
    text = "\0".join((event.session, event.tool, arguments))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
