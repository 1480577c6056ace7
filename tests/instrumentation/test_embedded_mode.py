"""Embedded mode: programs that keep their own record, in the store that a server would show."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_store.database.connections import open_for_accountability, open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import transaction
from tests.instrumentation.programs import AGENT, run, settings, spooled
from tests.journeys.processes import Serving, count_spans, serving

pytestmark = pytest.mark.slow

NOWHERE = "http://127.0.0.1:9"
RESULT = (7, "result 42\n")


def embedded(data: Path, **more: str) -> dict[str, str]:
    """Return the environment of a program that stores by itself; nobody listens for it."""
    wanted = {"HANSARD_EMBEDDED": "true", "HANSARD_EXIT_TIMEOUT_MS": "20000"}
    return settings(data, NOWHERE) | wanted | more


def stored(data: Path, sql: str) -> Any:
    connection = apsw.Connection(str(data / "hansard.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute(sql).get
    finally:
        connection.close()


def runs_of(server: Serving) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(server.get("/v1/runs"))["items"]
    return found


def wait_until(is_so: Callable[[], object], *, timeout_s: float = 60) -> None:
    """Look again and again at what another process does."""
    until_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.05)


# ---- no server, one later, one beside

SHAPES = """
import asyncio, hansard

@hansard.tool
def double(number): return 2 * number

@hansard.agent
async def agent(numbers):
    return [double(number) for number in numbers]

for _ in range(2):
    hansard.init(embedded=True)
    with hansard.start_run("shapes", "test", "Double them.") as run:
        with run.step("turn"):
            call = run.record_tool_call("outside", {"n": 1}, call_id="1")
            run.record_tool_result("outside", 2, call_id="1")
            total = sum(asyncio.run(agent([1, 2, 3])))
    print("total", total, run.status)
    hansard.shutdown()
"""


@pytest.mark.covers("SD-07", "OT-11")
def test_a_program_keeps_its_record_without_a_server_and_one_that_starts_later_shows_it(
    tmp_path: Path,
) -> None:
    ended = run(SHAPES, embedded(tmp_path))

    assert (ended.status, ended.errors) == (0, [])
    assert ended.output == "total 12 completed\n" * 2
    assert not (tmp_path / "hansard.db-wal").exists()  # closed in good order
    assert count_spans(tmp_path) == 2 * 7
    assert spooled(tmp_path) == []
    with serving(tmp_path) as server:
        assert [(one["status"], one["span_count"]) for one in runs_of(server)] == [("ok", 7)] * 2
        steps = json.loads(server.get(f"/v1/runs/{runs_of(server)[0]['run_id']}/steps"))["items"]
        [sender] = json.loads(server.get("/v1/ledger"))["senders"]
    assert [step["name"] for step in steps] == [
        "invoke_agent shapes", "turn", "execute_tool outside", "invoke_agent agent",
        *["execute_tool double"] * 3,
    ]  # fmt: skip
    assert sender["transport"] == "embedded"


SLOW = """
import time
import hansard
from hansard._export.embedded import EmbeddedSender

opened = EmbeddedSender._opened
def slowly(sender):
    time.sleep(2.5)
    return opened(sender)
EmbeddedSender._opened = slowly

hansard.init(embedded=True)

@hansard.agent
def clerk(question): return question

print(clerk("short"))
"""


def test_a_short_program_on_a_busy_machine_ends_with_its_record_in_the_store(
    tmp_path: Path,
) -> None:
    patience = embedded(tmp_path)
    patience.pop("HANSARD_EXIT_TIMEOUT_MS", None)  # as it is where nobody set it
    ended = run(SLOW, patience)

    assert (ended.status, ended.output, ended.errors) == (0, "short\n", [])
    assert count_spans(tmp_path) == 1
    assert spooled(tmp_path) == []


WAITING = """
import hansard, sys
hansard.init(embedded=True)
with hansard.start_run("waiting") as run:
    with run.step("first"):
        pass
    print(run.run_id, flush=True)
    sys.stdin.readline()
"""


@contextmanager
def running(code: str, variables: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=variables,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_server_beside_it_shows_the_run_while_it_runs_and_that_it_was_killed(
    tmp_path: Path,
) -> None:
    with (
        serving(tmp_path) as server,
        running(WAITING, embedded(tmp_path, HANSARD_KEEPALIVE_INTERVAL_MS="100")) as program,
    ):
        assert program.stdout is not None
        run_id = program.stdout.readline().strip()
        address = f"/v1/runs/{run_id}"
        wait_until(lambda: {one["run_id"]: one["status"] for one in runs_of(server)} == {
            run_id: "open"
        })  # fmt: skip

        program.send_signal(signal.SIGKILL)

        wait_until(lambda: json.loads(server.get(address))["status"] == "no_end")
        steps = json.loads(server.get(f"{address}/steps"))["items"]
        assert [(step["name"], step["status"]) for step in steps] == [
            ("invoke_agent waiting", "no_end"),
            ("first", "unset"),
        ]
    assert stored(tmp_path, "PRAGMA integrity_check") == "ok"


LARGE = """
import hansard
hansard.init(embedded=True)

