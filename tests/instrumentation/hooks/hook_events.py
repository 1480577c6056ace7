"""Hook events as agents send them, and `hansard hook` as a process that reads one."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.journeys.processes import HANSARD, environment

SESSION = "5c1f2a9e-hook"
NOBODY = "http://127.0.0.1:9"  # nothing listens there
PATIENT = {"HANSARD_HOOK_TIMEOUT_MS": "30000"}  # however busy the machine of the tests is


def event(name: str, **fields: Any) -> dict[str, Any]:
    """Return an event with the fields that all of Claude Code's have."""
    return {
        "session_id": SESSION,
        "transcript_path": "/home/u/.claude/projects/p/x.jsonl",
        "cwd": "/home/u/p",
        "permission_mode": "default",
        "hook_event_name": name,
    } | fields


def bash(command: str, **fields: Any) -> dict[str, Any]:
    return event("PreToolUse", tool_name="Bash", tool_input={"command": command}, **fields)


def hook(
    verb: str,
    given: dict[str, Any] | bytes,
    data: Path,
    *options: str,
    **more: str,
) -> subprocess.CompletedProcess[bytes]:
    """Run one hook to its end."""
    sent = given if isinstance(given, bytes) else json.dumps(given).encode()
    settings = {"HANSARD_DATA": str(data), "HANSARD_ENDPOINT": NOBODY, **PATIENT} | more
    return subprocess.run(
        [HANSARD, "hook", verb, *options],
        input=sent,
        capture_output=True,
        env=environment(**settings),
        timeout=240,
    )


def spooled(data: Path) -> list[dict[str, Any]]:
    """Return what waits for a server: name and attributes of each record, the oldest first."""
    found = []
    for path in sorted((data / "spool" / "hooks").glob("[0-9]*.json")):
        request = json.loads(path.read_text(encoding="utf-8"))
        for record in request["resourceLogs"][0]["scopeLogs"][0]["logRecords"]:
            attributes = {
                one["key"]: next(iter(one["value"].values())) for one in record["attributes"]
            }
            found.append({"name": record["eventName"], **attributes})
    return found


def eventually(what: Callable[[], Any], *, within_s: float = 30) -> Any:
    """Return the first true answer: a hook records after it has answered."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.02)
    return what()
