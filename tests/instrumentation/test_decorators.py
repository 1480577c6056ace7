"""Decorated functions: what they stay, and what is recorded of them."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode, get_current_span

import hansard
from hansard.errors import NotDecoratable
from tests.instrumentation.recording import attributes, content, recording


def plain(question: str, *, times: int = 1) -> str:
    """Answer."""
    return f"{question}!" * times


async def coroutine(question: str, *, times: int = 1) -> str:
    """Answer later."""
    await asyncio.sleep(0)
    return f"{question}!" * times


def generator(question: str, *, times: int = 1) -> Iterator[str]:
    """Answer bit by bit."""
    for _ in range(times):
        yield f"{question}!"


async def async_generator(question: str, *, times: int = 1) -> AsyncIterator[str]:
    """Answer bit by bit, later."""
    for _ in range(times):
        await asyncio.sleep(0)
        yield f"{question}!"


SHAPES: tuple[Callable[..., Any], ...] = (plain, coroutine, generator, async_generator)
KINDS = (
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
    inspect.isfunction,
)
DECORATORS: tuple[Callable[..., Any], ...] = (hansard.agent, hansard.tool, hansard.trace)


def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of any shape and return all it gives."""
    given = function(*args, **kwargs)
    if inspect.iscoroutine(given):
        return asyncio.run(_awaited(given))
    if inspect.isasyncgen(given):
        return asyncio.run(_listed(given))
    return list(given) if inspect.isgenerator(given) else given


async def _awaited(given: Any) -> Any:
    return await given


async def _listed(given: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in given]


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


# ---- what a function stays


@pytest.mark.covers("OT-02")
@pytest.mark.parametrize("decorate", DECORATORS)
@pytest.mark.parametrize("called_form", [False, True])
@pytest.mark.parametrize("function", SHAPES)
def test_a_function_stays_what_it_is(
    function: Callable[..., Any], called_form: bool, decorate: Callable[..., Any]
) -> None:
    decorated = decorate()(function) if called_form else decorate(function)

    assert inspect.signature(decorated) == inspect.signature(function)
    assert decorated.__doc__ == function.__doc__
    assert decorated.__name__ == function.__name__
    assert decorated.__qualname__ == function.__qualname__
    assert decorated.__module__ == function.__module__
    assert decorated.__wrapped__ is function
    assert [is_such(decorated) for is_such in KINDS] == [is_such(function) for is_such in KINDS]
    expected = run(function, "why", times=2)
    assert run(decorated, "why", times=2) == expected
    with recording():
        assert run(decorated, "why", times=2) == expected


@pytest.mark.parametrize("function", SHAPES)
def test_without_init_nothing_is_recorded_and_arguments_that_do_not_fit_are_refused(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        run(hansard.trace(function), "why", nonsense=1)


@pytest.mark.parametrize("function", SHAPES)
def test_arguments_that_do_not_fit_are_refused_and_told(function: Callable[..., Any]) -> None:
    with (
        recording() as recorded,
        pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"),
    ):
        run(hansard.trace(function), "why", nonsense=1)

    assert attributes(recorded.only())["error.type"] == "TypeError"


@hansard.tool
def picklable(a: int) -> int:
    return a + 1


def test_a_decorated_function_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(picklable))(1) == 2


class Methods:
    factor = 2

    @hansard.tool
    def method(self, a: int) -> int:
        """Double."""
        return a * self.factor

    @hansard.tool
    @classmethod
    def outer_class(cls, a: int) -> int:
        return a * Methods.factor

    @classmethod
    @hansard.tool
    def inner_class(cls, a: int) -> int:
        return a * cls.factor

    @hansard.tool
    @staticmethod
    def outer_static(a: int) -> int:
        return a * 2

    @staticmethod
    @hansard.tool
    def inner_static(a: int) -> int:
        return a * 2

    @hansard.tool
    async def coroutine(self, a: int) -> int:
        return a * self.factor

    @hansard.tool
    def generator(self, a: int) -> Iterator[int]:
        yield a * self.factor

    @hansard.tool
    async def async_generator(self, a: int) -> AsyncIterator[int]:
        yield a * self.factor

    def __call__(self, a: int) -> int:
        return a * self.factor


METHODS = (
    *("method", "outer_class", "inner_class", "outer_static", "inner_static"),
    *("coroutine", "generator", "async_generator"),
)