@hansard.agent
def read(book): return len(book)

print(read("word " * 1_000_000))
"""


@pytest.mark.covers("OT-07", "OT-08")
def test_a_payload_of_5_mb_is_in_the_store_under_its_digest(tmp_path: Path) -> None:
    ended = run(LARGE, embedded(tmp_path))

    assert (ended.status, ended.output, ended.errors) == (0, "5000000\n", [])
    wanted = json.dumps({"book": "word " * 1_000_000}, separators=(",", ":")).encode()
    digest = sha256(wanted).digest()
    [size] = [stored(tmp_path, f"SELECT size FROM payload WHERE digest = x'{digest.hex()}'")]
    assert size == len(wanted)
    assert [path for path in (tmp_path / "spool").rglob("*") if path.is_file()] == []


# ---- forks

FORKING = """
import os, sys, hansard
hansard.init(embedded=True)

@hansard.tool
def work(number): return number

@hansard.agent
def parent():
    children = []
    for child in range(4):
        work(child)
        hansard.flush()                 # the store is open when it forks
        children.append(os.fork())
        if not children[-1]:
            for number in range(10):
                work(number)
            assert hansard.flush()
            sys.exit(0)
        work(child)
    return [os.waitpid(child, 0)[1] for child in children]

print(parent())
"""


def test_children_of_a_fork_open_a_store_of_their_own(tmp_path: Path) -> None:
    ended = run(FORKING, embedded(tmp_path))

    assert (ended.status, ended.output, ended.errors) == (0, "[0, 0, 0, 0]\n", [])
    # Each child leaves `parent` by an exception of its own, and only the parent ends that span.
    assert stored(tmp_path, "SELECT count(*) FROM span WHERE name = 'execute_tool work'") == 48
    assert stored(tmp_path, "SELECT count(*) FROM run") == 1
    assert stored(tmp_path, "PRAGMA integrity_check") == "ok"


FORKED_WHILE_WRITING = """
import os, sys, threading, time, hansard
from hansard._export import embedded
recorder = hansard.init(embedded=True)

@hansard.tool
def work(number): return number

work(1)
assert hansard.flush()
[sender] = embedded._forks.senders
began, may_end = threading.Event(), threading.Event()

def write():                            # a batch that takes longer than a fork waits
    with sender._lock:
        began.set()
        may_end.wait(30)

threading.Thread(target=write).start()
began.wait(30)
child = os.fork()
if not child:
    work(2)
    print("child", hansard.flush(0.5), flush=True)
    sys.exit(0)
print("ended", os.waitpid(child, 0)[1])
may_end.set()
work(3)
print("parent", hansard.flush())
"""


def test_a_child_that_was_forked_in_the_middle_of_writing_leaves_its_spans_to_the_next_process(
    tmp_path: Path,
) -> None:
    ended = run(FORKED_WHILE_WRITING, embedded(tmp_path))

    assert (ended.status, ended.output) == (0, "child False\nended 0\nparent True\n")
    assert len(ended.errors) == 1
    assert "the store is not open in this process" in ended.errors[0]
    assert stored(tmp_path, "PRAGMA integrity_check") == "ok"
    run(AGENT, embedded(tmp_path))
    assert stored(tmp_path, "SELECT count(*) FROM span WHERE name = 'execute_tool work'") == 3
    assert spooled(tmp_path) == []


# ---- what can go wrong; the program's result is always the same


def assert_unharmed(data: Path, *, seconds: float, **more: str) -> list[str]:
    """Run a program, and return its warnings: one for each kind of trouble."""
    ended = run(AGENT, embedded(data, **more))
    assert (ended.status, ended.output) == RESULT, ended.errors
    assert ended.seconds < seconds
    assert len(ended.errors) == len(set(ended.errors))
    return ended.errors


@pytest.mark.covers("OT-11", "OT-12")
def test_while_the_database_is_locked_spans_wait_in_the_spool(tmp_path: Path) -> None:
    open_for_ingest(DataFolder(tmp_path)).close()
    lock = open_for_accountability(DataFolder(tmp_path))
    with transaction(lock):
        [warning] = assert_unharmed(tmp_path, seconds=10)
        assert f"the store in {tmp_path}" in warning
        assert "locked" in warning
    lock.close()
    assert count_spans(tmp_path) == 0
    assert len(spooled(tmp_path)) >= 1

    assert assert_unharmed(tmp_path, seconds=10) == []

    assert count_spans(tmp_path) == 8
    assert spooled(tmp_path) == []


def test_a_damaged_database_or_a_newer_one_is_left_as_it_is(tmp_path: Path) -> None:
    newer, damaged = tmp_path / "newer", tmp_path / "damaged"
    connection = open_for_ingest(DataFolder(newer))
    connection.pragma("user_version", 9999)
    connection.close()
    damaged.mkdir()
    (damaged / "hansard.db").write_bytes(b"no database " * 999)

    [told] = assert_unharmed(newer, seconds=10)
    assert "the database has schema 9999" in told
    [told] = assert_unharmed(damaged, seconds=10)
    assert "not a database" in told

    assert (damaged / "hansard.db").read_bytes() == b"no database " * 999
    assert len(spooled(newer)) >= 1
    assert len(spooled(damaged)) >= 1


def test_a_data_folder_that_cannot_be_used_costs_spans_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")

    warnings = assert_unharmed(tmp_path / "file", seconds=10)

    assert 1 <= len(warnings) <= 4  # settings, key, store, spool: each is told once
    assert any("cannot use the data folder" in line for line in warnings)


FULL_DISK = """
import os, pathlib, resource, signal, time
data = pathlib.Path(os.environ["HANSARD_DATA"])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import hansard
hansard.init(embedded=True)

