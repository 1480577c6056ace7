"""Processes that are killed, fork and spawn, with the real server at the other end."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from tests.instrumentation.faulty import closed_port
from tests.instrumentation.programs import run, spooled
from tests.instrumentation.programs import settings as settings_of
from tests.instrumentation.test_export_sends import endpoint
from tests.journeys.processes import Serving, hansard, hosting

pytestmark = pytest.mark.slow

_LIVING = """
import sys
import hansard

hansard.init()
from opentelemetry import trace

tracer = trace.get_tracer("program")
with tracer.start_as_current_span("root"):
    for number in range(3):
        tracer.start_span(f"part {number}").end()
    print("ready", flush=True)
    sys.stdin.read()
"""
_IDLE = """
import time
import hansard

spool = hansard.init().settings.data / "spool"
until_s = time.monotonic() + 60
while list(spool.glob("*/*-*.*")) and time.monotonic() < until_s:
    time.sleep(0.05)
hansard.shutdown()
"""
_SHORT = """
import hansard

hansard.init()
from opentelemetry import trace

trace.get_tracer("program").start_span("own").end()
"""
_FORKING = """
import os, sys
import hansard

hansard.init()
from opentelemetry import trace

tracer = trace.get_tracer("program")
with tracer.start_as_current_span("master"):
    tracer.start_span("before").end()
    if len(sys.argv) > 1:
        hansard.flush()
    children = []
    for number in range(2):
        child = os.fork()
        if child == 0:
            with tracer.start_as_current_span(f"worker {number}"):
                pass
            hansard.shutdown()
            os._exit(0)
        children.append(child)
    print([os.waitpid(child, 0)[1] for child in children])
"""
_SPAWNING = """
import multiprocessing
import hansard

def work(number):
    hansard.init()
    from opentelemetry import trace
    trace.get_tracer("program").start_span(f"worker {number}").end()

if __name__ == "__main__":
    hansard.init()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(number,)) for number in range(2)]
    [one.start() for one in workers]
    [one.join() for one in workers]
    print([one.exitcode for one in workers])
"""


def until(find: Callable[[], Any], *, timeout_s: float = 100) -> Any:
    """Return what is found as soon as it is."""
    deadline_s = time.monotonic() + timeout_s
    never = threading.Event()  # another process is watched: it sets nothing here
    while not (found := find()) and time.monotonic() < deadline_s:
        never.wait(0.02)
    return found


@contextmanager
def living(variables: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run a program that stays in its root span until it is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", _LIVING],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One server for all: each test's program is a service of its own."""
    with hosting(tmp_path_factory.mktemp("server")) as running:
        yield running


def settings(own: Path, endpoint: str, protocol: str = "http/protobuf") -> dict[str, str]:
    return settings_of(own, endpoint, protocol) | {"HANSARD_SERVICE_NAME": own.name}


def _runs_of(server: Serving, own: Path) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(server.get(f"/v1/runs?service={own.name}"))["items"]
    return items


def _spans_counted(server: Serving, what: str) -> int:
    return int(json.loads(server.get("/v1/ledger"))["spans"][what])


def runs(server: Serving, own: Path) -> dict[str, tuple[str, int]]:
    """Return status and number of spans of every run of a program, by name."""
    return {one["name"]: (one["status"], one["span_count"]) for one in _runs_of(server, own)}


def _keepalive_of(server: Serving, own: Path) -> bool:
    """Say whether the store holds a keepalive of a program; no answer of the API tells."""
    connection = open_reader(DataFolder(server.data))
    try:
        known = (
            "SELECT 1 FROM process_keepalive AS own JOIN resource ON resource.id = own.resource "
            "WHERE service_name = ?"
        )
        return bool(connection.execute(known, (own.name,)).get)
    finally:
        connection.close()


def names(server: Serving, own: Path) -> list[str]:
    """Return the names of all steps of a program."""
    found = []
    for run_ in _runs_of(server, own):
        steps = json.loads(server.get(f"/v1/runs/{run_['run_id']}/steps"))["items"]
        found += [step["name"] for step in steps]
    return sorted(found)


@pytest.mark.covers("OT-12", "OT-19")
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_what_a_killed_process_spooled_is_sent_by_the_next_start(
    server: Serving, tmp_path: Path, protocol: str
) -> None:
    nobody = settings(tmp_path, f"http://127.0.0.1:{closed_port()}", protocol)
    with living(nobody):
        assert until(lambda: len(spooled(tmp_path)) == 2)

    ended = run(_IDLE, settings(tmp_path, endpoint(server, protocol), protocol))

    assert (ended.status, ended.errors) == (0, [])
    assert runs(server, tmp_path) == {"root": ("no_end", 4)}
    assert spooled(tmp_path) == []
    assert list((tmp_path / "spool").iterdir()) == []


