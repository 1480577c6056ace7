"""Forks, notebooks, switches: the program does what it did, and its runs are told once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.instrumentation.programs import Ended, run, settings
from tests.journeys.processes import Serving, hosting


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("server")) as running:
        yield running


def told(server: Serving, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(server.get(f"/v1/runs/{run_id}"))
    return found


def names(server: Serving, run_id: str) -> list[tuple[int, str, str]]:
    items = json.loads(server.get(f"/v1/runs/{run_id}/steps"))["items"]
    return [(step["depth"], step["name"], step["status"]) for step in items]


# ---- the same result, whatever is recorded

PROGRAM = """
import asyncio, hansard
hansard.init()

@hansard.tool
def double(number): return 2 * number

@hansard.agent
async def agent(numbers):
    return [double(number) for number in numbers]

with hansard.start_run("shapes", "test", "Double them.", conversation_id="c") as run:
    with run.step("turn") as step:
        call = run.record_tool_call("outside", {"n": 1}, call_id="1")
        run.record_tool_result("outside", 2, call_id="1")
        total = sum(asyncio.run(agent([1, 2, 3])))
    try:
        with run.step("wrong"):
            1 / 0
    except ZeroDivisionError as error:
        print("caught", error)
print("total", total, run.status, step.status, hansard.current_run())
print(run.run_id or "")
raise SystemExit(3)
"""


@pytest.mark.parametrize(
    ("switches", "is_told"),
    [
        ({}, True),
        ({"OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, False),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, False),
        ({"HANSARD_RETENTION": "metadata_only"}, True),
    ],
    ids=["on", "disabled", "ratio 0", "always_off", "metadata_only"],
)
def test_the_result_is_the_same_whatever_is_recorded(
    server: Serving, tmp_path: Path, switches: dict[str, str], is_told: bool
) -> None:
    before = server.count_spans()

    ended = run(PROGRAM, settings(tmp_path, server.http) | switches)

    *lines, run_id = ended.output.split("\n")[:-1]
    assert lines == ["caught division by zero", "total 12 completed completed None"]
    assert (ended.status, ended.errors) == (3, [])
    assert server.count_spans() - before == (8 if is_told else 0)
    if is_told:
        assert told(server, run_id)["status"] == "ok"


# ---- forks

FORKING = """
import os, hansard
hansard.init()
run = hansard.start_run("forking")
before = run.step("before the fork")
child = os.fork()
if child == 0:
    with hansard.current_run().step("in the child"):
        hansard.record_tool_result("child's tool", 1)
    hansard.end_run(status="failed")
    before.end(error="not the child's to end")
    hansard.flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
with run.step("in the parent"):
    pass
before.end()
run.end(output="done")
print(run.run_id)
"""


def test_a_forked_child_records_in_the_run_and_its_parent_ends_it(
    server: Serving, tmp_path: Path
) -> None:
    ended = run(FORKING, settings(tmp_path, server.http))

    run_id = ended.output.strip()
    assert (ended.status, ended.errors) == (0, [])
    assert told(server, run_id)["status"] == "ok"
    assert names(server, run_id) == [
        (0, "invoke_agent forking", "unset"),
        (1, "before the fork", "unset"),
        (2, "in the child", "unset"),
        (3, "execute_tool child's tool", "unset"),
        (2, "in the parent", "unset"),
    ]


FORKED_WORKERS = """
import multiprocessing, hansard

@hansard.tool
def work(number): return number * number

if __name__ == "__main__":
    hansard.init()
    with hansard.start_run("pooled") as run:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(work, range(4)))
            pool.close()
            pool.join()
    print(run.run_id)
"""


def test_forked_workers_need_no_initializer(server: Serving, tmp_path: Path) -> None:
    ended = run(FORKED_WORKERS, settings(tmp_path, server.http))

    squares, run_id = ended.output.split("\n")[:2]
    assert (ended.status, ended.errors, squares) == (0, [], "[0, 1, 4, 9]")
    assert names(server, run_id) == [
        (0, "invoke_agent pooled", "unset"),
        *[(1, "execute_tool work", "unset")] * 4,
    ]


# ---- notebooks

NOTEBOOK = '''
import ast, asyncio, inspect

CELLS = ["""
import hansard
hansard.init()

@hansard.tool
async def look(word):
    return word.upper()

@hansard.agent
async def clerk(words):
    return [await look(word) for word in words]
""", """
async with hansard.start_run("cell") as run:
    print(await clerk(["a", "b"]), run.run_id)
"""]

async def notebook():
    names = {}
    for cell in (*CELLS, *CELLS, CELLS[1]):
        code = compile(cell, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        answer = eval(code, names)
        if inspect.isawaitable(answer):
            await answer

asyncio.run(notebook())
'''


def test_cells_of_a_notebook_may_be_run_again(server: Serving, tmp_path: Path) -> None:
    ended: Ended = run(NOTEBOOK, settings(tmp_path, server.http))

    assert (ended.status, ended.errors) == (0, [])
    lines = [line.rsplit(" ", 1) for line in ended.output.splitlines()]
    assert [words for words, _ in lines] == ["['A', 'B']"] * 3
    for _, run_id in lines:
        assert names(server, run_id) == [
            (0, "invoke_agent cell", "unset"),
            (1, "invoke_agent clerk", "unset"),
            (2, "execute_tool look", "unset"),
            (2, "execute_tool look", "unset"),
        ]


# ---- ends that the program did not tell

UNENDED = """
import hansard
hansard.init()
run = hansard.start_run("unended")
run.step("unended step")
print(run.run_id)
{end}
"""


@pytest.mark.parametrize(
    ("end", "status"), [("", "cancelled"), ("raise ValueError('out of stock')", "error")]
)
def test_a_run_without_an_end_is_closed_with_its_program(
    server: Serving, tmp_path: Path, end: str, status: str
) -> None:
    ended = run(UNENDED.format(end=end), settings(tmp_path, server.http))

    run_id = ended.output.strip()
    assert told(server, run_id)["status"] == status
    assert [name for _, name, _ in names(server, run_id)] == [
        "invoke_agent unended",
        "unended step",
    ]
