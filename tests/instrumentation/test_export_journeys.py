"""Processes that are killed, fork and spawn, with the real server at the other end."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.instrumentation.faulty import closed_port
from tests.instrumentation.programs import run, settings, spooled
from tests.instrumentation.test_export_sends import endpoint
from tests.journeys.processes import Serving, hansard, serving

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
until_s = time.monotonic() + 20
while list(spool.glob("*/*-*.*")) and time.monotonic() < until_s:
    time.sleep(0.05)
hansard.shutdown()
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


def until(find: Callable[[], Any], *, timeout_s: float = 40) -> Any:
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


def runs(server: Serving) -> dict[str, tuple[str, int]]:
    """Return status and number of spans of every run, by name."""
    items = json.loads(server.get("/v1/runs"))["items"]
    return {item["name"]: (item["status"], item["span_count"]) for item in items}


def names(server: Serving) -> list[str]:
    """Return the names of all steps."""
    found = []
    for run_ in json.loads(server.get("/v1/runs"))["items"]:
        steps = json.loads(server.get(f"/v1/runs/{run_['run_id']}/steps"))["items"]
        found += [step["name"] for step in steps]
    return sorted(found)


@pytest.mark.covers("OT-12", "OT-19")
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_what_a_killed_process_spooled_is_sent_by_the_next_start(
    tmp_path: Path, protocol: str
) -> None:
    own = tmp_path / "own"
    nobody = settings(own, f"http://127.0.0.1:{closed_port()}", protocol)
    with living(nobody):
        assert until(lambda: len(spooled(own)) == 2)

    with serving(tmp_path / "server") as server:
        ended = run(_IDLE, settings(own, endpoint(server, protocol), protocol))

        assert (ended.status, ended.errors) == (0, [])
        assert runs(server) == {"root": ("no_end", 4)}
    assert spooled(own) == []
    assert list((own / "spool").iterdir()) == []


@pytest.mark.covers("OT-19")
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_run_is_seen_while_it_runs_and_has_no_end_when_its_process_is_killed(
    tmp_path: Path, protocol: str
) -> None:
    with serving(tmp_path / "server") as server:
        variables = settings(tmp_path / "own", endpoint(server, protocol), protocol)
        with living(variables | {"HANSARD_PULSE_INTERVAL_MS": "200"}) as process:
            assert until(lambda: runs(server) == {"root": ("open", 4)})
            process.kill()
            process.wait()

            assert until(lambda: runs(server) == {"root": ("no_end", 4)})


def test_a_run_that_ends_well_is_shown_once(tmp_path: Path) -> None:
    with serving(tmp_path / "server") as server:
        with living(settings(tmp_path / "own", server.http)) as process:
            assert until(lambda: runs(server) == {"root": ("open", 4)})
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(30) == 0

        assert runs(server) == {"root": ("ok", 4)}
        assert json.loads(server.get("/v1/ledger"))["spans"]["opened"] == 1


def _spool(own: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return hansard("spool", *arguments, "--data", str(own))


def _killed(own: Path) -> None:
    with living(settings(own, f"http://127.0.0.1:{closed_port()}")):
        assert until(lambda: len(spooled(own)) == 2)


@pytest.mark.covers("OT-12")
def test_the_command_shows_sends_and_drops_what_waits(tmp_path: Path) -> None:
    own = tmp_path / "own"
    _killed(own)
    with serving(tmp_path / "server") as server:
        [listed] = json.loads(_spool(own, "list", "--json").stdout)["processes"]
        assert (listed["spans"], listed["open_spans"], listed["is_living"]) == (3, 1, False)
        failed = _spool(own, "flush", "--endpoint", f"http://127.0.0.1:{closed_port()}")
        assert (failed.returncode, "nothing can be sent" in failed.stderr) == (1, True)

        sent = _spool(own, "flush", "--endpoint", server.http)

        assert sent.returncode == 0
        assert sent.stderr.splitlines()[-1] == "3 sent or counted, 0 left"
        assert runs(server) == {"root": ("no_end", 4)}
        _killed(own)
        assert _spool(own, "drop", "--yes").returncode == 0
        assert _spool(own, "flush", "--endpoint", server.http).returncode == 0
        [loss] = json.loads(server.get("/v1/ledger"))["losses"]
        assert (loss["service"], loss["items"]) == ("program", 3)
        assert loss["reason"] == "dropped by hand"


@pytest.mark.covers("OT-10")
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("after", ["init", "sending"])
def test_children_of_a_fork_send_their_own_spans_once(
    tmp_path: Path, protocol: str, after: str
) -> None:
    with serving(tmp_path / "server") as server:
        own = tmp_path / "own"
        variables = settings(own, endpoint(server, protocol), protocol)
        code = _FORKING if after == "init" else f"import sys; sys.argv.append('x')\n{_FORKING}"
        ended = run(code, variables)
        assert (ended.status, ended.output) == (0, "[0, 0]\n")
        hansard("spool", "flush", "--data", str(own), "--endpoint", server.http)

        assert names(server) == ["before", "master", "worker 0", "worker 1"]
        assert json.loads(server.get("/v1/ledger"))["spans"]["duplicate"] == 0


def test_spawned_processes_send_their_own_spans(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_SPAWNING)
    with serving(tmp_path / "server") as server:
        variables = settings(tmp_path / "own", server.http)
        ended = subprocess.run(
            [sys.executable, str(program)],
            capture_output=True,
            text=True,
            env=variables,
            timeout=60,
        )

        assert (ended.stdout, ended.stderr) == ("[0, 0]\n", "")
        assert names(server) == ["worker 0", "worker 1"]