@pytest.mark.covers("OT-02")
@pytest.mark.parametrize("name", METHODS)
def test_methods_of_every_kind_are_recorded_without_their_object(name: str) -> None:
    with recording() as recorded:
        result = run(getattr(Methods(), name), 21)

    assert result in (42, [42])
    assert str(inspect.signature(getattr(Methods(), name))).startswith("(a: 'int')")
    span = recorded.only()
    assert span.name == f"execute_tool {name}"
    assert content(span, "gen_ai.tool.call.arguments") == {"a": 21}
    assert content(span, "gen_ai.tool.call.result") == result


@pytest.mark.parametrize("name", ["outer_class", "inner_class", "outer_static", "inner_static"])
def test_methods_of_a_class_are_called_on_the_class_too(name: str) -> None:
    with recording() as recorded:
        assert getattr(Methods, name)(21) == 42

    assert content(recorded.only(), "gen_ai.tool.call.arguments") == {"a": 21}


def test_bound_methods_partials_and_objects_can_be_decorated() -> None:
    with recording() as recorded:
        assert hansard.tool(Methods().__call__)(1) == 2
        assert hansard.tool(functools.partial(plain, times=2))("a") == "a!a!"
        assert hansard.tool(Methods())(3) == 6
        assert hansard.tool(len)([1]) == 1
        assert run(hansard.tool(functools.partial(coroutine, times=2)), "a") == "a!a!"

    assert [span.name for span in recorded.spans] == [
        "execute_tool __call__",
        "execute_tool plain",
        "execute_tool Methods",
        "execute_tool len",
        "execute_tool coroutine",
    ]
    assert [content(s, "gen_ai.tool.call.arguments") for s in recorded.spans] == [
        {"a": 1},
        {"question": "a"},
        {"a": 3},
        {"obj": [1]},
        {"question": "a"},
    ]


@pytest.mark.parametrize("found", ["planner", 3, property(lambda self: 1), Methods])
def test_what_is_no_function_cannot_be_decorated(found: Any) -> None:
    with pytest.raises(NotDecoratable, match=r"@hansard\.agent is for functions and methods"):
        hansard.agent(found)


# ---- what is recorded


@pytest.mark.covers("OT-04", "OT-09")
def test_an_agent_its_tool_and_a_step_nest_under_upstream_names() -> None:
    @hansard.tool(call_id="tool_call_id")
    def search(query: str, tool_call_id: str) -> list[str]:
        """Search the web."""
        return [query]

    @hansard.trace(kind="retriever")
    def look_up(query: str) -> list[str]:
        return search(query, tool_call_id="call_1")

    @hansard.agent(name="researcher")
    def answer(question: str) -> str:
        return look_up(question)[0]

    with recording() as recorded:
        assert answer("why") == "why"

    agent, step, tool = (
        recorded.named("invoke_agent researcher"),
        recorded.named("look_up"),
        recorded.named("execute_tool search"),
    )
    assert parent_of(agent) is None
    assert parent_of(step) == id_of(agent)
    assert parent_of(tool) == id_of(step)
    module = __name__
    assert attributes(agent) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "researcher",
        "code.function.name": f"{module}.answer",
        "hansard.schema_version": "1",
        "hansard.input": '{"question":"why"}',
        "hansard.output": '"why"',
    }
    assert attributes(step) == {
        "hansard.kind": "retriever",
        "code.function.name": f"{module}.look_up",
        "hansard.schema_version": "1",
        "hansard.input": '{"query":"why"}',
        "hansard.output": '["why"]',
    }
    assert attributes(tool) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Search the web.",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.call.arguments": '{"query":"why","tool_call_id":"call_1"}',
        "gen_ai.tool.call.result": '["why"]',
        "code.function.name": f"{module}.search",
        "hansard.schema_version": "1",
    }


def test_arguments_are_shown_by_name_however_they_are_given() -> None:
    @hansard.trace
    def function(a: int, /, b: int, *rest: int, c: int = 3, **more: int) -> None:
        return None

    with recording() as recorded:
        function(1, 2, 3, 4, c=5, d=6, a=7)
        function(1, b=2)

    assert [content(span, "hansard.input") for span in recorded.spans] == [
        {"a": 1, "b": 2, "rest": [3, 4], "c": 5, "d": 6, "**a": 7},
        {"a": 1, "b": 2},
    ]


def test_content_is_left_out_where_asked() -> None:
    @hansard.tool(capture_input=False, capture_output=False)
    def login(password: str) -> str:
        return password

    with recording() as recorded:
        login("hunter2 hunter2")

    assert "hunter2" not in str(attributes(recorded.only()))


