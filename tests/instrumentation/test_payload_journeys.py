"""Payloads from a program to the page of its step: whole, in time, and without secrets."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hansard._export.spool import SpoolKind, files_of, process_folders
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from tests.collector.payload_maker import SECRET, kept_in_files, kept_in_tables
from tests.instrumentation.programs import run, settings
from tests.instrumentation.test_payload_transport import OtherEnd, other_end
from tests.journeys.processes import Serving, hosting

pytestmark = pytest.mark.slow

# A model call with whatever `prompt` and `answer` are, and what becomes of the program after it.
CALL = """
import json, os
import hansard
from hansard._tracing.observation import put_content

def messages(role, text):
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

recorder = hansard.init()
attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"}
span = recorder.tracer.start_span("chat gpt-4o-mini", attributes=attributes)
put_content(recorder, span, "gen_ai.input.messages", messages("user", PROMPT))
put_content(recorder, span, "gen_ai.output.messages", messages("assistant", ANSWER))
span.end()
print("result 42")
"""
KILLED = "\nos.kill(os.getpid(), 9)\n"
# A program that has nothing to say, and runs until what others left has been sent.
NEXT = """
import time
import hansard

spool = hansard.init().settings.data / "spool"
until_s = time.monotonic() + 60
while any(path.is_file() and path.name != "lock" for path in spool.rglob("*")):
    assert time.monotonic() < until_s, sorted(spool.rglob("*"))
    time.sleep(0.02)
