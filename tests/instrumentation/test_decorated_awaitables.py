"""Plain functions that return what is still to come: their span ends when that does."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import hansard
from hansard.testing import capture


@pytest.fixture
def recorded() -> Iterator[Any]:
    with capture() as spans:
        yield spans


def ended(recorded: Any) -> list[Any]:
    return [span for span in recorded if span.end_time is not None]


def only(recorded: Any) -> Any:
    [span] = ended(recorded)
    return span


async def _look(number: int, *, fails: bool = False) -> str:
    await asyncio.sleep(0)
    if fails:
        raise LookupError("no such order")
    return f"order {number}"


def test_a_coroutine_is_observed_to_its_end(recorded: Any) -> None:
    @hansard.tool
    def look(number: int) -> Any:
        return _look(number)

    made = look(7)
    assert asyncio.iscoroutine(made)
    assert ended(recorded) == []
    assert asyncio.run(made) == "order 7"

    span = only(recorded)
    assert json.loads(span.attributes["gen_ai.tool.call.result"]) == "order 7"


def test_a_coroutine_that_fails_is_a_failed_step(recorded: Any) -> None:
    @hansard.tool
    def look(number: int) -> Any:
        return _look(number, fails=True)

    with pytest.raises(LookupError):
        asyncio.run(look(7))

    span = only(recorded)
    assert span.attributes["error.type"] == "LookupError"
    assert "gen_ai.tool.call.result" not in span.attributes


def test_what_a_coroutine_records_nests_in_its_step(recorded: Any) -> None:
    inner = hansard.trace(name="inner")(_look)

    @hansard.tool
    def look(number: int) -> Any:
        return inner(number)

    async def main() -> None:
        await asyncio.gather(look(1), look(2))

    asyncio.run(main())

    spans = ended(recorded)
    tools = {one.context.span_id for one in spans if one.name == "execute_tool look"}
    assert {one.parent.span_id for one in spans if one.name == "inner"} == tools
    assert {one.parent for one in spans if one.name != "inner"} == {None}


@pytest.mark.parametrize("fails", [False, True])
def test_a_task_comes_back_as_it_is_and_ends_its_step(recorded: Any, fails: bool) -> None:
    @hansard.tool
    def look(number: int) -> Any:
        return asyncio.get_running_loop().create_task(_look(number, fails=fails))

    async def main() -> None:
        task = look(7)
        assert isinstance(task, asyncio.Task)
        await asyncio.wait([task])
        assert (task.exception() is not None) == fails
        await asyncio.sleep(0)

    asyncio.run(main())

    span = only(recorded)
    assert ("error.type" in span.attributes) == fails
    assert ("gen_ai.tool.call.result" in span.attributes) != fails


def test_a_future_of_a_pool_ends_its_step(recorded: Any) -> None:
    with ThreadPoolExecutor(1) as pool:

        @hansard.tool
        def look(number: int) -> Future[str]:
            return pool.submit(lambda: f"order {number}")

        assert look(7).result(10) == "order 7"

    assert json.loads(only(recorded).attributes["gen_ai.tool.call.result"]) == "order 7"


@pytest.mark.parametrize("how", ["forgotten await", "other awaitable"])
def test_what_was_not_awaited_is_no_result(recorded: Any, how: str) -> None:
    class Later:
        def __await__(self) -> Iterator[None]:
            yield

    forgotten: list[Any] = []

    @hansard.tool
    async def forgets() -> Any:
        forgotten.append(_look(7))
        return forgotten[-1]

    if how == "forgotten await":
        asyncio.run(forgets())
        forgotten[-1].close()
    else:
        hansard.tool(name="forgets")(lambda: Later())()

    told = json.loads(only(recorded).attributes["gen_ai.tool.call.result"])
    assert told["$note"] == "not awaited: no result of anything"


def test_a_result_that_was_not_awaited_is_not_recorded(
    recorded: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made = _look(7)
    with hansard.start_run("clerk") as run:
        run.record_tool_call("look", {"number": 7}, call_id="call_1")
        run.record_tool_result("look", made, call_id="call_1")
        assert [one.name for one in ended(recorded)] == []
        run.record_tool_result("look", asyncio.run(made), call_id="call_1")

    tool = next(one for one in ended(recorded) if one.name == "execute_tool look")
    assert json.loads(tool.attributes["gen_ai.tool.call.result"]) == "order 7"
    assert "was not awaited" in caplog.text


def test_partials_and_objects_stay_what_they_are(recorded: Any) -> None:
    class Looking:
        async def __call__(self, number: int) -> str:
            return await _look(number)

    for found in (functools.partial(_look, fails=False), Looking()):
        assert asyncio.run(hansard.tool(name="look")(found)(7)) == "order 7"

    assert len(ended(recorded)) == 2
