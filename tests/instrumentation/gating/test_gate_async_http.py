"""Tools of both kinds where a server keeps the decisions: what has to wait waits in threads."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard import approvals
from hansard._backend.http import HttpDecisions
from hansard._config.settings import load_settings
from hansard._gate.gate import Gate
from hansard.errors import AwaitRequired, OutcomeUnknown, RunsFailed
from hansard_store.approvals.records import ApprovalFilter
from hansard_store.approvals.service import ApprovalService
from tests.instrumentation.gating.gates import state_of
from tests.instrumentation.gating.kinds import ENDINGS, STATES, Broken, Ending, Work, make
from tests.journeys.processes import Serving, hosting

pytestmark = pytest.mark.slow

RAISED = (Broken, TimeoutError, KeyboardInterrupt, asyncio.CancelledError)
AT_HAND = ["sync", "async def", "returns one and does not say so"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def people(server: Serving) -> Iterator[ApprovalService]:
    """The server's store, where somebody decides."""
    with ApprovalService(server.data) as store:
        yield store


@pytest.fixture
def decisions(server: Serving, tmp_path: Path) -> Iterator[HttpDecisions]:
    made = HttpDecisions(load_settings({"endpoint": server.http, "data": tmp_path}, {}))
    yield made
    made.close()


class Run:
    """One action in a channel of its own."""

    def __init__(
        self, people: ApprovalService, decisions: Any, kind: str, ending: Ending, channel: str
    ) -> None:
        self.people = people
        self.channel = channel
        self.work = Work(ending, look=lambda: self.approval().execution.state)
        self.tool = make(kind, self.work, "write")
        self.gate = Gate(tools=[self.tool], decisions=decisions, channel=channel)

    def approval(self) -> Any:
        [one] = self.people.approvals(ApprovalFilter(channel=self.channel))
        return one

    def approved(self) -> str:
        self.gate.call("send", {"to": "Maria"})
        return self.approve()

    def approve(self) -> str:
        identity: str = self.approval().approval_id
        self.people.approve(identity, by="ana")
        return identity

    def run(self) -> None:
        self.gate.run(self.approved())

    def run_all_approved(self) -> None:
        self.approved()
        with self.gate:
            approvals.run_all_approved(channel=self.channel)

    def wait(self) -> None:
        self.gate.wait_s = math.inf
        thread = threading.Thread(target=self._approve_soon)
        thread.start()
        try:
            self.gate.call("send", {"to": "Maria"})
        finally:
            thread.join()

    def _approve_soon(self) -> None:
        look = threading.Event()
        while not self.people.approvals(ApprovalFilter(channel=self.channel)):
            look.wait(0.005)
        self.approve()

    async def arun(self) -> None:
        await self.gate.arun(await asyncio.to_thread(self.approved))

    async def arun_all_approved(self) -> None:
        await asyncio.to_thread(self.approved)
        async with self.gate:
            await approvals.arun_all_approved(channel=self.channel)

    async def await_(self) -> None:
        self.gate.wait_s = math.inf
        call = asyncio.create_task(self.gate.acall("send", {"to": "Maria"}))
        await asyncio.to_thread(self._approve_soon)
        await call


PLAIN: dict[str, Callable[[Run], None]] = {
    "run": Run.run,
    "run_all_approved": Run.run_all_approved,
    "wait_s=": Run.wait,
}
AWAITED: dict[str, Callable[[Run], Awaitable[None]]] = {
    "arun": Run.arun,
    "arun_all_approved": Run.arun_all_approved,
    "wait_s=, awaited": Run.await_,
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", AT_HAND)
@pytest.mark.parametrize("way", [*PLAIN, *AWAITED])
def test_the_server_has_the_end_that_was_awaited(
    people: ApprovalService, decisions: HttpDecisions, way: str, kind: str, ending: Ending
) -> None:
    one = Run(people, decisions, kind, ending, f"{way} {kind} {ending}")

    async def main() -> None:
        await AWAITED[way](one)

    try:
        PLAIN[way](one) if way in PLAIN else asyncio.run(main())
    except RAISED:
        assert ending != "returns"
    except RunsFailed as some:
        [error] = some.failed.values()
        assert isinstance(error, RAISED)

    _told(one)
    assert one.work.done == (["Maria"] if ending == "returns" else [])
    assert one.work.seen == ["claimed"]
    assert one.approval().execution.state == STATES[ending]


def test_inside_a_loop_nothing_is_claimed_without_await(
    people: ApprovalService, decisions: HttpDecisions
) -> None:
    one = Run(people, decisions, "async def", "returns", "in a loop")
    identity = one.approved()

    async def main() -> None:
        with pytest.raises(AwaitRequired):
            one.gate.run(identity)
        assert one.approval().execution.state == "none"
        assert (await one.gate.arun(identity)).result == "sent to Maria"

    asyncio.run(main())
    assert one.approval().execution.state == "done"


@pytest.mark.parametrize("moment", ["claim", "run", "result"])
def test_a_cancellation_at_any_moment_leaves_the_truth(
    people: ApprovalService, decisions: HttpDecisions, moment: str
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        """The server, which takes its time at one moment."""

        is_local = False

        def __getattr__(self, name: str) -> Any:
            return getattr(decisions, name)

        def claim(self, *given: Any) -> Any:
            return self._at("claim", lambda: decisions.claim(*given))

        def report_result(self, *given: Any) -> Any:
            return self._at("result", lambda: decisions.report_result(*given))

        def _at(self, here: str, ask: Callable[[], Any]) -> Any:
            if here == moment:
                begun.set()
                go_on.wait(30)
            return ask()

    one = Run(people, Slow(), "async def", "returns", f"cancelled at {moment}")
    if moment == "run":
        one.tool = hansard.tool(effect="write", name="send")(_endless(begun))
        one.gate = Gate(tools=[one.tool], decisions=decisions, channel=one.channel)
    identity = one.approved()

    async def main() -> None:
        task = asyncio.create_task(one.gate.arun(identity))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await asyncio.to_thread(_told, one)

    asyncio.run(main())

    found = one.approval().execution
    expected = {"claim": "failed", "run": "unknown", "result": "done"}
    assert found.state == expected[moment]
    assert one.work.done == (["Maria"] if moment == "result" else [])
    if moment == "run":
        with pytest.raises(OutcomeUnknown):
            one.gate.run(identity)
    assert state_of(one.gate, identity) == ("approved", expected[moment])


def _endless(begun: threading.Event) -> Any:
    async def send(to: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    return send


def _told(one: Run) -> None:
    """Wait for what still goes to the server: that thread outlives the task it was of."""
    for thread in threading.enumerate():
        if thread.name == "hansard-gate" and not thread.daemon:
            thread.join(30)
    look = threading.Event()
    for _ in range(1_000):
        if one.approval().execution.state != "claimed":
            return
        look.wait(0.01)


def test_an_end_after_the_shutdown_is_reported_where_the_call_was_claimed(
    server: Serving, people: ApprovalService, tmp_path: Path
) -> None:
    def leave(to: str) -> str:
        hansard.shutdown()
        return f"sent to {to}"

    hansard.init(endpoint=server.http, data=tmp_path)
    gate = Gate(tools=[hansard.tool(leave, effect="write")], channel="leaves")
    asked = gate.call("leave", {"to": "Maria"}).for_model()["approval_id"]
    people.approve(asked, by="ana")

    assert gate.run(asked).result == "sent to Maria"

    [one] = people.approvals(ApprovalFilter(channel="leaves"))
    assert one.execution.state == "done"
