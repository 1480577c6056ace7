"""Running all that was approved: one that fails takes neither the others nor their results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import hansard
from hansard import approvals
from hansard._gate.gate import Gate
from hansard.chat import ChatGate, TextChannel
from hansard.errors import RunsFailed, UnfinishedResult
from tests.instrumentation.gating.gates import Desk, state_of

RUN: dict[str, Callable[[], Any]] = {
    "run_all_approved": approvals.run_all_approved,
    "arun_all_approved": lambda: asyncio.run(approvals.arun_all_approved()),
}


class Bounced(Exception):
    """The mail came back."""


def mailing(store: Desk, sent: list[str], *, is_async: bool) -> Gate:
    """Return a gate with a tool that fails in the ways that its argument names."""

    def act(to: str) -> Any:
        sent.append(to)
        if to == "bounces":
            raise Bounced(to)
        if to == "late":
            raise TimeoutError(to)
        if to == "lazy":
            return {"reply": map(str, [1])}
        if to == "ends":
            raise KeyboardInterrupt
        return f"sent to {to}"

    async def later(to: str) -> Any:
        await asyncio.sleep(0)
        return act(to)

    return store.gate(hansard.tool(effect="write", name="send")(later if is_async else act))


def approve(store: Desk, gate: Gate, *names: str) -> dict[str, str]:
    return {to: store.approve(gate.call("send", {"to": to})) for to in names}


@pytest.mark.parametrize("way", RUN)
@pytest.mark.parametrize("is_async", [False, True])
def test_the_others_run_and_all_results_and_errors_are_reachable(
    store: Desk, way: str, *, is_async: bool
) -> None:
    sent: list[str] = []
    gate = mailing(store, sent, is_async=is_async)
    ids = approve(store, gate, "Ana", "bounces", "Ben", "late", "lazy", "Cleo")

    with gate, pytest.raises(RunsFailed, match="3 of 6 approved calls failed") as raised:
        RUN[way]()

    assert sent == ["Ana", "bounces", "Ben", "late", "lazy", "Cleo"]
    error = raised.value
    assert [one.result for one in error.executed] == ["sent to Ana", "sent to Ben", "sent to Cleo"]
    assert [one.approval_id for one in error.executed] == [ids["Ana"], ids["Ben"], ids["Cleo"]]
    assert {key: type(one) for key, one in error.failed.items()} == {
        ids["bounces"]: Bounced, ids["late"]: TimeoutError, ids["lazy"]: UnfinishedResult,
    }  # fmt: skip
    states = {to: state_of(gate, identity)[1] for to, identity in ids.items()}
    assert states == {
        "Ana": "done", "bounces": "failed", "Ben": "done", "late": "unknown", "lazy": "unknown",
        "Cleo": "done",
    }  # fmt: skip


def test_except_star_finds_an_error_and_what_ran(store: Desk) -> None:
    gate = mailing(store, [], is_async=False)
    approve(store, gate, "Ana", "bounces", "late")
    found: list[Any] = []

    with gate:
        try:
            approvals.run_all_approved()
        except* Bounced as group:
            found.append(group)
        except* TimeoutError as group:
            found += group.exceptions

    some, late = found
    assert isinstance(some, RunsFailed)
    assert len(some.failed) == 1
    assert [one.result for one in some.executed] == ["sent to Ana"]
    assert isinstance(late, TimeoutError)


@pytest.mark.parametrize("way", RUN)
def test_what_ends_the_whole_has_what_ran(store: Desk, way: str) -> None:
    sent: list[str] = []
    gate = mailing(store, sent, is_async=False)
    ids = approve(store, gate, "Ana", "bounces", "ends", "Ben")

    with gate, pytest.raises(KeyboardInterrupt) as raised:
        RUN[way]()

    assert sent == ["Ana", "bounces", "ends"]
    assert [one.result for one in raised.value.executed] == ["sent to Ana"]  # type: ignore[attr-defined]
    assert list(raised.value.failed) == [ids["bounces"]]  # type: ignore[attr-defined]
    assert state_of(gate, ids["Ben"]) == ("approved", "none")


def test_a_cancelled_task_has_what_ran(store: Desk) -> None:
    began = asyncio.Event()

    async def send(to: str) -> str:
        if to == "endless":
            began.set()
            await asyncio.Event().wait()
        return f"sent to {to}"

    gate = store.gate(hansard.tool(effect="write", name="send")(send))
    approve(store, gate, "Ana", "endless", "Ben")

    async def main() -> list[str]:
        async def run() -> Any:
            try:
                await approvals.arun_all_approved()
            except asyncio.CancelledError as error:
                return [one.result for one in error.executed]  # type: ignore[attr-defined]

        with gate:
            task = asyncio.create_task(run())
            await began.wait()
            task.cancel()
            found: list[str] = await task
            return found

    assert asyncio.run(main()) == ["sent to Ana"]


def test_what_cannot_run_from_here_is_no_failure(store: Desk) -> None:
    sent: list[str] = []
    gate = mailing(store, sent, is_async=False)
    ids = approve(store, gate, "Ana", "Ben")
    store.store.claim(ids["Ana"])  # another process has begun it

    with gate:
        ran = approvals.run_all_approved()

    assert [one.result for one in ran] == ["sent to Ben"]


def test_a_chat_that_goes_on_tells_of_each(store: Desk) -> None:
    said: list[str] = []
    gate = mailing(store, [], is_async=False)
    gate.channel = "chat"
    approve(store, gate, "Ana", "bounces", "late")

    chat = ChatGate(
        TextChannel("chat", said.append),
        agent=lambda message: "",
        tools=gate.tools,
        decisions=store.decisions,
    )
    chat.resume()

    assert len(said) == 3
    assert said[0].startswith("Done!")
    assert "failed: Bounced: bounces" in said[1]
    assert "may have run; its outcome is unknown: TimeoutError" in said[2]
