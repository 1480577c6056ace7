"""Whatever is done with a data folder, under whatever umask: what is in it is its owner's alone."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.processes import (
    HANSARD,
    ServingProcess,
    environment,
    export,
    grpc_exporter,
    hansard,
    http_exporter,
    serving,
    spans,
)

_PROGRAM = """
import hansard

hansard.init(embedded=True, service_name="clerk", data={data!r})

@hansard.tool(effect="write")
def pay(to: str) -> str:
    return "paid " + to

with hansard.start_run("clerk", "support", "Pay ana") as run:
    pay("ana")
    hansard.transcript("talk").append("x" * 50_000)
hansard.shutdown()
"""
_SPOOLING = """
import hansard

hansard.init(endpoint="http://127.0.0.1:9", service_name="far", data={data!r})

@hansard.trace
def work(text: str) -> str:
    return text

work("y" * 100_000)
hansard.shutdown()
"""


@pytest.fixture(autouse=True)
def _no_umask() -> Iterator[None]:
    """Programs of these tests begin with a umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """Return what in a folder, and the folder itself, others may read, write or look into."""
    found = []
    for path in [folder, *sorted(folder.rglob("*"))]:
        mode = stat.S_IMODE(path.lstat().st_mode)
        wanted = 0o700 if path.is_dir() else 0o600
        if mode != wanted:
            found.append(f"{path.relative_to(folder)} {mode:04o}")
    return found


def leftovers(folder: Path, *more: str) -> list[str]:
    """Return temporary files, sockets, and marks of processes that are gone."""
    names = [str(path.relative_to(folder)) for path in folder.rglob("*")]
    ends = (".tmp", ".sock", ".lock", ".part", "-journal", *more)
    return [one for one in names if one.endswith(ends) or "tmp" in one or "server." in one]


def _run(source: str, data: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", source.format(data=str(data))],
        capture_output=True, text=True, env=environment(), timeout=240,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr


def _post(serving: ServingProcess, path: str, body: bytes, **headers: str) -> None:
    request = urllib.request.Request(
        f"{serving.http}{path}", body, {"content-type": "application/json", **headers}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status < 300


def test_a_store_that_everything_was_done_with_is_its_owner_s_alone(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "restored"
    home = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    ended = subprocess.run(
        [HANSARD, "demo", "--fast", "--exit", "--http-port", "0", "--grpc-port", "0", "--data",
         str(data)],
        capture_output=True, text=True, env=environment(**home), timeout=120,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = {"demo": open_to_others(data)}
    with serving(data, "--socket", str(data / "hansard.sock")) as server:
        assert export(http_exporter(server), spans(3))
        assert export(grpc_exporter(server), spans(3))
        large = spans(1, **{"gen_ai.input.messages": "z" * 400_000})
        assert export(http_exporter(server), large)
        _post(server, "/v1/approvals", b'{"tool": "pay", "arguments": {"to": "ana"}}')
        found["serving"] = open_to_others(data)
        assert server.stop(signal.SIGTERM) == 0
    found["stopped"] = [*open_to_others(data), *leftovers(data, "-wal", "-shm")]
    _run(_PROGRAM, tmp_path / "embedded")
    _run(_SPOOLING, tmp_path / "far")
    found["embedded"] = open_to_others(tmp_path / "embedded")
    found["spool"] = open_to_others(tmp_path / "far")
    at = ("--data", str(data))
    run_id = _first_run(data)
    for command in (
        ["tokens", "add", "ana", "--scope", "decide", *at],
        ["rebuild", *at],
        ["gc", *at, "--keep", "3650d"],
        ["runs", "export", run_id, *at, "-o", str(tmp_path / "run.json")],
        ["export", *at, "-o", str(tmp_path / "all.otlp")],
        ["events", "export", *at, "-o", str(tmp_path / "events.jsonl")],
        ["backup", str(tmp_path / "b.tar.zst"), *at],
        ["restore", str(tmp_path / "b.tar.zst"), "--data", str(other)],
    ):
        done = hansard(*command, **home)
        found[" ".join(command[:2])] = open_to_others(data)
        if done.returncode != 0:
            found[" ".join(command[:2])] += [done.stderr[:200]]
    found["restored"] = open_to_others(other)
    state = tmp_path / "state"
    found["state"] = open_to_others(state / "hansard") if (state / "hansard").exists() else []

    assert {what: one for what, one in found.items() if one} == {}
    assert stat.S_IMODE((tmp_path / "b.tar.zst").stat().st_mode) == 0o600
    assert leftovers(data) == []  # a command that only reads leaves SQLite's own beside the file
    assert leftovers(other) == []


def _first_run(data: Path) -> str:
    listed = hansard("runs", "list", "--data", str(data), "--json")
    return str(json.loads(listed.stdout)["items"][0]["run_id"])