"""
WORDS = "The marmot answers at length. "


def call(prompt: str, answer: str) -> str:
    return CALL.replace("PROMPT", prompt).replace("ANSWER", answer)


def ask(server: Serving, path: str) -> Any:
    return json.loads(server.get(path))


def only_step(server: Serving) -> Any:
    [run_] = ask(server, "/v1/runs")["items"]
    [step] = ask(server, f"/v1/runs/{run_['run_id']}/steps")["items"]
    return ask(server, f"/v1/steps/{step['step_id']}")


def waiting(data: Path) -> list[str]:
    """Return the references of what dead processes left, which stays theirs."""
    found = [file for path in process_folders(data / "spool") for file in files_of(path)]
    packs = [file for file in found if file.kind is SpoolKind.PAYLOADS]
    return [one.ref for pack in packs for one in pack.read_payloads()]


@pytest.mark.covers("OT-07", "OT-08")
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_prompt_of_5_mb_makes_a_small_span_and_resolves_to_its_exact_bytes(
    tmp_path: Path, protocol: str
) -> None:
    own = tmp_path / "own"
    prompt = '"0123456789" * 500_000'
    with hosting(tmp_path / "server") as server:
        endpoint = f"http://{server.grpc}" if protocol == "grpc" else server.http
        ended = run(call(prompt, repr(WORDS)), settings(own, endpoint, protocol))
        assert (ended.status, ended.errors) == (0, [])
        step = only_step(server)

        [payload] = step["payloads"]
        data = server.get(payload["url"])
        assert payload["state"] == "stored"
        assert hashlib.sha256(data).hexdigest() == payload["ref"].removeprefix("sha256:")
        assert json.loads(data)[0]["parts"][0]["content"] == "0123456789" * 500_000
        assert len(data) == payload["size"] == step["attributes"]["gen_ai.input.messages_size"]
        assert len(json.dumps(step["attributes"])) < 1_000
        assert len(step["call"]["input"][0]["parts"][0]["text"]) == 5_000_000
        with closing(open_reader(DataFolder(server.data))) as db:
            assert db.execute("SELECT max(length(record)) FROM span_record").get < 2_000
    assert waiting(own) == []


def test_payloads_leave_before_the_span_that_names_them(tmp_path: Path) -> None:
    with other_end(OtherEnd(uploads=200)) as end:
        ended = run(call("'ask ' * 500_000", f"{WORDS!r} * 99"), settings(tmp_path, end.url))

    assert (ended.status, ended.errors) == (0, [])
    # On a slow machine the open span is sent before: it names nothing yet.
    names = [path == "/v1/traces" and b"sha256:" in body for path, body in end.requests]
    before = {path.partition("sha256")[0] for path, _ in end.requests[: names.index(True)]}
    assert {"/v1/payloads/", "/v1/logs"} <= before


def test_a_program_without_a_collector_ends_in_time_and_loses_nothing(tmp_path: Path) -> None:
    own = tmp_path / "own"
    away = settings(own, "http://127.0.0.1:1")
    ended = run(call("'ask ' * 500_000", f"{WORDS!r} * 99"), away)

    assert (ended.status, ended.output) == (0, "result 42\n")
    assert ended.seconds < 8
    assert len(ended.errors) == 1
    assert len(waiting(own)) == 2
    with hosting(tmp_path / "server") as server:
        assert run(NEXT, settings(own, server.http)).errors == []
        step = only_step(server)
    assert {one["state"] for one in step["payloads"]} == {"stored"}
    assert waiting(own) == []


def test_what_a_killed_program_had_put_arrives_with_the_next_one(tmp_path: Path) -> None:
    own = tmp_path / "own"
    with hosting(tmp_path / "server") as server:
        variables = settings(own, server.http) | {"HANSARD_EXPORT_DELAY_MS": "60000"}
        ended = run(call("'ask ' * 1_000", f"{WORDS!r} * 99") + KILLED, variables)
        assert ended.status == -9
        left = waiting(own)
        assert len(left) == 2

        assert run(NEXT, settings(own, server.http)).errors == []
        for ref in left:
            data = server.get(f"/v1/payloads/{ref}")
            assert f"sha256:{hashlib.sha256(data).hexdigest()}" == ref
    assert waiting(own) == []


# ---- secrets


def assert_nowhere(canary: str, *folders: Path) -> None:
    """Hold that no file and no table has these bytes, packed or not."""
    for folder in folders:
        assert kept_in_files(folder, canary.encode()) == []
        if (folder / "hansard.db").exists():
            with closing(open_reader(DataFolder(folder))) as db:
                assert kept_in_tables(db, canary.encode()) == []


SECRETIVE = f"'word ' * 400_000 + {SECRET!r} + ' word' * 1_000"


@pytest.mark.covers("RC-21")
def test_a_secret_in_a_payload_of_2_mb_reaches_neither_spool_nor_store(tmp_path: Path) -> None:
    own, stored = tmp_path / "own", tmp_path / "server"
    away = settings(own, "http://127.0.0.1:1")
    assert run(call(SECRETIVE, repr(WORDS)), away).status == 0
    assert len(waiting(own)) == 1
    assert_nowhere(SECRET, own)

    with hosting(stored) as server:
        assert run(NEXT, settings(own, server.http)).errors == []
        text = only_step(server)["call"]["input"][0]["parts"][0]["text"]
        assert_nowhere(SECRET, own, stored)  # with the database's log as it is
        assert text.startswith("word word ")
        assert "word‹redacted:" not in text
        assert "‹redacted:anthropic:" in text
        page = urllib.request.urlopen(f"{server.http}/", timeout=60).read()
        assert SECRET.encode() not in page
    assert_nowhere(SECRET, own, stored)


@pytest.mark.covers("RC-21")
def test_a_program_that_keeps_everything_does_not_make_the_store_do_so(tmp_path: Path) -> None:
    stored = tmp_path / "server"
    with hosting(stored) as server:
        everything = {"HANSARD_RETENTION": "full_payloads"}
        variables = settings(tmp_path / "own", server.http) | everything
        assert run(call(SECRETIVE, repr(WORDS)), variables).status == 0
        [payload] = only_step(server)["payloads"]
        assert payload["state"] == "redacted"
        assert_nowhere(SECRET, stored)
    assert_nowhere(SECRET, stored)


@pytest.mark.covers("RC-20")
@pytest.mark.parametrize("where", ["in the program", "in the collector"])
def test_metadata_only_keeps_no_byte_of_a_payload_anywhere(tmp_path: Path, where: str) -> None:
    own, stored = tmp_path / "own", tmp_path / "server"
    in_program = where == "in the program"
    mode = "redacted_payloads" if in_program else "metadata_only"
    with hosting(stored, retention=mode) as server:
        variables = settings(own, server.http)
        if in_program:
            variables |= {"HANSARD_RETENTION": "metadata_only"}
        prompt = "'violet marmot ' * 150_000"
        ended = run(call(prompt, "'violet marmot'"), variables)
        assert (ended.status, ended.errors) == (0, [])

        step = only_step(server)
        assert step["attributes"]["gen_ai.input.messages_size"] > 2_000_000
        assert step["call"]["input"] == step["call"]["output"] == []
        assert [one["state"] for one in step["payloads"]] == ([] if in_program else ["withheld"])
        assert_nowhere("violet marmot", own, stored)
    assert_nowhere("violet marmot", own, stored)


# ---- loss


def test_a_payload_that_was_lost_is_counted_at_the_collector_and_said_on_its_step(
    tmp_path: Path,
) -> None:
    with hosting(tmp_path / "server") as server:
        small = {"HANSARD_SPOOL_MAX_BYTES": "10000"}
        variables = settings(tmp_path / "own", server.http) | small
        ended = run(call("'ask ' * 500_000", f"{WORDS!r} * 99"), variables)
        assert ended.status == 0

        step = only_step(server)
        assert {one["name"]: one["state"] for one in step["payloads"]} == {
            "gen_ai.input.messages": "missing",
            "gen_ai.output.messages": "stored",
        }
        [loss] = ask(server, "/v1/ledger")["drops"]
        assert (loss["service"], loss["signal"], loss["reason"], loss["items"]) == (
            "program",
            "payloads",
            "spool full",
            1,
        )
