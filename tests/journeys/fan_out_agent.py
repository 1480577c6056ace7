"""An agent that fans out over everything context has to cross. Run as a program by a test.

It prints its run id, and the tree of what it called as it knows it, before it ends.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

import hansard


@hansard.tool
def leaf(name: str) -> str:
    return name


@hansard.trace(name="branch")
def branch(name: str) -> str:
    return leaf(name)


@hansard.trace(name="coroutine")
async def coroutine(name: str) -> str:
    await asyncio.sleep(0)
    return leaf(name)


async def over_await() -> None:
    async with asyncio.TaskGroup() as group:
        for name in ("task a", "task b"):
            group.create_task(coroutine(name))
    await asyncio.to_thread(branch, "to_thread")


def over_threads() -> None:
    threads = [
        threading.Thread(target=hansard.wrap_with_context(branch), args=[name])
        for name in ("thread a", "thread b")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def over_pools() -> None:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        pool.submit(hansard.wrap_with_context(branch), "submitted").result()
        list(hansard.wrap_executor(pool).map(branch, ["mapped a", "mapped b"]))


def over_processes(method: str) -> None:
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(
        1, mp_context=context, initializer=hansard.worker_initializer()
    ) as pool:
        pool.submit(leaf, method).result()
        pool.submit(hansard.wrap_with_context(branch), f"{method} bound").result()


def over_a_program() -> None:
    code = "import hansard; hansard.init()\nwith hansard.span('program'): pass"
    subprocess.run([sys.executable, "-c", code], env=hansard.child_environment(), check=True)


def over_http(address: str) -> None:
    request = urllib.request.Request(address, headers=dict(hansard.inject()))
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


@hansard.agent(name="helper")
def helper() -> None:
    with hansard.start_run("sub-agent", nest=True) as run:
        run.record_tool_call("lookup", call_id="c1")
        run.record_tool_result("lookup", "found", call_id="c1")


def part(name: str, work: Callable[..., Any], *arguments: Any) -> None:
    with hansard.span(name):
        work(*arguments)


def main(address: str) -> None:
    hansard.init()
    with hansard.start_run("chief", "research", "Fan out.", conversation_id="c-1") as run:
        part("await", lambda: asyncio.run(over_await()))
        part("await again", lambda: asyncio.run(over_await()))
        part("threads", over_threads)
        part("pools", over_pools)
        for method in ("spawn", "forkserver", "fork"):
            part(method, over_processes, method)
        part("program", over_a_program)
        part("http", over_http, address)
        part("helper", helper)
    sys.stdout.write(f"{run.run_id}\n")


if __name__ == "__main__":
    main(sys.argv[1])