@pytest.mark.covers("OT-19")
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_run_is_seen_while_it_runs_and_has_no_end_when_its_process_is_killed(
    server: Serving, tmp_path: Path, protocol: str
) -> None:
    variables = settings(tmp_path, endpoint(server, protocol), protocol)
    with living(variables | {"HANSARD_KEEPALIVE_INTERVAL_MS": "200"}) as process:
        assert until(lambda: runs(server, tmp_path) == {"root": ("open", 4)})
        assert until(
            lambda: _keepalive_of(server, tmp_path)
        )  # a request of its own, after the spans
        process.kill()
        process.wait()

        assert until(lambda: runs(server, tmp_path) == {"root": ("no_end", 4)})


def test_a_run_that_ends_well_is_shown_once(server: Serving, tmp_path: Path) -> None:
    opened = _spans_counted(server, "opened")
    with living(settings(tmp_path, server.http)) as process:
        assert until(lambda: runs(server, tmp_path) == {"root": ("open", 4)})
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0

    assert runs(server, tmp_path) == {"root": ("ok", 4)}
    assert _spans_counted(server, "opened") == opened + 1


def _spool(own: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return hansard("spool", *arguments, "--data", str(own))


def _killed(own: Path) -> None:
    with living(settings(own, f"http://127.0.0.1:{closed_port()}")):
        assert until(lambda: len(spooled(own)) == 2)


@pytest.mark.covers("OT-12")
def test_the_command_shows_sends_and_drops_what_waits(server: Serving, tmp_path: Path) -> None:
    _killed(tmp_path)
    [listed] = json.loads(_spool(tmp_path, "list", "--json").stdout)["processes"]
    assert (listed["spans"], listed["open_spans"], listed["is_living"]) == (3, 1, False)
    failed = _spool(tmp_path, "flush", "--endpoint", f"http://127.0.0.1:{closed_port()}")
    assert (failed.returncode, "nothing can be sent" in failed.stderr) == (1, True)

    sent = _spool(tmp_path, "flush", "--endpoint", server.http)

    assert sent.returncode == 0
    assert sent.stderr.splitlines()[-1] == "3 sent or counted, 0 left"
    assert runs(server, tmp_path) == {"root": ("no_end", 4)}
    _killed(tmp_path)
    assert _spool(tmp_path, "drop", "--yes").returncode == 0
    assert _spool(tmp_path, "flush", "--endpoint", server.http).returncode == 0
    losses = json.loads(server.get("/v1/ledger"))["drops"]
    [loss] = [one for one in losses if one["service"] == tmp_path.name]
    assert (loss["items"], loss["reason"]) == (3, "dropped by hand")


@pytest.mark.covers("OT-10")
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("after", ["init", "sending"])
def test_children_of_a_fork_send_their_own_spans_once(
    server: Serving, tmp_path: Path, protocol: str, after: str
) -> None:
    variables = settings(tmp_path, endpoint(server, protocol), protocol)
    duplicates = _spans_counted(server, "duplicate")
    code = _FORKING if after == "init" else f"import sys; sys.argv.append('x')\n{_FORKING}"
    ended = run(code, variables)
    assert (ended.status, ended.output) == (0, "[0, 0]\n")
    hansard("spool", "flush", "--data", str(tmp_path), "--endpoint", server.http)

    assert names(server, tmp_path) == ["before", "master", "worker 0", "worker 1"]
    assert _spans_counted(server, "duplicate") == duplicates


def test_spawned_processes_send_their_own_spans(server: Serving, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_SPAWNING)
    variables = settings(tmp_path, server.http)
    ended = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        env=variables,
        timeout=240,
    )

    assert (ended.stdout, ended.stderr) == ("[0, 0]\n", "")
    assert names(server, tmp_path) == ["worker 0", "worker 1"]


def test_one_short_program_sends_what_hundreds_of_dead_ones_left(
    server: Serving, tmp_path: Path
) -> None:
    away = settings(tmp_path, f"http://127.0.0.1:{closed_port()}")
    assert run(_SHORT, away | {"HANSARD_EXIT_TIMEOUT_MS": "500"}).status == 0
    [left] = [path for path in (tmp_path / "spool").iterdir() if len(path.name) == 32]
    for number in range(300):
        shutil.copytree(left, left.with_name(f"{number:032x}"))
    torn = left.with_name("0" * 31 + "7")
    next(torn.glob("*.traces")).write_bytes(b"torn")  # nothing else may wait for it

    ended = run(_SHORT, settings(tmp_path, server.http))

    assert ended.status == 0
    assert spooled(tmp_path) == []
    assert len(_runs_of(server, tmp_path)) == 2  # the copies are the same span