@hansard.tool
def work(noise): return noise

work("first")
assert hansard.flush()
size = (data / "hansard.db-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50_000, resource.RLIM_INFINITY))
for number in range(40):
    work(os.urandom(400).hex())
    hansard.flush(5)
print("full", hansard.flush(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
work("last")
hansard.shutdown()                      # what waits is tried at once by the next start
hansard.init(embedded=True)
until_s = time.monotonic() + 60
while list(data.glob("spool/[0-9a-f]*/*-*.*")) and time.monotonic() < until_s:
    time.sleep(0.02)
"""


def test_on_a_full_disk_spans_wait_and_are_stored_when_there_is_room(tmp_path: Path) -> None:
    ended = run(FULL_DISK, embedded(tmp_path))

    assert (ended.status, ended.output) == (0, "full False\n")
    assert (
        len(
            [
                line
                for line in ended.errors
                if "further warnings of this kind are suppressed" in line
            ]
        )
        == 1
    )
    assert count_spans(tmp_path) == 42
    assert stored(tmp_path, "PRAGMA integrity_check") == "ok"


@pytest.mark.covers("OT-17", "RC-20")
def test_metadata_only_keeps_no_content_in_any_file(tmp_path: Path) -> None:
    code = SHAPES.replace("Double them.", "canary " * 300)

    ended = run(code, embedded(tmp_path) | {"HANSARD_RETENTION": "metadata_only"})

    assert (ended.status, ended.errors) == (0, [])
    assert count_spans(tmp_path) == 14
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if b"canary" in path.read_bytes()] == []


_ENDING = """
import os, threading
from opentelemetry.sdk.trace import TracerProvider
from hansard._config.settings import load_settings
from hansard._export.embedded import EmbeddedSender
from hansard._export.spool import SpoolKind

sender = EmbeddedSender(load_settings({"embedded": True}, os.environ))
span = TracerProvider().get_tracer("program").start_span("work")
span.set_attribute("said", "key sk-ant-api03-" + "a1B2" * 24 + " and " + "plain words " * 20_000)
span.end()
sender.send(SpoolKind.TRACES, [span])

def send():
    while True:
        sender.send(SpoolKind.TRACES, [span] * 20)

threading.Thread(target=send, daemon=True).start()
"""


@pytest.mark.parametrize("again", range(4))
def test_a_program_that_ends_while_its_record_is_stored_ends_as_it_would_have(
    tmp_path: Path, again: int
) -> None:
    """RE2 aborts a process whose interpreter ends during a scan."""
    ended = run(_ENDING + f"threading.Event().wait({again} / 20)", embedded(tmp_path))

    assert (ended.status, ended.errors) == (0, [])


# ---- the extra is missing

WITHOUT_EXTRA = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in ('apsw', 'fastapi', 'orjson'):
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
sys.meta_path.insert(0, Hide())
"""


def test_asked_for_by_the_program_a_missing_extra_is_an_error_that_names_it(
    tmp_path: Path,
) -> None:
    code = """
import hansard
from hansard_compiler.errors import ConfigError
try:
    hansard.init(embedded=True)
except ConfigError as error:
    print(error.code, error)
"""
    ended = run(WITHOUT_EXTRA + code, settings(tmp_path, NOWHERE))

    assert ended.errors == []
    assert ended.output == (
        "embedded_missing embedded mode needs the package 'apsw': pip install 'hansard[embedded]'\n"
    )


def test_asked_for_by_a_variable_it_is_a_warning_and_spans_are_sent(tmp_path: Path) -> None:
    ended = run(WITHOUT_EXTRA + AGENT, embedded(tmp_path))

    assert (ended.status, ended.output) == RESULT
    assert [line for line in ended.errors if "hansard[embedded]" in line] == ended.errors[:1]
    assert "environment HANSARD_EMBEDDED" in ended.errors[0]
    assert f"nothing can be sent to {NOWHERE}" in ended.errors[1]
    assert len(ended.errors) == 2
    assert len(spooled(tmp_path)) >= 1
