"""One setting names the classifier of the scan, of maintenance and of hooks, each by itself."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.collector.scanning.hacker_news import hacker_news
from tests.instrumentation.clients.provider import (
    Provider,
    Received,
    Reply,
    json_reply,
    providing,
)
from tests.instrumentation.hooks.hook_events import bash, eventually, hook, spooled
from tests.journeys.processes import hansard
from tests.store.empty import empty_store

MODEL = "openai:gpt-5-mini"
UNKNOWN = "./launch-the-rocket --now"  # no rule knows it
WRITE = ("memory", "write")
FACT = ("--type", "fact", "--subject", "retries", "--writer", "app", "--project", "p")


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as served:
        served.answer = verdict
        yield served


def verdict(request: Received) -> Reply:
    """Answer as a model does that finds the worst in everything."""
    question = json.loads(question_of(request))
    return said({"label": question["labels"][0], "score": 0.9, "reason": "the model says so"})


def question_of(request: Received) -> str:
    """Return the user's message of a request to either of OpenAI's APIs."""
    last = request.json.get("input", request.json.get("messages"))[-1]["content"]
    return last if isinstance(last, str) else str(last[0]["text"])


def said(answer: dict[str, Any]) -> Reply:
    text = {"type": "output_text", "text": json.dumps(answer)}
    return json_reply(
        {
            "id": "resp_1", "object": "response", "created_at": 1, "status": "completed",
            "model": "gpt-5-mini", "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
            "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
                        "content": [text]}],
            "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
        }
    )  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A store with an interest and two facts of one subject that share most of their words."""
    folder = empty_store(tmp_path / "data").path
    interest = ("SQLite full text search", "--type", "interest", "--subject", "search")
    for content in (
        (*interest, "--writer", "app", "--project", "p"),
        ("The client library retries every failed request of the upload queue", *FACT),
        ("The client library retries the failed request of an upload queue", *FACT,
         "--attribute", "how"),
    ):  # fmt: skip
        ended = hansard(*WRITE, *content, HANSARD_DATA=str(folder))
        assert ended.returncode == 0, ended.stderr
    return folder


def everybody(data: Path, **more: str) -> None:
    """Run all that use a classifier once, each as a process: scan, maintenance, a hook."""
    with hacker_news() as source:
        source.add(11, "A history of bread")
        scanned = hansard("scan", "--url", source.address, "--outbound", "on",
                          HANSARD_DATA=str(data), **more)  # fmt: skip
    maintained = hansard("maintain", "--json", HANSARD_DATA=str(data), **more)
    hooked = hook("pre-tool-use", bash(UNKNOWN), data, HANSARD_HOOK_CLASSIFIER_TIMEOUT_MS="60000",
                  **more)  # fmt: skip
    assert (scanned.returncode, maintained.returncode) == (0, 0), scanned.stderr + maintained.stderr
    assert (hooked.returncode, hooked.stderr) == (0, b"")


