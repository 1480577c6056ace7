"""A hook for tools that have a lifecycle: it reads one event on standard input, and tells a server.

Coding tools run a command of yours as a session starts, around each tool, and at the end.
Name this one for all of them; it needs nothing but Python, and no SDK:

    hansard serve &
    echo '{"session_id": "s-1", "hook_event_name": "PreToolUse", "tool_name": "Bash",
           "tool_use_id": "t-1", "tool_input": {"command": "ls"}}' | python examples/hook_adapter.py

It only observes: whatever goes wrong, it says so and ends with 0, so the tool goes on. Nothing is
kept between two events; a session's id is the key under which its run is begun once.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any

ADDRESS = os.environ.get("HANSARD_ENDPOINT", "http://127.0.0.1:4318")
AGENT = os.environ.get("HOOK_AGENT", "coding-tool")
LONGEST_S = 2.0


def post(path: str, body: dict[str, Any], *, once: str | None = None) -> dict[str, Any]:
    """Tell something; with `once`, however often it is told, it is done once."""
    headers = {"content-type": "application/json"}
    if once:
        headers["idempotency-key"] = once
    request = urllib.request.Request(ADDRESS + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=LONGEST_S) as response:
        answer: dict[str, Any] = json.load(response)
        return answer


def tell(event: dict[str, Any]) -> None:
    """Pass an event on; one that is not known begins its session's run and is no step."""
    session = event["session_id"]
    begun = {"agent_name": AGENT, "domain": "coding", "conversation_id": session}
    run_id = post("/v1/runs/start", begun, once=f"hook-{session}")["run_id"]
    call = {"run_id": run_id, "call_id": event.get("tool_use_id")}
    kind = event["hook_event_name"]
    if kind == "PreToolUse":
        asked = {"name": event["tool_name"], "arguments": event.get("tool_input")}
        post("/v1/tools/call", {**call, **asked})
    elif kind == "PostToolUse":
        result = {"name": event["tool_name"], "result": event.get("tool_response")}
        post("/v1/tools/result", {**call, **result})
    elif kind == "UserPromptSubmit":
        step = {"name": "prompt", "kind": "prompt", "input": event["prompt"], "status": "completed"}
        post(f"/v1/runs/{run_id}/steps", step)
    elif kind == "SessionEnd":
        post(f"/v1/runs/{run_id}/end", {"status": "completed"})


if __name__ == "__main__":
    try:
        tell(json.load(sys.stdin))
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"not recorded: {error!r}\n")
