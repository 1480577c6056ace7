"""A tool whose result holds what has not run: the call is never recorded as executed."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import itertools
import queue
import threading
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict

import hansard
from hansard import approvals
from hansard._gate import flow
from hansard._gate.unfinished import find_unfinished
from hansard.chat import ChatGate, TextChannel
from hansard.errors import FutureNotStarted, NotDecoratable, UnfinishedResult
from tests.instrumentation.gating.gates import Desk, state_of

RAN: list[str] = []


async def send(to: str = "Maria") -> str:
    RAN.append(to)
    return f"sent to {to}"


def pieces() -> Iterator[str]:
    RAN.append("pieces")
    yield "sent"


async def apieces() -> Any:
    RAN.append("apieces")
    yield "sent"


@dataclass
class Job:
    name: str
    work: Any = field(default=None, repr=False)


@dataclass(slots=True)
class Slotted:
    work: Any


class Pair(NamedTuple):
    name: str
    work: Any


class Model(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    work: Any


class Own:
    def __init__(self, work: Any) -> None:
        self.work = work


class OwnSlots:
    __slots__ = ("work",)

    def __init__(self, work: Any) -> None:
        self.work = work


class Bag(dict[str, Any]):
    pass


class Row(list[Any]):
    pass


class Failed(Exception):
    def __init__(self, work: Any) -> None:
        self.work = work


class Indexed:
    def __init__(self, work: Any) -> None:
        self.work = work

    def __getitem__(self, _: int) -> Any:
        raise RuntimeError


def failed(**attributes: Any) -> Exception:
    """Return an exception with what it was raised from, or with notes."""
    error = ValueError("no")
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def with_attribute(holder: Any, work: Any) -> Any:
    holder.work = work
    return holder


def done_with(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


async def _done_task(result: Any) -> Any:
    future = asyncio.get_running_loop().create_future()
    future.set_result(result)
    return future


def failed_with(error: Exception) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def put(queued: Any, work: Any) -> Any:
    queued.put(work)
    return queued


def module_with(work: Any) -> types.ModuleType:
    module = types.ModuleType("made")
    vars(module)["work"] = work
    return module


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda work: (1, work),
    "list": lambda work: [work],
    "dict": lambda work: {"job": work},
    "key": lambda work: {work: 1},
    "set": lambda work: {work},
    "frozenset": lambda work: frozenset({work}),
    "deque": lambda work: collections.deque([work]),
    "defaultdict": lambda work: collections.defaultdict(list, a=[work]),
    "own dict": lambda work: Bag(job=work),
    "proxy": lambda work: types.MappingProxyType({"job": work}),
    "values": lambda work: {"job": work}.values(),
    "dataclass": lambda work: Job("a", work),
    "slots": Slotted,
    "named tuple": lambda work: Pair("a", work),
    "pydantic": lambda work: Model(work=work),
    "namespace": lambda work: types.SimpleNamespace(work=work),
    "zip": lambda work: zip([work], [1], strict=True),
    "iterator": lambda work: iter([work]),
    "tee": lambda work: itertools.tee([work])[0],
    "chain": lambda work: itertools.chain([1], [[work]]),
    "deep": lambda work: {"a": [({"b": (Job("c", [work]),)},)]},
    "late": lambda work: [*range(5_000), {"a": work}],
    "exception": ValueError,
    "list in an exception": lambda work: [ValueError("x", [work])],
    "exception in a dict": lambda work: {"error": RuntimeError("a", work)},
    "own exception": Failed,
    "attribute of an exception": lambda work: failed(work=work),
    "cause": lambda work: failed(__cause__=ValueError(work)),
    "context": lambda work: failed(__context__=ValueError(work)),
    "notes": lambda work: failed(__notes__=["x", work]),
    "exception group": lambda work: ExceptionGroup("g", [ValueError("a"), ValueError(work)]),
    "group in a group": lambda work: ExceptionGroup("g", [ExceptionGroup("h", [Failed(work)])]),
    "value of an exception": StopIteration,
    "code of an exit": SystemExit,
    "slice": lambda work: slice(work, None),
    "partial": lambda work: partial(print, work),
    "keyword of a partial": lambda work: partial(print, end=work),
    "attribute of a dict": lambda work: with_attribute(Bag(), work),
    "attribute of a list": lambda work: with_attribute(Row(), work),
    "chain of maps": lambda work: collections.ChainMap({}, {"job": work}),
    "user dict": lambda work: collections.UserDict(job=work),
    "user list": lambda work: collections.UserList([work]),
    "ordered values": lambda work: collections.OrderedDict(job=work).values(),
    "ordered iterator": lambda work: iter(collections.OrderedDict(job=work).items()),
    "reversed values": lambda work: reversed({"job": work}.values()),
    "reversed deque": lambda work: reversed(collections.deque([work])),
    "sequence iterator": lambda work: iter(Indexed(work)),
    "enumerate": lambda work: enumerate([work]),
    "islice": lambda work: itertools.islice([work], 1),
    "class": lambda work: with_attribute(type("Made", (), {}), work),
    "module": module_with,
    "done future": done_with,
    "done future of a loop": lambda work: asyncio.run(_done_task(work)),
    "failed future": lambda work: failed_with(ValueError(work)),
    "method": lambda work: types.MethodType(print, work),
    "alias": lambda work: types.GenericAlias(list, (work,)),
    "cell": types.CellType,
    "queue": lambda work: put(queue.Queue(), work),
    "simple queue": lambda work: put(queue.SimpleQueue(), work),
}
LAZY: dict[str, Callable[[], Any]] = {
    "coroutine": send,
    "generator": pieces,
    "async generator": apieces,
    "map": lambda: map(RAN.append, ["mapped"]),
    "filter": lambda: filter(RAN.append, ["filtered"]),
    "starmap": lambda: itertools.starmap(RAN.append, [("starred",)]),
    "future": Future,
    "teed generator": lambda: itertools.tee(pieces())[1],
    "context manager": contextlib.contextmanager(pieces),
    "async context manager": contextlib.asynccontextmanager(apieces),
}


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    RAN.clear()
    yield
    assert RAN == []


def close(made: Any) -> None:
    """End a coroutine, so that nobody warns that it was never awaited."""
    if hasattr(made, "close"):
        made.close()


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_coroutine_in_a_result_is_found_wherever_it_stands(holder: str) -> None:
    work = send()

    found = find_unfinished(HOLDERS[holder](work))
    close(work)
    after = find_unfinished(HOLDERS[holder](work))

    assert found is not None
    assert found.kind == "coroutine"
    assert after is None  # closed: nothing of it is still to come


@pytest.mark.parametrize("lazy", LAZY)
@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_call_whose_result_holds_what_has_not_run_is_never_executed(
    store: Desk, lazy: str, *, is_read: bool, is_awaited: bool
) -> None:
    made = LAZY[lazy]()

    def plain(to: str) -> Any:
        return {"to": to, "jobs": [made]}

    async def awaited(to: str) -> Any:
        return {"to": to, "jobs": [made]}

    tool = hansard.tool(effect="read" if is_read else "write", name="send")(
        awaited if is_awaited else plain
    )
    gate = store.gate(tool)

    def act() -> None:
        answer = gate.call("send", {"to": "Maria"}).for_model()
        gate.run(store.approve(answer))

    with pytest.raises(UnfinishedResult, match=r"\['jobs'\]\[0\]") as raised:
        act()
    close(made)

    assert raised.value.tool == "send"
    assert not [one for one in store.events() if "executed" in one]
    if not is_read:
        [one] = store.store.approvals()
        assert state_of(gate, one.approval_id) == ("approved", "unknown")


FAILURES: dict[str, Callable[[Any], Any]] = {
    "argument": ValueError,
    "list": lambda work: [ValueError("x", [work])],
    "dict": lambda work: {"error": RuntimeError("a", work)},
    "cause": lambda work: failed(__cause__=ValueError(work)),
    "context": lambda work: failed(__context__=ValueError(work)),
    "notes": lambda work: failed(__notes__=[work]),
    "group": lambda work: ExceptionGroup("g", [ValueError(work)]),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("lazy", LAZY)
@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_call_that_returns_an_exception_with_such_work_is_never_executed(
    store: Desk, failure: str, lazy: str, *, is_awaited: bool
) -> None:
    made = LAZY[lazy]()
    result = FAILURES[failure](made)

    def plain(to: str) -> Any:
        return result

    async def awaited(to: str) -> Any:
        return result

    gate = store.gate(hansard.tool(effect="write", name="send")(awaited if is_awaited else plain))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    with pytest.raises(UnfinishedResult):
        gate.run(identity)
    close(made)

    assert state_of(gate, identity) == ("approved", "unknown")


MANAGERS: dict[str, Callable[[], Any]] = {
    "plain": contextlib.contextmanager(pieces),
    "async": contextlib.asynccontextmanager(apieces),
}


@pytest.mark.parametrize("kind", MANAGERS)
def test_a_function_that_makes_a_context_manager_cannot_be_gated(kind: str) -> None:
    with pytest.raises(NotDecoratable, match="a generator runs in pieces"):
        hansard.tool(effect="write", name="send")(MANAGERS[kind])


@pytest.mark.parametrize("kind", MANAGERS)
def test_a_tool_that_returns_a_context_manager_is_never_executed(store: Desk, kind: str) -> None:
    gate = store.gate(hansard.tool(effect="write", name="send")(lambda: MANAGERS[kind]()))
    answer = gate.call("send", {}).for_model()

    with pytest.raises(UnfinishedResult, match="ContextManager") as raised:
        gate.run(store.approve(answer))

    assert raised.value.where == ""
    assert state_of(gate, answer["approval_id"]) == ("approved", "unknown")
    assert RAN == []


def test_a_context_manager_is_a_value_once_it_was_left() -> None:
    manager = MANAGERS["plain"]()
    with manager as entered:
        during = find_unfinished([manager])
        assert find_unfinished(entered) is None
    after = find_unfinished([manager])
    RAN.clear()

    assert during is not None
    assert after is None


def test_an_async_context_manager_is_a_value_once_it_was_left() -> None:
    manager = MANAGERS["async"]()

    async def use() -> object:
        async with manager:
            return find_unfinished([manager])

    during = asyncio.run(use())
    after = find_unfinished([manager])
    RAN.clear()

    assert during is not None
    assert after is None


@pytest.mark.parametrize("lazy", ["map", "filter", "starmap"])
def test_a_lazy_iterator_as_the_whole_result_is_found_too(store: Desk, lazy: str) -> None:
    gate = store.gate(hansard.tool(effect="write", name="send")(lambda to: LAZY[lazy]()))

    with pytest.raises(UnfinishedResult, match=lazy):
        gate.run(store.approve(gate.call("send", {"to": "Maria"})))


def test_a_task_that_still_runs_is_found_and_one_that_is_done_is_a_value(store: Desk) -> None:
    async def main() -> list[str]:
        gate = store.gate(hansard.tool(effect="write", name="send")(begin))
        states = []
        for is_done in (False, True):
            task = asyncio.create_task(asyncio.sleep(0))
            if is_done:
                await task
            begun.append(task)
            answer = (await gate.acall("send", {"to": "Maria"})).for_model()
            identity = store.approve(answer)
            try:
                await gate.arun(identity)
            except UnfinishedResult as error:
                states.append(error.kind)
            states.append(state_of(gate, identity)[1])
            await task
        return states

    begun: list[Any] = []

    def begin(to: str) -> Any:
        return {"task": begun[-1]}

    assert asyncio.run(main()) == ["Task", "unknown", "done"]


def test_what_has_ended_and_what_is_no_work_is_a_value() -> None:
    read = pieces()
    close(read)
    done: Future[int] = Future()
    done.set_result(1)
    client = Own([Future(), (one for one in "a")])  # an object with a task and a stream of its own
    values = [
        read, done, send, Own, client, open, len, lambda: 1, zip([1], [2], strict=True), {1: 2},
        range(3), itertools.chain([1], [2]), Model(work=1), time, b"x", object(), Job("a"),
    ]  # fmt: skip

    found = [find_unfinished({"value": one}) for one in values]

    assert found == [None] * len(values)


@pytest.mark.parametrize("kind", [Own, OwnSlots])
def test_a_coroutine_that_nobody_began_counts_in_any_object(kind: Callable[[Any], Any]) -> None:
    work = send()

    found = find_unfinished([kind({"a": kind([work])})])
    close(work)

    assert found is not None
    assert found.where == "[0].work['a'].work[0]"


def test_a_hostile_class_breaks_nothing_and_a_cycle_ends() -> None:
    class Hostile:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __hash__(self) -> int:
            raise RuntimeError

    class Sneaky(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            raise RuntimeError

    work = send()
    cycle: list[Any] = [Hostile()]
    cycle.append(cycle)
    cycle.append(Sneaky([work]))

    found = find_unfinished(cycle)
    close(work)

    assert found is not None
    assert found.where == "[2][0]"


def test_a_large_result_takes_bounded_time() -> None:
    large = [{"id": number, "tags": ["a", "b"], "at": (1, 2)} for number in range(200_000)]

    before_s = time.process_time()
    assert find_unfinished(large) is None

    assert time.process_time() - before_s < 1.0


def test_a_chat_says_that_nobody_knows(store: Desk) -> None:
    work = send()
    said: list[str] = []

    @hansard.tool(effect="write", name="mail", describe="Mail {to}")
    def mail(to: str) -> Any:
        return (to, work)

    def agent(message: str) -> str:
        chat.gate.call("mail", {"to": "Maria"})
        return "Shall I?"

    chat = ChatGate(
        TextChannel("chat", said.append), agent=agent, tools=[mail], decisions=store.decisions
    )
    chat.handle("mail Maria")
    chat.handle("yes", by="ana")
    close(work)

    assert "may have run; its outcome is unknown" in said[-1]
    assert not [one for one in said if one.startswith("Done")]


def test_a_person_settles_a_call_with_such_a_result(store: Desk) -> None:
    work = send()
    gate = store.gate(hansard.tool(effect="write", name="send")(lambda to: [work]))
    identity = store.approve(gate.call("send", {"to": "Maria"}))
    with pytest.raises(UnfinishedResult):
        gate.run(identity)
    close(work)

    with gate:
        approvals.resolve_outcome(identity, executed=False, note="the outbox is empty")

    assert state_of(gate, identity) == ("approved", "not_run")


def test_every_holder_is_judged_as_its_copy_is() -> None:
    """What makes a result of a result (asdict, copies) changes nothing about it."""
    work = send()
    job = Job("a", [work])

    found = [find_unfinished(one) for one in (job, vars(job), dataclasses.replace(job))]
    close(work)

    assert [one is not None for one in found] == [True] * 3


@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_future_that_nobody_begins_does_not_hold_a_run_for_ever(
    store: Desk, monkeypatch: pytest.MonkeyPatch, *, is_awaited: bool
) -> None:
    monkeypatch.setattr(flow, "_UNBEGUN_S", 0.05)
    made: Future[str] = Future()
    gate = store.gate(hansard.tool(effect="write", name="send")(lambda to: made))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    with pytest.raises(
        FutureNotStarted, match=r"a Future whose work had not begun after 0\.05 seconds"
    ):
        asyncio.run(gate.arun(identity)) if is_awaited else gate.run(identity)

    assert state_of(gate, identity) == ("approved", "unknown")
    assert made.cancelled()


def begun_in(pool: ThreadPoolExecutor) -> Future[None]:
    """Return the future of work that has begun, and goes on for longer than a future may stand."""
    has_begun = threading.Event()

    def work() -> None:
        has_begun.set()
        time.sleep(0.9)

    future = pool.submit(work)
    assert has_begun.wait(30)
    return future


def test_a_future_whose_work_has_begun_is_waited_for_as_long_as_it_takes(
    store: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "_UNBEGUN_S", 0.6)
    loop = asyncio.new_event_loop()
    elsewhere = threading.Thread(target=loop.run_forever)
    ended = []
    elsewhere.start()
    try:
        with ThreadPoolExecutor(1) as pool:
            works: list[Callable[[], Future[Any]]] = [
                partial(begun_in, pool),
                lambda: asyncio.run_coroutine_threadsafe(asyncio.sleep(0.9, "said"), loop),
            ]
            for work in works:
                tool = hansard.tool(effect="write", name="send")(lambda work=work: work())
                gate = store.gate(tool)
                ended.append(gate.run(store.approve(gate.call("send", {}))).result)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        elsewhere.join()
        loop.close()

    assert ended == [None, "said"]


class Lazy(dict[str, Any]):
    """A row that is loaded when it is looked at, and cannot be any more."""

    def items(self) -> Any:
        raise ConnectionError("the session is closed")

    keys = values = items


def test_the_end_of_a_call_is_recorded_whatever_its_result_holds(store: Desk) -> None:
    made = {"row": Lazy(a=1)}
    gate = store.gate(hansard.tool(effect="write", name="load")(lambda: made))
    identity = store.approve(gate.call("load", {}))

    assert gate.run(identity).result is made
    assert state_of(gate, identity) == ("approved", "done")
