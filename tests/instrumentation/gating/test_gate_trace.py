"""What a gated call shows in the trace, and that nothing of it depends on there being one."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import hansard
from hansard import approvals, semconv
from hansard.errors import PolicyDenied, UnknownApproval
from tests.instrumentation.gating.gates import Desk, state_of
from tests.instrumentation.recording import attributes, content, recording

CALLS: list[str] = []


@hansard.tool(effect="write", describe="Send to {to}")
def send(to: str) -> str:
    CALLS.append(to)
    return f"sent to {to}"


@hansard.tool(effect="read", name="look")
def look(what: str) -> str:
    return what


@hansard.tool(effect="read", name="alook")
async def alook(what: str) -> str:
    return what


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


@pytest.mark.covers("UI-07")
def test_the_step_that_asks_says_so_and_the_one_that_runs_is_linked_to_it(store: Desk) -> None:
    with recording() as recorded, store.gate(agent="clerk"):
        answer: Any = send("maria@acme.com")
        identity = store.approve(answer)
        approvals.run(identity)

    asked, ran = recorded.spans
    assert asked.name == ran.name == "execute_tool send"
    for span, status in ((asked, "awaiting"), (ran, "approved")):
        told = attributes(span)
        assert told[semconv.APPROVAL_ID] == identity
        assert told[semconv.APPROVAL_STATUS] == status
        assert told[semconv.APPROVAL_ARGUMENTS_HASH].startswith("hmac-sha256:")
        assert told[semconv.TOOL_EFFECT] == "write"
        assert content(span, semconv.TOOL_CALL_ARGUMENTS) == {"to": "maria@acme.com"}
    assert content(asked, semconv.TOOL_CALL_RESULT) == answer
    assert content(ran, semconv.TOOL_CALL_RESULT) == "sent to maria@acme.com"
    assert [one.name for one in asked.events] == [semconv.EVENT_APPROVAL_REQUESTED]
    assert [one.name for one in ran.events] == [semconv.EVENT_APPROVAL_CLAIMED]
    assert dict(ran.events[0].attributes or {})[semconv.APPROVAL_BY] == "ana"
    [link] = ran.links
    assert link.context.span_id == asked.context.span_id
    assert dict(link.attributes or {}) == {semconv.LINK_TYPE: "approval_request"}


def test_the_approval_names_the_run_and_step_that_asked(store: Desk) -> None:
    with recording() as recorded, store.gate(), hansard.start_run("clerk") as run:
        send("maria@acme.com")

    [waiting] = store.store.approvals()
    asked = recorded.named("execute_tool send")
    assert (waiting.run_id, waiting.agent) == (run.run_id, "clerk")
    assert waiting.step_id == f"{run.run_id}-{asked.context.span_id:016x}"


def test_a_call_that_waits_shows_the_whole_way_in_one_step(store: Desk) -> None:
    store.decisions.propose_again = store.decisions.propose  # type: ignore[attr-defined]

    def propose_and_approve(proposal: Any) -> Any:
        made = store.decisions.propose_again(proposal)  # type: ignore[attr-defined]
        store.store.approve(made["approval_id"], by="ana")
        return made

    store.decisions.propose = propose_and_approve  # type: ignore[method-assign]
    with recording() as recorded, store.gate(wait_s=math.inf):
        assert send("maria@acme.com") == "sent to maria@acme.com"

    assert [one.name for one in recorded.only().events] == [
        semconv.EVENT_APPROVAL_REQUESTED,
        semconv.EVENT_APPROVAL_DECIDED,
        semconv.EVENT_APPROVAL_CLAIMED,
    ]
    assert attributes(recorded.only())[semconv.APPROVAL_STATUS] == "approved"


@pytest.mark.covers("CG-02")
def test_a_reading_tool_runs_at_once_with_the_same_result(store: Desk) -> None:
    with recording() as recorded:
        with store.gate(look) as gate:
            results = [
                look("x"),
                gate.call("look", {"what": "x"}).for_model(),
                asyncio.run(alook("x")),
            ]
        plain = look("x")

    assert results == [plain] * 3
    assert store.events() == [
        "tool.called look", "tool.returned look", "tool.called look", "tool.returned look",
        "tool.called alook", "tool.returned alook",
    ]  # fmt: skip
    assert [one.name for one in recorded.spans[0].events] == [semconv.EVENT_GATE_ALLOWED]
    assert [one.name for one in recorded.spans[3].events] == []


def test_a_refused_call_says_so_on_its_span(store: Desk) -> None:
    rule = {"id": "no", "effect": "deny", "conditions": {"tool.name": "send"}}
    with recording() as recorded, store.gate(policy=rule):
        with pytest.raises(PolicyDenied):
            send("maria@acme.com")
        with pytest.raises(UnknownApproval):
            approvals.repropose("0" * 32, {})

    names = [one.name for one in recorded.only().events]
    assert names == [semconv.EVENT_GATE_REFUSED, semconv.EVENT_EXCEPTION]
    assert attributes(recorded.only())[semconv.ERROR_TYPE].endswith("PolicyDenied")


@pytest.mark.covers("OT-15")
@pytest.mark.parametrize("is_recording", [True, False], ids=["nothing sampled", "no recorder"])
def test_nothing_depends_on_the_trace(store: Desk, is_recording: bool) -> None:
    def cycle() -> str:
        with store.gate() as gate:
            identity = store.approve(send("maria@acme.com"))
            look("x")
            gate.run(identity)
            return identity

    if is_recording:
        with recording(sampler=ALWAYS_OFF) as recorded:
            identity = cycle()
        assert recorded.spans == []
    else:
        identity = cycle()

    assert (CALLS, state_of(store.gate(), identity)) == (["maria@acme.com"], ("approved", "done"))
    assert store.events() == [
        "action.created send", "action.approved send", "tool.called look", "tool.returned look",
        "action.claimed send", "action.executed send",
    ]  # fmt: skip
    assert store.store.approval(identity).run_id is None
