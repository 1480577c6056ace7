"""Workers that end by SIGTERM, with which `with multiprocessing.Pool(...)` ends its workers."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from tests.instrumentation.programs import run_file, spooled
from tests.journeys.processes import Serving, environment, hosting

METHODS = ["spawn", "fork", "forkserver"]

PROGRAM = """
import json, multiprocessing, os, signal, subprocess, sys, time

import hansard

@hansard.tool
def square(number):
    return number * number

def announce(name):
    open(name + ".ready", "w").close()

def await_ready(*names):
    deadline = time.monotonic() + 100
    while not all(os.path.exists(name + ".ready") for name in names):
        assert time.monotonic() < deadline, names
        time.sleep(0.02)

@hansard.tool
def wait_long(number):
    square(number)
    announce(f"{sys.argv[2]}.{number}")
    time.sleep(60)

def square_with_own_init(number):
    hansard.init()
    return square(number)

def die_alone(path):
    hansard.init()
    square(7)
    announce(path)
    time.sleep(60)

def own_handler(path):
    def note(number, frame):
        open(path, "w").write("asked")
        os._exit(3)
    signal.signal(signal.SIGTERM, note)
    hansard.init()
    square(7)
    announce(path)
    time.sleep(60)

def started_a_program(path):
    hansard.init()
    square(7)
    child = subprocess.Popen(["sleep", "60"])
    child.terminate()
    open(path, "w").write(str(child.wait(10)))
    announce(path)

def ends_of(context, target, path):
    process = context.Process(target=target, args=(path,))
    process.start()
    await_ready(path)
    started = time.monotonic()
    process.terminate()
    process.join(30)
    return [process.exitcode, time.monotonic() - started]
"""

MAIN = """
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    hansard.init()
    with hansard.start_run("pooled") as run:
        printed = main(context)
    print(json.dumps([printed, run.run_id]))
"""

WITH_BLOCK = """
def main(context):
    with context.Pool(2, initializer=hansard.worker_initializer()) as pool:
        return pool.map(square, range(6))
"""

OWN_INIT = """
def main(context):
    with context.Pool(2) as pool:
        return pool.map(square_with_own_init, range(6))
"""

IN_THE_MIDDLE = """
def main(context):
    pool = context.Pool(2, initializer=hansard.worker_initializer())
    pool.map_async(wait_long, range(2), chunksize=1)
    await_ready(*(f"{sys.argv[2]}.{number}" for number in range(2)))
    started = time.monotonic()
    pool.terminate()
    pool.join()
    return time.monotonic() - started
"""

REPLACED = """
def main(context):
    with context.Pool(2, initializer=hansard.worker_initializer(), maxtasksperchild=1) as pool:
        return pool.map(square, range(6), chunksize=1)
"""

TARGET = """
def main(context):
    return ends_of(context, {target}, sys.argv[2])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("server")) as running:
        yield running


def ran(main: str, where: Path, server: Serving, *arguments: str) -> tuple[Any, str]:
    """Run a program, and another that sends what a busy machine left in the spool."""
    variables = environment(HANSARD_ENDPOINT=server.http, HANSARD_DATA=str(where / "data"))
    ended = run_file(PROGRAM + main + MAIN, where, variables, *arguments)
    # A worker that had no time to send what it recorded says so, and the next program sends it.
    errors = [line for line in ended.errors if "until it can, spans are kept in" not in line]
    assert (ended.status, errors) == (0, [])
    flush(where, variables)
    printed, run_id = json.loads(ended.output)
    return printed, run_id


def flush(where: Path, variables: dict[str, str]) -> None:
    """Let later programs send what is in the spool, as many as a busy machine needs."""
    for _ in range(5):
        run_file("import hansard\nhansard.init()\nhansard.flush(30)\n", where, variables)
        if not spooled(where / "data"):
            return


def squares(server: Serving, *, run_id: str | None = None) -> int:
    """Count the squares on record: in one run, or in the whole store."""
    connection = open_reader(DataFolder(server.data))
    try:
        query = "SELECT count(*) FROM span WHERE name = 'execute_tool square'"
        if run_id is None:
            return int(connection.execute(query).get)
        return int(connection.execute(query + " AND trace_id = ?", (bytes.fromhex(run_id),)).get)
    finally:
        connection.close()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("main", [WITH_BLOCK, REPLACED], ids=["with block", "one task each"])
def test_what_the_workers_of_a_pool_recorded_arrives(
    server: Serving, tmp_path: Path, main: str, method: str
) -> None:
    results, run_id = ran(main, tmp_path, server, method)

    assert results == [0, 1, 4, 9, 16, 25]
    assert squares(server, run_id=run_id) == 6


@pytest.mark.parametrize("method", METHODS)
def test_what_workers_recorded_that_only_call_init_arrives(
    server: Serving, tmp_path: Path, method: str
) -> None:
    before = squares(server)

    ran(OWN_INIT, tmp_path, server, method)

    assert squares(server) == before + 6


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_that_is_ended_in_a_task_keeps_the_steps_before(
    server: Serving, tmp_path: Path, method: str
) -> None:
    took, run_id = ran(IN_THE_MIDDLE, tmp_path, server, method, str(tmp_path / "task"))

    assert squares(server, run_id=run_id) == 2
    assert took < 10


@pytest.mark.parametrize("method", METHODS)
def test_a_process_that_is_terminated_still_ends_by_sigterm(
    server: Serving, tmp_path: Path, method: str
) -> None:
    before = squares(server)

    (status, took), _ = ran(
        TARGET.format(target="die_alone"), tmp_path, server, method, str(tmp_path / "note")
    )

    assert status == -signal.SIGTERM
    assert took < 10
    assert squares(server) == before + 1


@pytest.mark.parametrize("method", METHODS)
def test_the_programs_own_handler_stays(server: Serving, tmp_path: Path, method: str) -> None:
    note = tmp_path / "note"

    (status, _), _ = ran(TARGET.format(target="own_handler"), tmp_path, server, method, str(note))

    assert (status, note.read_text()) == (3, "asked")


def test_a_program_that_a_worker_starts_can_be_terminated(server: Serving, tmp_path: Path) -> None:
    note = tmp_path / "note"

    ran(TARGET.format(target="started_a_program"), tmp_path, server, "spawn", str(note))

    assert note.read_text() == str(-signal.SIGTERM)


def test_a_server_that_does_not_answer_holds_a_pool_shortly_and_loses_nothing(
    server: Serving, tmp_path: Path
) -> None:
    variables = environment(
        HANSARD_ENDPOINT="http://127.0.0.1:9", HANSARD_DATA=str(tmp_path / "data")
    )
    started = time.monotonic()
    ended = run_file(PROGRAM + WITH_BLOCK + MAIN, tmp_path, variables, "spawn")
    took = time.monotonic() - started
    assert ended.status == 0
    _, run_id = json.loads(ended.output)
    assert took < 20

    later = {**variables, "HANSARD_ENDPOINT": server.http}
    flush(tmp_path, later)

    assert squares(server, run_id=run_id) == 6
