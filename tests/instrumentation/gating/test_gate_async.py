"""Tools of both kinds through every way in which a gate runs them, inside and outside a loop.

*Executed* is recorded after the awaited end, and never without it.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

import hansard
from hansard import approvals
from hansard._backend.local_approvals import LocalDecisions
from hansard._gate.gate import Gate
from hansard.chat import ChatGate, TextChannel
from hansard.errors import (
    AsyncPort,
    AwaitRequired,
    DecisionConflict,
    LazyResult,
    NotDecoratable,
    PendingResult,
    RunsFailed,
)
from hansard.results import GateResult
from tests.instrumentation.gating.gates import Desk, state_of
from tests.instrumentation.gating.kinds import (
    ASYNC,
    ENDINGS,
    KINDS,
    SHOWN,
    STATES,
    Broken,
    Ending,
    Work,
    make,
)

RAISED = (Broken, TimeoutError, KeyboardInterrupt, asyncio.CancelledError)


@contextmanager
def deciding(store: Desk) -> Iterator[None]:
    """Approve whatever waits, from another thread."""
    is_over = threading.Event()

    def decide() -> None:
        while not is_over.wait(0.002):
            for one in store.store.approvals():
                if one.status == "awaiting":
                    store.store.approve(one.approval_id, by="ana", revision=one.revision)

    thread = threading.Thread(target=decide)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


class Run:
    """One action, from its proposal to its end, on a real store."""

    def __init__(self, store: Desk, kind: str, ending: Ending = "returns") -> None:
        self.store = store
        self.work = Work(ending, look=self.state)
        self.tool = make(kind, self.work, "write")
        self.gate = store.gate(self.tool, channel="chat")
        self.said: list[str] = []
        channel = TextChannel("chat", self.said.append)
        self.chat = ChatGate(
            channel, agent=self._agent, tools=[self.tool], decisions=store.decisions
        )

    def _agent(self, message: str) -> str:
        self.chat.gate.call("send", {"to": "Maria"})
        return "Shall I?"

    @property
    def identity(self) -> str:
        [one] = self.store.store.approvals()
        return one.approval_id

    def state(self) -> str:
        return state_of(self.gate, self.identity)[1]

    def approved(self) -> str:
        return self.store.approve(self.gate.call("send", {"to": "Maria"}))

    # ---- ways without await

    def run(self) -> None:
        identity = self.approved()
        with self.gate:
            assert approvals.run(identity).result == "sent to Maria"

    def run_all_approved(self) -> None:
        self.approved()
        with self.gate:
            [done] = approvals.run_all_approved()
        assert done.result == "sent to Maria"

    def wait(self) -> None:
        self.gate.wait_s = math.inf
        with deciding(self.store):
            assert self.gate.call("send", {"to": "Maria"}).for_model() == "sent to Maria"

    def yes(self) -> None:
        self.chat.handle("send it to Maria")
        self.chat.handle("yes", by="ana")
        self._was_told()

    def button(self) -> None:
        self.chat.handle("send it to Maria")
        self.chat.press(self.identity, "yes", by="ana")
        self._was_told()

    def resume(self) -> None:
        self.approved()
        self.chat.resume()
        self._was_told()

    def repropose(self) -> None:
        self.gate.wait_s = math.inf
        identity = self.store.gate(self.tool).call("send", {"to": "Ann"}).for_model()["approval_id"]
        self.store.store.revise(identity, by="ana", note="to Maria")
        with deciding(self.store), self.gate:
            assert approvals.repropose(identity, {"to": "Maria"}).for_model() == "sent to Maria"

    # ---- ways with await

    async def arun(self) -> None:
        identity = self.approved()
        async with self.gate:
            assert (await approvals.arun(identity)).result == "sent to Maria"

    async def arun_all_approved(self) -> None:
        self.approved()
        async with self.gate:
            [done] = await approvals.arun_all_approved()
        assert done.result == "sent to Maria"

    async def await_(self) -> None:
        self.gate.wait_s = math.inf
        with deciding(self.store):
            assert (await self.gate.acall("send", {"to": "Maria"})).for_model() == "sent to Maria"

    async def ayes(self) -> None:
        await self.chat.ahandle("send it to Maria")
        await self.chat.ahandle("yes", by="ana")
        self._was_told()

    async def abutton(self) -> None:
        await self.chat.ahandle("send it to Maria")
        await self.chat.apress(self.identity, "yes", by="ana")
        self._was_told()

    async def aresume(self) -> None:
        self.approved()
        await self.chat.aresume()
        self._was_told()

    async def arepropose(self) -> None:
        self.gate.wait_s = math.inf
        identity = self.store.gate(self.tool).call("send", {"to": "Ann"}).for_model()["approval_id"]
        self.store.store.revise(identity, by="ana", note="to Maria")
        with deciding(self.store):
            async with self.gate:
                again = await approvals.arepropose(identity, {"to": "Maria"})
                assert again.for_model() == "sent to Maria"

    def _was_told(self) -> None:
        told = {
            "returns": "Done! Send to Maria.",
            "raises": "Send to Maria failed: Broken: Maria",
            "times out": "Send to Maria may have run; its outcome is unknown: TimeoutError:",
        }
        assert self.said[-1].startswith(told[self.work.ending])


PLAIN: dict[str, Callable[[Run], None]] = {
    "approvals.run": Run.run,
    "approvals.run_all_approved": Run.run_all_approved,
    "wait_s=": Run.wait,
    "chat, yes": Run.yes,
    "chat, button": Run.button,
    "chat, resume": Run.resume,
    "approvals.repropose": Run.repropose,
}
AWAITED: dict[str, Callable[[Run], Awaitable[None]]] = {
    "approvals.arun": Run.arun,
    "approvals.arun_all_approved": Run.arun_all_approved,
    "wait_s=, awaited": Run.await_,
    "chat, yes, awaited": Run.ayes,
    "chat, button, awaited": Run.abutton,
    "chat, resume, awaited": Run.aresume,
    "approvals.arepropose": Run.arepropose,
}


def ended(one: Run) -> None:
    """Assert that what is recorded is what happened, and that it was recorded afterwards."""
    ending = one.work.ending
    assert one.work.done == (["Maria"] if ending == "returns" else [])
    assert one.work.seen == ["claimed"]
    assert one.state() == STATES[ending]
    events = [event for event in one.store.events() if not event.startswith("message.")]
    last = {"done": "action.executed", "failed": "failure", "unknown": "action.unknown"}
    assert events[-1] == f"{last[STATES[ending]]} send"
    assert ("action.executed send" in events) == (STATES[ending] != "unknown")
    with one.gate, pytest.raises(DecisionConflict if STATES[ending] != "unknown" else Exception):
        approvals.run(one.identity)
    assert one.work.seen == ["claimed"]  # and not a second time


def driven(one: Run, act: Callable[[], Any]) -> None:
    """Act, and take what the tool raises: a chat says it instead."""
    try:
        act()
    except RAISED:
        assert one.work.ending != "returns"
    except RunsFailed as some:
        [error] = some.failed.values()
        assert isinstance(error, RAISED)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", PLAIN)
def test_what_was_approved_runs_to_its_end_before_that_is_recorded(
    store: Desk, way: str, kind: str, ending: Ending
) -> None:
    one = Run(store, kind, ending)

    driven(one, lambda: PLAIN[way](one))

    ended(one)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", AWAITED)
def test_what_was_approved_is_awaited_in_an_event_loop(
    store: Desk, way: str, kind: str, ending: Ending
) -> None:
    one = Run(store, kind, ending)

    async def main() -> None:
        await AWAITED[way](one)

    driven(one, lambda: asyncio.run(main()))

    ended(one)


@pytest.mark.parametrize("kind", SHOWN)
@pytest.mark.parametrize("way", PLAIN)
def test_a_loop_that_runs_is_not_held_up_and_nothing_is_claimed(
    store: Desk, way: str, kind: str
) -> None:
    one = Run(store, kind)

    async def main() -> None:
        with pytest.raises(AwaitRequired, match=r"await ") as caught:
            PLAIN[way](one)
        assert caught.value.instead in str(caught.value)
        assert (one.work.done, one.work.seen) == ([], [])
        assert not [event for event in store.events() if event.startswith("action.claimed")]
        for waiting in store.store.approvals():  # none where it was refused before that
            assert one.state() == "none"
            if waiting.status == "revised":
                continue
            if waiting.status == "awaiting":
                store.store.approve(one.identity, by="ana", revision=waiting.revision)
            async with one.gate:
                await approvals.arun(one.identity)
            ended(one)

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["sync", "returns one and does not say so"])
@pytest.mark.parametrize("way", PLAIN)
def test_inside_a_loop_what_does_not_look_async_runs_to_its_end_as_well(
    store: Desk, way: str, kind: str
) -> None:
    one = Run(store, kind)

    async def main() -> None:
        PLAIN[way](one)

    asyncio.run(main())

    ended(one)


def test_the_error_names_what_to_call(store: Desk) -> None:
    one = Run(store, "async def")
    identity = one.approved()

    async def main() -> None:
        with one.gate, pytest.raises(AwaitRequired) as caught:
            approvals.run(identity)
        assert f"`await approvals.arun('{identity}')`" in str(caught.value)
        assert caught.value.code == "await_required"

    asyncio.run(main())


# ---- reads


async def _for_model(calling: Awaitable[GateResult]) -> Any:
    return (await calling).for_model()


READS: dict[str, Callable[[Gate, Any], Any]] = {
    "gate.call": lambda gate, tool: gate.call("send", {"to": "Maria"}).for_model(),
    "decorated": lambda gate, tool: tool("Maria"),
    "gate.acall": lambda gate, tool: _for_model(gate.acall("send", {"to": "Maria"})),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", READS)
@pytest.mark.parametrize("inside", [False, True], ids=["no loop", "in a loop"])
def test_a_read_has_returned_once_it_has(
    store: Desk, way: str, kind: str, ending: Ending, inside: bool
) -> None:
    work = Work(ending, look=store.events)
    tool = make(kind, work, "read")
    gate = store.gate(tool)
    results: list[Any] = []

    async def main() -> None:
        made = READS[way](gate, tool)
        results.append(await made if asyncio.iscoroutine(made) else made)

    def act() -> None:
        with gate:
            if inside or way == "gate.acall":
                return asyncio.run(main())
            made = READS[way](gate, tool)
            results.append(_finished(made) if asyncio.iscoroutine(made) else made)

    refused = inside and way == "gate.call" and kind in SHOWN
    try:
        act()
    except AwaitRequired:
        assert refused
        assert (work.seen, store.events()) == ([], [])
        return
    except RAISED:
        assert ending != "returns"

    assert not refused
    assert results == (["sent to Maria"] if ending == "returns" else [])
    assert work.seen == [["tool.called send"]]
    assert store.events() == ["tool.called send", "tool.returned send"]
    returned = store.store.events(limit=1)[0]
    assert ('"ok":true' in returned.body) == (ending == "returns")


async def _awaited(made: Any) -> Any:
    return await made


def _finished(made: Any) -> Any:
    return asyncio.run(_awaited(made))


# ---- cut off from outside


async def endless(to: str) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_what_is_cut_off_from_outside_is_unknown_and_not_executed(store: Desk, how: str) -> None:
    begun = threading.Event()

    async def send(to: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    gate = store.gate(hansard.tool(effect="write", name="send")(send))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    async def main() -> None:
        if how == "timeout":
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(gate.arun(identity), 0.01)
            return
        task = asyncio.create_task(gate.arun(identity))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert begun.is_set()
    _is_unknown(store, gate, identity, "CancelledError")


def test_a_run_that_is_thrown_away_half_way_is_unknown(store: Desk) -> None:
    class Never:
        def __await__(self) -> Iterator[None]:
            yield

    async def send(to: str) -> None:
        await Never()

    gate = store.gate(hansard.tool(effect="write", name="send")(send))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    running = gate.arun(identity)
    running.send(None)
    running.close()
    for thread in threading.enumerate():
        if thread.name == "hansard-gate":
            thread.join(10)

    _is_unknown(store, gate, identity, "GeneratorExit")


def _is_unknown(store: Desk, gate: Gate, identity: str, error: str) -> None:
    assert state_of(gate, identity) == ("approved", "unknown")
    assert store.events()[-1] == "action.unknown send"
    assert store.store.events(limit=1)[0].contents["error"] == error


def test_a_person_settles_what_was_cut_off(store: Desk) -> None:
    gate = store.gate(hansard.tool(effect="write", name="send")(endless))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(gate.arun(identity), 0.01)

    asyncio.run(main())
    with gate:
        settled = approvals.resolve_outcome(
            identity, executed=False, note="the outbox is empty", by="ana"
        )

    assert settled["execution"]["state"] == "not_run"


# ---- threads, and more than one at once


@pytest.mark.parametrize("kind", ["sync", *ASYNC])
def test_threads_without_a_loop_run_it_once(store: Desk, kind: str) -> None:
    one = Run(store, kind)
    identity = one.approved()
    together = threading.Barrier(6)

    def run(_: int) -> str:
        together.wait(10)
        try:
            return str(one.gate.run(identity).result)
        except DecisionConflict as error:
            return error.code

    with ThreadPoolExecutor(6) as threads:
        results = sorted(threads.map(run, range(6)))

    assert results == [*["already_claimed"] * 5, "sent to Maria"]
    assert one.work.done == ["Maria"]


def test_tasks_of_one_loop_run_it_once(store: Desk) -> None:
    one = Run(store, "async def")
    identity = one.approved()

    async def main() -> list[Any]:
        runs = [one.gate.arun(identity) for _ in range(6)]
        return await asyncio.gather(*runs, return_exceptions=True)

    results = asyncio.run(main())

    assert sum(not isinstance(result, Exception) for result in results) == 1
    assert one.work.done == ["Maria"]


def test_what_is_approved_at_once_is_awaited_in_one_loop(store: Desk) -> None:
    loops: list[object] = []

    @hansard.tool(effect="write")
    async def send(to: str) -> None:
        loops.append(asyncio.get_running_loop())

    gate = store.gate(send)
    for to in ("Ann", "Bob"):
        store.approve(gate.call("send", {"to": to}))

    with gate:
        assert len(approvals.run_all_approved()) == 2

    assert loops[0] is loops[1]


def test_a_future_of_a_pool_is_waited_for(store: Desk) -> None:
    begun, done = threading.Event(), []

    def later(to: str) -> str:
        begun.wait(10)
        done.append(to)
        return to

    with ThreadPoolExecutor(1) as pool:
        gate = store.gate(
            hansard.tool(effect="write", name="send")(lambda to: pool.submit(later, to))
        )
        for answer in (
            gate.call("send", {"to": "Ann"}).for_model(),
            gate.call("send", {"to": "Bob"}).for_model(),
        ):
            begun.set()
            identity = store.approve(answer)
            is_ann = not done
            ran = gate.run(identity) if is_ann else asyncio.run(gate.arun(identity))
            assert ran.result == done[-1]
            assert state_of(gate, identity)[1] == "done"

    assert done == ["Ann", "Bob"]


def test_a_task_of_the_loop_that_runs_is_not_said_to_have_run(store: Desk) -> None:
    done: list[str] = []

    async def later(to: str) -> None:
        await asyncio.sleep(0)
        done.append(to)

    def send(to: str):  # type: ignore[no-untyped-def]
        return asyncio.get_running_loop().create_task(later(to))

    gate = store.gate(hansard.tool(effect="write", name="send")(send))
    first, second = (store.approve(gate.call("send", {"to": to})) for to in ("Ann", "Bob"))

    async def main() -> None:
        with pytest.raises(PendingResult, match="how it ends is not known"):
            gate.run(first)
        assert state_of(gate, first) == ("approved", "unknown")
        await gate.arun(second)

    asyncio.run(main())

    assert state_of(gate, second) == ("approved", "done")
    assert done == ["Ann", "Bob"]


# ---- what the program hands in besides tools


def test_undo_and_describe_may_be_async(store: Desk) -> None:
    async def describe(to: str) -> str:
        await asyncio.sleep(0)
        return f"Write to {to}"

    async def back(arguments: Any, result: Any) -> Any:
        await asyncio.sleep(0)
        return "send", {"to": result}

    @hansard.tool(effect="write", describe=describe, undo=back)
    async def send(to: str) -> str:
        return to[::-1]

    with store.gate(send) as gate:
        answer = gate.call("send", {"to": "anna"}).for_model()
        identity = store.approve(answer)
        gate.run(identity)
        again = approvals.undo(identity).for_model()
        gate.run(store.approve(again))

        assert answer["message"].endswith(": Write to anna")
        assert approvals.get(again["approval_id"])["arguments"] == {"to": "anna"}

        async def main() -> None:
            with pytest.raises(AwaitRequired, match="describe="):
                gate.call("send", {"to": "anna"})
            assert (
                (await gate.acall("send", {"to": "bob"}))
                .for_model()["message"]
                .endswith("Write to bob")
            )

        asyncio.run(main())


def test_the_parts_of_a_chat_may_be_async(store: Desk) -> None:
    shown: list[str] = []
    judged: list[str] = []
    work = Work()
    tool = make("async def", work, "write")

    class Channel:
        name = "chat"

        async def send(self, text: str) -> None:
            await asyncio.sleep(0)
            shown.append(text)

        async def ask(self, question: Any) -> None:
            await asyncio.sleep(0)
            shown.append(question.prompt)

    async def agent(message: str) -> str:
        if message != "hello":
            await chat.gate.acall("send", {"to": "Maria"})
        return f"You said {message}"

    async def judge(message: str, answer: str) -> bool:
        judged.append(answer)
        return True

    chat = ChatGate(
        Channel(), agent=agent, evaluator=judge, tools=[tool], decisions=store.decisions
    )

    async def main() -> None:
        with pytest.raises(AwaitRequired, match="ahandle"):
            chat.handle("hello")
        await chat.ahandle("hello")
        await chat.ahandle("write to Maria")
        await chat.ahandle("yes", by="ana")

    asyncio.run(main())
    chat.handle("hello")

    assert shown[0] == shown[-1] == "You said hello"
    assert shown[1].startswith("Send to Maria\n")
    assert shown[2] == "Done! Send to Maria."
    assert judged == ["You said hello"] * 2
    assert work.done == ["Maria"]


def test_a_store_of_decisions_with_async_methods_is_refused(store: Desk) -> None:
    class Awaited(LocalDecisions):
        async def claim(self, approval_id: str, body: Any) -> Any: ...  # type: ignore[override]

    with pytest.raises(AsyncPort, match="claim"):
        Gate(decisions=Awaited(store.decisions._store))


def test_async_generators_are_refused_as_generators_are(store: Desk) -> None:
    async def rows() -> Any:
        yield 1

    class Rows:
        async def __call__(self) -> Any:
            yield 1

    for effect in ("read", "write"):
        for function in (rows, Rows()):
            with pytest.raises(NotDecoratable, match="a generator runs in pieces"):
                hansard.tool(effect=effect)(function)  # type: ignore[call-overload]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_generator_that_a_tool_returns_is_nothing_that_ran(store: Desk, is_async: bool) -> None:
    ran: list[str] = []

    async def apieces(to: str) -> Any:
        ran.append(to)
        yield to

    def pieces(to: str) -> Any:
        ran.append(to)
        yield to

    made = apieces if is_async else pieces
    gate = store.gate(hansard.tool(effect="write", name="send")(lambda to: made(to)))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    with pytest.raises(LazyResult):
        gate.run(identity)

    assert ran == []
    assert state_of(gate, identity) == ("approved", "failed")
