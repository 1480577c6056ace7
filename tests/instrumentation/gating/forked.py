"""python -m tests.instrumentation.gating.forked FOLDER EFFECT: a tool that forks, and fails.

The child returns first. Prints JSON: the state of the approval if there is one, the events, and the
error of the newest. A process of its own, as locks that other threads hold stay locked in a child.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import hansard
from tests.instrumentation.gating.gates import Desk, desk, state_of


def main(store: Desk, effect: Any) -> dict[str, Any]:
    """Call the tool, approve it where it writes, and return what is recorded."""
    gate = store.gate(hansard.tool(_send, effect=effect, name="send"))
    state = None
    with suppress(ValueError):
        if effect == "read":
            gate.call("send", {"to": "Maria"})
        else:
            identity = store.approve(gate.call("send", {"to": "Maria"}))
            try:
                gate.run(identity)
            finally:
                state = state_of(gate, identity)
    newest = store.store.events(limit=1)[0]
    return {"state": state, "events": store.events(), "error": newest.contents.get("error")}


def _send(to: str) -> str:
    child = os.fork()
    if child == 0:
        return "the child is first"
    os.waitpid(child, 0)
    raise ValueError("no such person")


if __name__ == "__main__":
    parent = os.getpid()
    with desk(Path(sys.argv[1])) as made:
        try:
            told = main(made, sys.argv[2])
        finally:
            if os.getpid() != parent:
                os._exit(0)
    sys.stdout.write(json.dumps(told))
