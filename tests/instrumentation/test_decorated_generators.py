"""Decorated generators: sent to, thrown into, left half-way, dropped."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest
from opentelemetry.trace import StatusCode, get_current_span

import hansard
from tests.instrumentation.recording import Recorded, attributes, content, recording

NO_SPAN = 0


def current_span_id() -> int:
    return get_current_span().get_span_context().span_id


class Stop(Exception):
    pass


@hansard.trace
def conversation() -> Generator[str, str, str]:
    """Echo what is sent; a Stop that is thrown in is answered, and ends it."""
    heard = yield "hello"
    while True:
        try:
            heard = yield f"you said {heard}"
        except Stop:
            yield "stopping"
            return "bye"


@hansard.trace
async def async_conversation() -> AsyncGenerator[str, str]:
    heard = yield "hello"
    while True:
        try:
            await asyncio.sleep(0)
            heard = yield f"you said {heard}"
        except Stop:
            yield "stopping"
            return


@pytest.mark.covers("OT-02")
@pytest.mark.parametrize("is_started", [False, True])
def test_values_exceptions_and_the_result_pass_through(is_started: bool) -> None:
    def talk() -> Any:
        talking = conversation()
        said = [next(talking), talking.send("a"), talking.send("b"), talking.throw(Stop())]
        with pytest.raises(StopIteration) as end:
            next(talking)
        return said, end.value.value

    if is_started:
        with recording() as recorded:
            result = talk()
        assert content(recorded.only(), "hansard.output") == {
            "yielded": "helloyou said ayou said bstopping",
            "returned": "bye",
        }
        assert attributes(recorded.only())["hansard.output.items"] == 4
    else:
        result = talk()

    assert result == (["hello", "you said a", "you said b", "stopping"], "bye")


@pytest.mark.covers("OT-02")
@pytest.mark.parametrize("is_started", [False, True])
def test_values_and_exceptions_pass_through_an_async_generator(is_started: bool) -> None:
    async def talk() -> list[str]:
        talking = async_conversation()
        said = [await anext(talking), await talking.asend("a"), await talking.athrow(Stop())]
        with pytest.raises(StopAsyncIteration):
            await anext(talking)
        return said

    if is_started:
        with recording() as recorded:
            said = asyncio.run(talk())
        assert content(recorded.only(), "hansard.output") == "helloyou said astopping"
    else:
        said = asyncio.run(talk())

    assert said == ["hello", "you said a", "stopping"]


@pytest.mark.parametrize("is_started", [False, True])
def test_an_exception_thrown_in_and_not_caught_comes_back_the_same(is_started: bool) -> None:
    @hansard.trace
    def count() -> Generator[int, None, None]:
        yield 1

    refusal = ValueError("no")

    def throw() -> None:
        counting = count()
        next(counting)
        with pytest.raises(ValueError, match="no") as caught:
            counting.throw(refusal)
        assert caught.value is refusal
        assert refusal.__context__ is None

    if is_started:
        with recording() as recorded:
            throw()
        assert recorded.only().status.status_code is StatusCode.ERROR
    else:
        throw()


@hansard.trace
def counting(cleaned: list[str]) -> Generator[int, None, None]:
    try:
        yield from range(1_000_000)
    finally:
        cleaned.append("up")


@hansard.trace
async def async_counting(closed: asyncio.Event) -> AsyncGenerator[int, None]:
    try:
        for number in range(1_000_000):
            yield number
    finally:
        await asyncio.sleep(0)
        closed.set()


def assert_left_after_two(recorded: Recorded) -> None:
    span = recorded.only()
    assert attributes(span)["hansard.cancelled"] is True
    assert attributes(span)["hansard.output.items"] == 2
    assert content(span, "hansard.output") == [0, 1]
    assert span.status.status_code is StatusCode.UNSET


def test_a_generator_left_half_way_closes_its_span() -> None:
    cleaned: list[str] = []
    with recording() as recorded:
        for number in counting(cleaned):
            if number == 1:
                break
        gc.collect()

        assert cleaned == ["up"]
        assert_left_after_two(recorded)


def test_a_generator_that_is_closed_closes_its_span() -> None:
    cleaned: list[str] = []
    with recording() as recorded:
        numbers = counting(cleaned)
        assert [next(numbers), next(numbers)] == [0, 1]
        numbers.close()

        assert cleaned == ["up"]
        assert_left_after_two(recorded)


def test_a_generator_never_begun_leaves_no_span() -> None:
    with recording() as recorded:
        counting([]).close()
        counting([])
        gc.collect()

    assert recorded.spans == []


@pytest.mark.parametrize("how", ["aclose", "dropped", "loop ends"])
def test_an_async_generator_left_half_way_closes_its_span(how: str) -> None:
    kept: list[AsyncGenerator[int, None]] = []
    closed = asyncio.Event()

    async def leave() -> None:
        numbers = async_counting(closed)
        assert [await anext(numbers), await anext(numbers)] == [0, 1]
        if how == "aclose":
            await numbers.aclose()
        elif how == "dropped":
            del numbers
            gc.collect()
            await closed.wait()  # the loop closes what was dropped
        else:
            kept.append(numbers)  # asyncio.run closes what is left

    with recording() as recorded:
        asyncio.run(leave())

        assert closed.is_set()
        assert_left_after_two(recorded)


@pytest.mark.parametrize("is_started", [False, True])
def test_a_loop_that_ends_closes_many_generators_left_half_way(is_started: bool) -> None:
    kept: list[AsyncGenerator[int, None]] = []
    closed = [asyncio.Event() for _ in range(20)]

    async def leave() -> None:
        for event in closed:
            kept.append(async_counting(event))
            await anext(kept[-1])

    if is_started:
        with recording() as recorded:
            asyncio.run(leave())
        assert len(recorded.spans) == len(closed)
    else:
        asyncio.run(leave())

    assert all(event.is_set() for event in closed)


def test_an_async_generator_dropped_without_a_loop_closes_its_span() -> None:
    @hansard.trace
    async def two() -> AsyncGenerator[int, None]:
        yield 1
        yield 2

    with recording() as recorded:
        numbers = two()
        with pytest.raises(StopIteration):
            numbers.__anext__().send(None)
        del numbers
        gc.collect()

        assert attributes(recorded.only())["hansard.cancelled"] is True


def test_a_task_cancelled_inside_an_async_generator_closes_its_span_as_cancelled() -> None:
    waiting = asyncio.Event()

    @hansard.trace
    async def forever() -> AsyncGenerator[int, None]:
        yield 1
        waiting.set()
        await asyncio.Event().wait()

    async def read() -> None:
        async for _ in forever():
            pass

    async def cancel() -> None:
        task = asyncio.create_task(read())
        await waiting.wait()
        task.cancel()
        await task

    with recording() as recorded, pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())

    assert attributes(recorded.only())["hansard.cancelled"] is True
    assert recorded.only().status.status_code is StatusCode.UNSET


def test_the_consumer_of_a_generator_never_runs_inside_its_span() -> None:
    @hansard.trace
    def outer() -> Generator[int, None, None]:
        yield current_span_id()
        with hansard.span("held open"):
            yield current_span_id()
            yield current_span_id()
        yield current_span_id()

    with recording() as recorded:
        seen = []
        for inside in outer():
            seen.append(inside)
            assert current_span_id() == NO_SPAN

    own, held = recorded.named("outer").context, recorded.named("held open").context
    assert own is not None
    assert held is not None
    parent = recorded.named("held open").parent
    assert seen == [own.span_id, held.span_id, held.span_id, own.span_id]
    assert parent is not None
    assert parent.span_id == own.span_id


def test_the_consumer_of_an_async_generator_never_runs_inside_its_span() -> None:
    @hansard.trace
    async def outer() -> AsyncGenerator[int, None]:
        async with hansard.span("held open"):
            yield current_span_id()
            await asyncio.sleep(0)
            yield current_span_id()

    async def consume() -> list[int]:
        seen = []
        async for inside in outer():
            seen.append(inside)
            await asyncio.sleep(0)
            assert current_span_id() == NO_SPAN
        return seen

    with recording() as recorded:
        seen = asyncio.run(consume())

    held = recorded.named("held open").context
    assert held is not None
    assert seen == [held.span_id, held.span_id]


def test_two_generators_read_by_turns_keep_their_spans_apart() -> None:
    @hansard.trace
    def numbers(name: str) -> Generator[tuple[str, int], None, None]:
        yield name, current_span_id()
        with hansard.span(f"inside {name}"):
            yield name, current_span_id()

    with recording() as recorded:
        pairs = list(zip(numbers("a"), numbers("b"), strict=True))

    for name in ("a", "b"):
        inside = recorded.named(f"inside {name}")
        ids = [span_id for pair in pairs for owner, span_id in pair if owner == name]
        assert inside.context is not None
        assert inside.parent is not None
        assert ids == [inside.parent.span_id, inside.context.span_id]


def test_what_a_generator_yields_is_kept_as_it_was_and_in_bounds() -> None:
    @hansard.trace
    def growing() -> Generator[list[int], None, None]:
        items: list[int] = []
        for number in range(20_000):
            items[:] = [number]
            yield items

    with recording() as recorded:
        assert sum(1 for _ in growing()) == 20_000

    kept = content(recorded.only(), "hansard.output")
    assert kept == [[number] for number in range(10_000)]
    assert attributes(recorded.only())["hansard.output.items"] == 20_000


def test_texts_are_joined_and_mixed_items_are_a_list() -> None:
    @hansard.trace
    def items(*values: Any) -> Generator[Any, None, None]:
        yield from values

    with recording() as recorded:
        for values in ([], ["a", "b"], ["a", 1, "b"], ["\ud83d", "\ude00"], [None]):
            list(items(*values))

    outputs = [attributes(span).get("hansard.output") for span in recorded.spans]
    assert outputs == [None, '"ab"', '["a",1,"b"]', '"\\ud83d\\ude00"', "[null]"]


def test_endless_pieces_of_text_are_kept_in_bounds() -> None:
    @hansard.trace
    def speak() -> Generator[str, None, None]:
        for _ in range(12_000):
            yield "word "

    with recording() as recorded:
        assert sum(1 for _ in speak()) == 12_000

    assert content(recorded.only(), "hansard.output") == "word " * 10_000 + "‹cut›"
    assert attributes(recorded.only())["hansard.output.items"] == 12_000
