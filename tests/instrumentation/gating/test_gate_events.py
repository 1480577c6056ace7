"""The contract of the audit log, held against the gate itself: decorated tools of both kinds, run.

Each story is what a program and a person do; what it logs is listed, no more and no less.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard import approvals
from hansard._gate.gate import Gate
from hansard.chat import ChatGate, TextChannel
from hansard.errors import GateError, PolicyDenied
from hansard_store.audit import events
from hansard_store.audit.event_types import Event, EventFilter, EventType
from tests.instrumentation.gating.gates import Desk, desk

DENY = {"id": "no", "effect": "deny", "applies_to": {"action": "do"}}
ASK = {"id": "ask", "effect": "require_approval", "applies_to": {"action": "do"}}
RECEIPT = {"id": "receipt", "effect": "require_receipt", "applies_to": {"action": "do"}}
ASKED = ["action.created send"]
APPROVED = [*ASKED, "action.approved send"]
CLAIMED = [*APPROVED, "action.claimed send"]
EXECUTED = [*CLAIMED, "action.executed send"]


class Story:
    """A program with a tool that reads and one that writes, plain or async, and its person."""

    def __init__(self, store: Desk, *, is_async: bool) -> None:
        self.store = store
        self.is_async = is_async
        self.before: list[list[str]] = []  # what was logged when a tool ran

        def do(to: str) -> str:
            self.before.append(store.events())
            if to == "nobody":
                raise LookupError(to)
            if to == "late":
                raise TimeoutError(to)
            return to

        async def ado(to: str) -> str:
            await asyncio.sleep(0)
            return do(to)

        work: Any = ado if is_async else do
        self.send = hansard.tool(effect="write", name="send")(work)
        self.look = hansard.tool(effect="read", name="look")(work)
        self.gate = self.gate_with()

    def gate_with(self, **options: Any) -> Gate:
        return self.store.gate(self.send, self.look, **options)

    def call(self, name: str, to: str = "ann", gate: Gate | None = None) -> Any:
        gate = gate or self.gate
        with suppress(LookupError):
            if self.is_async:
                return asyncio.run(gate.acall(name, {"to": to})).for_model()
            return gate.call(name, {"to": to}).for_model()

    def asked(self, to: str = "ann", gate: Gate | None = None) -> str:
        return str(self.call("send", to, gate)["approval_id"])

    def approved(self, to: str = "ann", gate: Gate | None = None) -> str:
        return self.store.approve({"approval_id": self.asked(to, gate)})

    def run(self, identity: str, gate: Gate | None = None) -> None:
        gate = gate or self.gate
        with suppress(LookupError, TimeoutError):
            asyncio.run(gate.arun(identity)) if self.is_async else gate.run(identity)

    def chat(self, *messages: str, **options: Any) -> None:
        def agent(message: str) -> str:
            if message == "send":
                chat.gate.call("send", {"to": "ann"})
            return "well"

        channel = TextChannel("chat", lambda text: None)
        chat = ChatGate(
            channel, agent=agent, tools=[self.send], decisions=self.store.decisions, **options
        )
        for message in messages:
            asyncio.run(chat.ahandle(message)) if self.is_async else chat.handle(message)


def reads(story: Story) -> None:
    story.call("look")
    assert story.before == [["tool.called look"]]


@pytest.mark.covers("EV-06")
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_the_event_of_a_call_is_bound_to_its_arguments(tmp_path: Path, is_async: bool) -> None:
    with desk(tmp_path / "data") as store:
        story = Story(store, is_async=is_async)
        for to in ("ann", "bob", "ann"):
            story.call("look", to)
        called = store.store.events(EventFilter(type=EventType.TOOL_CALLED))

    hashes = [json.loads(one.body)["arguments"] for one in called]
    assert hashes[0] == hashes[2] != hashes[1]
    assert "bob" not in "".join(one.body for one in called)


def fails_to_read(story: Story) -> None:
    story.call("look", "nobody")
    assert '"ok":false' in story.store.store.events(limit=1)[0].body


def is_denied(story: Story) -> None:
    with pytest.raises(PolicyDenied):
        story.call("look", gate=story.gate_with(policy=DENY))


def is_held_by_a_rule(story: Story) -> None:
    gate = story.gate_with(policy=ASK)
    identity = story.call("look", gate=gate)["approval_id"]
    story.run(story.store.approve({"approval_id": identity}), gate)
    assert story.before[0][-1] == "action.claimed look"


def needs_a_receipt(story: Story) -> None:
    story.call("look", gate=story.gate_with(policy=RECEIPT))
    assert story.before == [["action.receipted look", "tool.called look"]]


def writes(story: Story) -> None:
    story.run(story.approved())
    assert story.before == [CLAIMED]


def fails_to_write(story: Story) -> None:
    story.run(story.approved("nobody"))
    assert story.before == [CLAIMED]


def is_cut_off_and_settled(story: Story) -> None:
    identity = story.approved("late")
    story.run(identity)
    with story.gate:
        approvals.resolve_outcome(identity, executed=True, note="it is in the outbox", by="ana")


def is_sent_back(story: Story) -> None:
    identity = story.asked()
    with story.gate:
        approvals.revise(identity, "to Bob", by="ana")
        if story.is_async:
            asyncio.run(approvals.arepropose(identity, {"to": "bob"}))
        else:
            approvals.repropose(identity, {"to": "bob"})
        approvals.approve(identity, by="ana", revision=2)
    story.run(identity)


def is_rejected(story: Story) -> None:
    identity = story.asked()
    with story.gate:
        approvals.reject(identity, by="ana")
        with pytest.raises(GateError):
            approvals.run(identity)


def expires(story: Story) -> None:
    identity = story.asked()
    story.store.pass_time(3_601)
    with story.gate:
        assert approvals.get(identity)["status"] == "expired"


def is_run_after_a_restart(story: Story) -> None:
    story.approved()
    with story.gate:
        asyncio.run(
            approvals.arun_all_approved()
        ) if story.is_async else approvals.run_all_approved()


def is_confirmed_in_a_chat(story: Story) -> None:
    story.chat("send", "yes")


def is_cancelled_in_a_chat(story: Story) -> None:
    story.chat("send", "no")


def is_talked_about(story: Story) -> None:
    story.chat("hello", evaluator=lambda message, answer: bool(1 // 0))


HELD = [one.replace("send", "look") for one in EXECUTED]
IN, OUT = "message.inbound receive", "message.outbound send"
STORIES: dict[Callable[[Story], None], list[str]] = {
    reads: ["tool.called look", "tool.returned look"],
    fails_to_read: ["tool.called look", "tool.returned look"],
    is_denied: ["policy.blocked look"],
    is_held_by_a_rule: [HELD[0], "policy.gated look", *HELD[1:]],
    needs_a_receipt: ["action.receipted look", "tool.called look", "tool.returned look"],
    writes: EXECUTED,
    fails_to_write: [*EXECUTED, "failure send"],
    is_cut_off_and_settled: [*CLAIMED, "action.unknown send", "action.settled send"],
    is_sent_back: [
        *ASKED, "action.revised send", "action.reproposed send", *EXECUTED[1:],
    ],
    is_rejected: [*ASKED, "action.rejected send"],
    expires: [*ASKED, "action.expired send"],
    is_run_after_a_restart: EXECUTED,
    is_confirmed_in_a_chat: [IN, *ASKED, OUT, IN, *EXECUTED[1:], OUT],
    is_cancelled_in_a_chat: [IN, *ASKED, OUT, IN, "action.rejected send", OUT],
    is_talked_about: [IN, "failure evaluator", OUT],
}  # fmt: skip
# What a gate logs; the others are the memory's, the transcripts', of chains of approvers.
OF_GATES = {one.partition(" ")[0] for told in STORIES.values() for one in told}


def logged(folder: Path, act: Callable[[Story], None], *, is_async: bool) -> list[str]:
    with desk(folder) as store:
        act(Story(store, is_async=is_async))
        assert store.store.verify().broken is None
        return store.events()


@pytest.mark.covers("EV-03", "EV-04", "EV-05", "EV-06", "EV-07", "EV-08", "EV-09")
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("act", STORIES, ids=lambda act: act.__name__)
def test_a_gate_logs_what_the_contract_says_and_nothing_else(
    tmp_path: Path, act: Callable[[Story], None], is_async: bool
) -> None:
    assert logged(tmp_path / "data", act, is_async=is_async) == STORIES[act]


def test_the_stories_have_every_event_of_a_gate() -> None:
    of_gates = ("message.", "policy.", "action.", "tool.", "failure")
    whole = {str(one) for one in EventType if one.startswith(of_gates)}

    # Several approvers, and several requesters, are the store's affair, whatever a gate asks for.
    of_several = {EventType.ACTION_ESCALATED, EventType.ACTION_APPROVAL_ADDED}
    of_several.add(EventType.ACTION_REQUESTED)
    assert whole - of_several == OF_GATES


@pytest.mark.covers("EV-11")
@pytest.mark.parametrize("dropped", sorted(OF_GATES))
def test_an_event_that_a_gate_forgets_is_found(
    tmp_path: Path, dropped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = events.SqliteEventLog.append

    def forgetful(log: events.SqliteEventLog, event: Event) -> int:
        return 0 if event.type == dropped else append(log, event)

    monkeypatch.setattr(events.SqliteEventLog, "append", forgetful)
    concerned = [act for act, told in STORIES.items() if any(dropped in one for one in told)]

    for number, act in enumerate(concerned):
        with suppress(AssertionError):
            found = logged(tmp_path / str(number), act, is_async=bool(number % 2))
            assert found == STORIES[act]
            pytest.fail(f"{act.__name__} does not miss {dropped}")
