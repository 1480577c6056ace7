"""Pools whose workers start the SDK with `hansard.worker_initializer()`, whatever `init()` got."""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hansard as sdk
from hansard_compiler.errors import ConfigError
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from tests.instrumentation.clients.provider import json_reply, providing
from tests.instrumentation.programs import run_file
from tests.journeys.processes import Serving, environment, hosting, patient

# Takes the arguments of init(), the kind of pool and the start method; prints what the pool gave.
PROGRAM = """
import json, multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor

import hansard

@hansard.tool
def square(number):
    return number * number

def main(arguments, kind, method):
    hansard.init(**arguments)
    context = multiprocessing.get_context(method)
    with hansard.start_run("pooled") as run:
        if kind == "executor":
            start = hansard.worker_initializer()
            with ProcessPoolExecutor(2, mp_context=context, initializer=start) as pool:
                results = list(pool.map(square, range(4)))
        else:
            with context.Pool(2, initializer=hansard.worker_initializer()) as pool:
                results = pool.map(square, range(4))
                pool.close()
                pool.join()
    print(json.dumps([results, run.run_id]))

if __name__ == "__main__":
    main(json.loads(sys.argv[1]), *sys.argv[2:])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("server")) as running:
        yield running


def arguments_of(server: Serving, own: Path) -> dict[str, dict[str, Any]]:
    """Return sets of arguments that together have every argument of `init()`."""
    (own / "sdk.toml").write_text("[sdk]\nmax_batch_spans = 7\n")
    sending = {
        "service_name": "squares",
        "retention": "redacted_payloads",
        "headers": {"x-team": "blue"},
        "token": "not-needed-here",
        "timeout_s": 20.0,
        "resource_attributes": {"deployment.environment.name": "test"},
        "export_delay_s": 0.05,
        "exit_timeout_s": 30,
        "spool_max_bytes": 1 << 20,
        "continue_trace": True,
        "config": str(own / "sdk.toml"),
    }
    return {
        "http": {"endpoint": server.http, "data": str(own), "exit_timeout_s": 30},
        "everything": {
            **sending,
            "endpoint": server.http,
            "protocol": "http/protobuf",
            "compression": "gzip",
            "data": str(own),
        },
        "grpc": {**sending, "endpoint": server.grpc, "protocol": "grpc", "data": str(own)},
        "embedded": {"embedded": True, "data": str(own)},
    }


def squares_below(name: str, run_id: str, *, server: Serving, own: Path) -> int:
    """Count the steps of the workers that are in the run."""
    data = own if name == "embedded" else server.data
    connection = open_reader(DataFolder(data))
    try:
        query = "SELECT count(*) FROM span WHERE trace_id = ? AND name = 'execute_tool square'"
        return int(connection.execute(query, (bytes.fromhex(run_id),)).get)
    finally:
        connection.close()


def test_every_argument_of_init_is_among_those_tried(tmp_path: Path, server: Serving) -> None:
    tried = {name for given in arguments_of(server, tmp_path).values() for name in given}

    assert tried == set(inspect.signature(sdk.init).parameters)


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [("executor", "http"), ("executor", "everything"), ("executor", "grpc"),
     ("executor", "embedded"), ("pool", "everything")],
)  # fmt: skip
def test_workers_record_in_the_run_that_made_them(
    server: Serving, tmp_path: Path, kind: str, name: str, method: str
) -> None:
    given = json.dumps(arguments_of(server, tmp_path)[name])
    variables = environment(HANSARD_ENDPOINT="http://127.0.0.1:1")  # arguments win over it

    ended = run_file(PROGRAM, tmp_path, variables, given, kind, method)

    assert (ended.status, ended.errors) == (0, [])
    results, run_id = json.loads(ended.output)
    assert results == [0, 1, 4, 9]
    assert squares_below(name, run_id, server=server, own=tmp_path) == 4


def test_a_worker_whose_hansard_knows_other_arguments_works_unrecorded(tmp_path: Path) -> None:
    program = PROGRAM.replace(
        "hansard.worker_initializer()", "of_another_version(hansard.worker_initializer())"
    ).replace(
        "def main(",
        """
def of_another_version(start):
    start.args[0]["argument_of_a_later_version"] = 1
    return start

def main(""",
        1,
    )
    given = json.dumps({"endpoint": "http://127.0.0.1:1", "data": str(tmp_path / "data")})

    ended = run_file(program, tmp_path, environment(), given, "executor", "spawn")

    assert ended.status == 0
    assert json.loads(ended.output)[0] == [0, 1, 4, 9]
    assert any("recording cannot start in this worker" in line for line in ended.errors)


@pytest.mark.parametrize(
    ("options", "error"),
    [({"endpont": "x"}, TypeError), ({"timeout_s": -1}, ConfigError)],
)
def test_arguments_that_init_would_refuse_are_refused_where_the_pool_is_made(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        sdk.worker_initializer(**options)


ASKING = """
import json, multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor

import hansard
import openai

def ask(number):
    client = openai.OpenAI(api_key="key", base_url=sys.argv[1], max_retries=0)
    said = client.chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": f"question {number}"}]
    )
    return said.choices[0].message.content

if __name__ == "__main__":
    hansard.init()
    hansard.instrument()
    context = multiprocessing.get_context(sys.argv[2])
    with hansard.start_run("pooled") as run:
        start = hansard.worker_initializer()
        with ProcessPoolExecutor(2, mp_context=context, initializer=start) as pool:
            list(pool.map(ask, range(3)))
    print(run.run_id)
"""
ANSWER = {
    "object": "chat.completion", "created": 1, "model": "gpt-4o-mini-0701",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "42"}}
    ],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}  # fmt: skip


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_workers_record_the_libraries_that_were_instrumented_where_they_came_from(
    server: Serving, tmp_path: Path, method: str
) -> None:
    with providing() as provider:
        numbers = itertools.count()
        provider.answer = lambda _: json_reply({**ANSWER, "id": f"chatcmpl-{next(numbers)}"})
        variables = patient(HANSARD_ENDPOINT=server.http, HANSARD_DATA=str(tmp_path))
        ended = run_file(ASKING, tmp_path, variables, f"{provider.address}/v1", method)

    assert ended.status == 0, ended.errors
    run = json.loads(server.get(f"/v1/runs/{ended.output.strip()}"))
    assert (run["model_calls"], run["tokens"]["input"], run["tokens"]["output"]) == (3, 21, 9)
