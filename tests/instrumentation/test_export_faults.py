"""Whatever the collector does, a program ends with its own result, in time, with one line told."""

from __future__ import annotations

import contextlib
import stat
import time
from pathlib import Path

import pytest

from hansard._export.spool import SpoolFolder
from tests.instrumentation.faulty import closed_port, faulty
from tests.instrumentation.programs import AGENT, run, settings, spooled

pytestmark = pytest.mark.slow

_EXIT_MS = 800
# Measured from the last line of the program to its end as its parent sees it; the interpreter's
# own end is in it, on a machine that others use. A request takes 10 s to time out.
_MOST_S = 5
_HTTP = ("stopped", "hanging", "503", "500", "401", "redirect", "page", "garbage", "nothing")
_CASES = [("http/protobuf", kind) for kind in _HTTP] + [
    ("grpc", kind) for kind in ("stopped", "hanging", "garbage")
]
_TIMED = AGENT.replace("print(", "import time; print(time.monotonic(), file=sys.stderr); print(")


@pytest.mark.covers("OT-11")
@pytest.mark.parametrize(("protocol", "kind"), _CASES)
def test_a_program_ends_as_ever(tmp_path: Path, protocol: str, kind: str) -> None:
    collector = contextlib.nullcontext(closed_port()) if kind == "stopped" else faulty(kind)
    with collector as port:
        variables = settings(tmp_path, f"http://127.0.0.1:{port}", protocol)
        ended = run(_TIMED, variables | {"HANSARD_EXIT_TIMEOUT_MS": str(_EXIT_MS)})
        now_s = time.monotonic()

    assert (ended.status, ended.output) == (7, "result 42\n")
    moment_s, *told = sorted(ended.errors, key=lambda line: "nothing can be sent" in line)
    assert now_s - float(moment_s) < _MOST_S
    assert [line.partition(": ")[0] for line in told] == [
        f"nothing can be sent to http://127.0.0.1:{port}"
    ]
    assert spooled(tmp_path) == ["000001-4.traces"]


@pytest.mark.covers("OT-11", "OT-12")
@pytest.mark.parametrize("kind", ["stopped", "hanging", "503"])
def test_a_program_that_ends_with_no_time_to_send_has_every_span_on_disk(
    tmp_path: Path, kind: str
) -> None:
    """As on a machine so slow that the time for the end is over before anything is written."""
    collector = contextlib.nullcontext(closed_port()) if kind == "stopped" else faulty(kind)
    with collector as port:
        variables = settings(tmp_path, f"http://127.0.0.1:{port}")
        ended = run(AGENT, variables | {"HANSARD_EXIT_TIMEOUT_MS": "0"})

    assert (ended.status, ended.output) == (7, "result 42\n")
    assert spooled(tmp_path) == ["000001-4.traces"]


@pytest.mark.covers("OT-11")
def test_a_program_whose_spans_are_refused_for_ever_ends_as_ever(tmp_path: Path) -> None:
    with faulty("400") as port:
        ended = run(AGENT, settings(tmp_path, f"http://127.0.0.1:{port}"))

    assert (ended.status, ended.output) == (7, "result 42\n")
    [told] = ended.errors
    assert told.startswith("the collector will not take 4 spans: it answered 400")
    [refused] = (tmp_path / "spool" / "refused").iterdir()
    assert refused.name.endswith("-4.traces")


_TOO_LARGE_FOR_A_SPAN = """
import sys, time
from pathlib import Path
import hansard

@hansard.tool
def look(wanted):
    return wanted

recorder = hansard.init()
look("p" * 3_000)
until_s = time.monotonic() + 60
while not list((recorder.settings.data / "spool").glob("*/*.traces")):
    assert time.monotonic() < until_s
    time.sleep(0.05)
print("result 42")
"""


@pytest.mark.covers("OT-11")
def test_a_program_that_has_all_on_disk_when_it_ends_tells_so(tmp_path: Path) -> None:
    """The collector hangs: nothing failed yet, and nothing is left in memory either."""
    with faulty("hanging") as port:
        variables = settings(tmp_path, f"http://127.0.0.1:{port}")
        ended = run(_TOO_LARGE_FOR_A_SPAN, variables | {"HANSARD_EXIT_TIMEOUT_MS": str(_EXIT_MS)})

    assert (ended.status, ended.output) == (0, "result 42\n")
    [told] = ended.errors
    assert told.startswith(f"nothing can be sent to http://127.0.0.1:{port}: ")
    assert spooled(tmp_path) == ["000002-1.traces"]  # after the pack of what it names


_FORKING_WHILE_IT_SENDS = """
import os, time
import hansard

spool = hansard.init().settings.data / "spool"
from opentelemetry import trace

trace.get_tracer("program").start_span("before").end()
hansard.flush(2_000)
started_s = time.monotonic()
child = os.fork()
if child == 0:
    os._exit(42)
print(os.waitpid(child, 0)[1] >> 8, time.monotonic() - started_s < 3)
"""


@pytest.mark.covers("OT-11")
def test_a_fork_does_not_wait_for_a_grpc_collector_that_hangs(tmp_path: Path) -> None:
    """A call must not be under way while a process forks, so that one is ended."""
    with faulty("hanging") as port:
        variables = settings(tmp_path, f"http://127.0.0.1:{port}", "grpc")
        ended = run(_FORKING_WHILE_IT_SENDS, variables | {"HANSARD_EXIT_TIMEOUT_MS": str(_EXIT_MS)})

    assert (ended.status, ended.output) == (0, "42 True\n")
    assert len(spooled(tmp_path)) == 1


def test_what_a_collector_says_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    with faulty("escapes") as port:
        ended = run(AGENT, settings(tmp_path, f"http://127.0.0.1:{port}"))

    [told] = ended.errors
    assert "\\x1b[2J" in told
    assert told.isprintable()


@pytest.mark.parametrize("is_older", [False, True])
def test_the_spool_and_all_in_it_is_its_owners_alone(tmp_path: Path, is_older: bool) -> None:
    root = tmp_path / "data" / "spool"
    if is_older:
        root.mkdir(parents=True, mode=0o755)
        root.chmod(0o755)

    SpoolFolder.make(root)

    wide = [path for path in (root, *root.rglob("*")) if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert wide == []
