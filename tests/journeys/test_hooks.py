"""Sessions that hooks tell, with a server and without one, as their agents run them."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.runs.filters import RunFilter
from hansard_store.runs.queries import list_runs
from tests.instrumentation.hooks.hook_events import SESSION, bash, event, eventually, hook, spooled
from tests.journeys.processes import Serving, hansard, hosting
from tests.store.empty import empty_store


def play(data: Path, **more: str) -> None:
    """Run the hooks of a session with two calls: the first succeeds, the second fails."""
    hook("session-start", event("SessionStart", source="startup"), data, **more)
    hook("user-prompt-submit", event("UserPromptSubmit", prompt="Clean up"), data, **more)
    first = bash("git push --force", tool_use_id="t1")
    hook("pre-tool-use", first, data, **more)
    hook("post-tool-use", first | {"hook_event_name": "PostToolUse",
                                   "tool_response": {"stdout": "done"}}, data, **more)  # fmt: skip
    second = bash("pytest -q", tool_use_id="t2")
    hook("pre-tool-use", second, data, **more)
    hook("post-tool-use", second | {"hook_event_name": "PostToolUseFailure",
                                    "error": "Exit code 1"}, data, **more)  # fmt: skip
    hook("stop", event("Stop", last_assistant_message="All done."), data, **more)
    hook("session-end", event("SessionEnd", reason="exit"), data, **more)


def runs(serving: Serving) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(serving.get("/v1/runs"))["items"]
    return listed


def whole(serving: Serving) -> list[dict[str, Any]]:
    found = runs(serving)
    return found if found and found[0]["tool_calls"] == 2 and found[0]["error_count"] else []


def check(serving: Serving) -> None:
    [run] = eventually(lambda: whole(serving))
    assert run["conversation_id"] == SESSION
    assert run["error_count"] == 1


@pytest.mark.covers("DI-16", "SD-12")
def test_hooks_send_to_the_server_of_their_folder(tmp_path: Path) -> None:
    with hosting(tmp_path) as serving:
        play(tmp_path, HANSARD_ENDPOINT="")

        check(serving)
        assert spooled(tmp_path) == []


@pytest.mark.covers("DI-16")
def test_what_hooks_told_without_a_server_is_read_by_the_next_one(tmp_path: Path) -> None:
    play(tmp_path)
    assert eventually(lambda: len(spooled(tmp_path)) == 8)

    with hosting(tmp_path) as serving:
        check(serving)
        assert eventually(lambda: spooled(tmp_path) == [])


def test_what_hooks_told_without_a_server_is_read_by_a_cycle(tmp_path: Path) -> None:
    empty_store(tmp_path)
    play(tmp_path)
    assert eventually(lambda: len(spooled(tmp_path)) == 8)

    ended = hansard("heartbeat", "--once", "--data", str(tmp_path))

    assert ended.returncode == 0, ended.stderr
    assert spooled(tmp_path) == []
    with closing(open_reader(DataFolder(tmp_path))) as connection:
        found = list_runs(connection, RunFilter(), now_ns=time.time_ns(), limit=9).items
    [run] = [one for one in found if one.conversation_id == SESSION]
    assert (run.tool_calls, run.agent_name) == (2, "claude-code")


def test_a_session_that_lost_its_server_halfway_is_one_run(tmp_path: Path) -> None:
    with hosting(tmp_path) as serving:
        hook("session-start", event("SessionStart"), tmp_path, HANSARD_ENDPOINT=serving.http)
        assert eventually(lambda: runs(serving))
    play(tmp_path)

    with hosting(tmp_path) as serving:
        check(serving)


def test_a_record_that_is_none_is_set_aside(tmp_path: Path) -> None:
    folder = tmp_path / "spool" / "hooks"
    folder.mkdir(parents=True)
    (folder / f"{time.time_ns():020}-1-a.json").write_text("{")
    hook("session-start", event("SessionStart"), tmp_path)

    with hosting(tmp_path) as serving:
        assert eventually(lambda: runs(serving))
        assert eventually(lambda: list(folder.glob("*.refused")))