def test_a_span_that_is_not_sampled_captures_nothing_and_its_children_are_not_sampled_either() -> (
    None
):
    class Watched:
        looked_at = 0

        def __repr__(self) -> str:
            Watched.looked_at += 1
            return "watched"

    @hansard.tool
    def inner(value: Watched) -> bool:
        return get_current_span().get_span_context().trace_flags.sampled

    @hansard.agent
    def outer(value: Watched) -> tuple[bool, bool]:
        return inner(value), get_current_span().get_span_context().is_valid

    with recording(sampler=ALWAYS_OFF) as recorded:
        assert outer(Watched()) == (False, True)

    assert recorded.spans == []
    assert Watched.looked_at == 0


# ---- exceptions


class Refused(Exception):
    pass


@pytest.mark.covers("OT-03")
@pytest.mark.parametrize("function", SHAPES)
def test_an_exception_goes_on_unchanged_and_is_told(function: Callable[..., Any]) -> None:
    refusal = Refused("no such\nfile")

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise refusal

    async def fail_later(*args: Any, **kwargs: Any) -> Any:
        raise refusal

    def fail_on_the_way(*args: Any, **kwargs: Any) -> Iterator[int]:
        yield 1
        raise refusal

    async def fail_on_the_way_later(*args: Any, **kwargs: Any) -> AsyncIterator[int]:
        yield 1
        raise refusal

    failing = {
        plain: fail,
        coroutine: fail_later,
        generator: fail_on_the_way,
        async_generator: fail_on_the_way_later,
    }[function]
    with recording() as recorded, pytest.raises(Refused) as caught:
        run(hansard.tool(failing))

    assert caught.value is refusal
    assert refusal.__context__ is None
    assert caught.traceback[-1].name == failing.__name__
    span = recorded.only()
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == f"{__name__}.Refused: no such\nfile"
    assert attributes(span)["error.type"] == f"{__name__}.Refused"
    [event] = span.events
    assert event.name == "exception"
    told = dict(event.attributes or {})
    assert told["exception.type"] == f"{__name__}.Refused"
    assert told["exception.message"] == "no such\nfile"
    assert failing.__name__ in str(told["exception.stacktrace"])


def test_an_exception_that_cannot_be_shown_goes_on_unchanged() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise SystemExit("from __str__")

        __repr__ = __str__

    hostile = Hostile()

    @hansard.agent
    def fail() -> None:
        raise hostile

    with recording() as recorded, pytest.raises(Hostile) as caught:
        fail()

    assert caught.value is hostile
    [event] = recorded.only().events
    assert dict(event.attributes or {})["exception.message"] == "‹repr raised SystemExit›"


@pytest.mark.parametrize(
    ("error", "is_error"),
    [
        (KeyboardInterrupt(), False),
        (asyncio.CancelledError(), False),
        (SystemExit(), False),
        (SystemExit(0), False),
        (SystemExit(2), True),
    ],
)
def test_what_ends_a_program_on_purpose_is_no_error(error: BaseException, is_error: bool) -> None:
    @hansard.agent
    def end() -> None:
        raise error

    with recording() as recorded, pytest.raises(type(error)) as caught:
        end()

    assert caught.value is error
    assert (recorded.only().status.status_code is StatusCode.ERROR) is is_error


def test_a_cancelled_task_is_cancelled_and_no_error() -> None:
    started = asyncio.Event()

    @hansard.agent
    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    async def cancel() -> None:
        task = asyncio.create_task(wait())
        await started.wait()
        task.cancel()
        await task

    with recording() as recorded, pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())

    span = recorded.only()
    assert attributes(span)["hansard.cancelled"] is True
    assert span.status.status_code is StatusCode.UNSET
    assert not span.events


def test_tasks_that_run_at_once_nest_each_in_its_own() -> None:
    @hansard.tool
    async def inner(number: int) -> int:
        await asyncio.sleep(0)
        return number

    @hansard.agent
    async def outer(number: int) -> int:
        await asyncio.sleep(0)
        return await inner(number)

    async def both() -> list[int]:
        return await asyncio.gather(*(outer(number) for number in range(5)))

    with recording() as recorded:
        assert asyncio.run(both()) == [0, 1, 2, 3, 4]

    outers = {id_of(s): content(s, "hansard.input") for s in recorded.spans if parent_of(s) is None}
    inners = [s for s in recorded.spans if parent_of(s) is not None]
    assert len(outers) == len(inners) == 5
    for span in inners:
        assert outers[parent_of(span) or 0] == content(span, "gen_ai.tool.call.arguments")