def keys(provider: Provider) -> dict[str, str]:
    return {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{provider.address}/v1"}


def rows(data: Path, sql: str) -> list[Any]:
    connection = apsw.Connection(str(data / "hansard.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def model_steps(data: Path) -> list[tuple[Any, ...]]:
    return rows(
        data,
        "SELECT parent.name, call.cost_usd_nano > 0, call.tokens_input FROM steps AS call"
        " JOIN steps AS parent ON parent.step_id = call.run_id || '-' || call.parent_span_id"
        " WHERE call.name LIKE 'chat %' ORDER BY call.start_ns",
    )


@pytest.mark.covers("MM-14")
@pytest.mark.parametrize("how", ["file", "environment"])
def test_a_swapped_classifier_reaches_scan_maintenance_and_hooks(
    data: Path, provider: Provider, how: str
) -> None:
    if how == "file":
        (data / "hansard.toml").write_text(f'classifier = "{MODEL}"\n')
    more = keys(provider) | ({"HANSARD_CLASSIFIER": MODEL} if how == "environment" else {})

    everybody(data, **more)

    tasks = [sorted(json.loads(question_of(one))) for one in provider.received]
    assert tasks == [
        ["labels", "text"],  # a story
        ["labels", "newer", "older", "subject"],  # two memories
        ["command", "labels"],
    ]
    assert model_steps(data) == [
        ("scan", 1, 100), ("maintain", 1, 100), ("classify irreversible", 1, 100),
    ]  # fmt: skip
    [record] = eventually(lambda: spooled(data))
    assert record["hansard.hook.classifier"] == MODEL
    assert record["hansard.hook.warned"] is True
    named = f"SELECT name FROM steps WHERE step_id = '{record['hansard.hook.classifier_step']}'"
    assert rows(data, named) == [("classify irreversible",)]


@pytest.mark.covers("MM-14")
def test_without_a_setting_everybody_is_offline(data: Path, provider: Provider) -> None:
    everybody(data, **keys(provider))

    assert provider.received == []
    [record] = eventually(lambda: spooled(data))
    assert record["hansard.hook.classifier"] == "commands/1"
    assert "hansard.hook.fallback" not in record
    assert rows(data, "SELECT count(*) FROM steps") == [(0,)]


def test_a_task_may_have_a_classifier_of_its_own(data: Path, provider: Provider) -> None:
    everybody(data, HANSARD_CLASSIFIER=f"offline irreversible={MODEL}", **keys(provider))

    assert [sorted(json.loads(question_of(one))) for one in provider.received] == [
        ["command", "labels"]
    ]


def test_what_is_known_to_the_rules_needs_no_call(data: Path, provider: Provider) -> None:
    more = keys(provider) | {"HANSARD_CLASSIFIER": MODEL}

    warned = hook("pre-tool-use", bash("git push --force"), data, **more)
    silent = hook("pre-tool-use", bash("git status"), data, **more)

    assert (bool(warned.stdout), silent.stdout) == (True, b"")
    assert provider.received == []


@pytest.mark.covers("MM-14", "DI-19")
def test_a_slow_classifier_is_not_waited_for(data: Path, provider: Provider) -> None:
    held = threading.Event()
    provider.answer = lambda _: Reply([held])
    more = keys(provider) | {"HANSARD_CLASSIFIER": MODEL}

    began_s = time.monotonic()
    ended = hook("pre-tool-use", bash(UNKNOWN), data,
                 HANSARD_HOOK_CLASSIFIER_TIMEOUT_MS="4000", **more)  # fmt: skip
    took_s = time.monotonic() - began_s
    [record] = eventually(lambda: spooled(data))

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert took_s < 15
    assert record["hansard.hook.classifier"] == "commands/1"
    assert record["hansard.hook.fallback"] == f"{MODEL}: no answer within 4 s"
    called = "SELECT count(*) FROM steps WHERE name LIKE 'chat %' AND status = 'error'"
    assert eventually(lambda: rows(data, called) == [(1,)])
    held.set()


@pytest.mark.covers("MM-14", "DI-19")
def test_a_failing_classifier_leaves_the_answer_of_the_rules(
    data: Path, provider: Provider
) -> None:
    provider.answer = lambda _: json_reply({"error": {"message": "no"}}, status=401)
    more = keys(provider) | {"HANSARD_CLASSIFIER": MODEL}
    patient = {"HANSARD_HOOK_CLASSIFIER_TIMEOUT_MS": "60000"}

    refused = hook("pre-tool-use", bash(UNKNOWN), data, **more, **patient)
    del more["OPENAI_API_KEY"]
    keyless = hook("pre-tool-use", bash(UNKNOWN), data, **more, **patient, OPENAI_API_KEY="")
    unreadable = hook("pre-tool-use", bash(UNKNOWN), data, HANSARD_CLASSIFIER="nonsense", **patient)

    for ended in (refused, keyless, unreadable):
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    found = eventually(lambda: len(spooled(data)) == 3 and spooled(data))
    assert [one["hansard.hook.classifier"] for one in found] == ["commands/1"] * 3
    first, second, third = (one["hansard.hook.fallback"] for one in found)
    assert first.startswith(f"{MODEL}: ")
    assert second == f"{MODEL}: judge_missing"
    assert third.startswith("nonsense: ")


def test_off_ends_the_warnings(data: Path) -> None:
    ended = hook("pre-tool-use", bash("rm -rf /"), data, HANSARD_CLASSIFIER="off")

    assert (ended.returncode, ended.stdout) == (0, b"")
