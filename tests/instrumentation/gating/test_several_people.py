"""Calls that take several people, and decisions with a person's token, through a real server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard import approvals
from hansard._backend.http import HttpDecisions
from hansard._config.settings import load_settings
from hansard._gate.gate import Gate
from hansard.chat import ChatGate, TextChannel
from hansard.errors import (
    DecisionConflict,
    DecisionRefused,
    InvalidArguments,
    NotApproved,
)
from hansard_store.principals.model import Scope
from tests.instrumentation.gating.gates import Desk
from tests.journeys.processes import Serving, hosting
from tests.signing import add_token

pytestmark = pytest.mark.slow

TWO = {"approvers": ["ana", "bo", "cid"], "approvals_required": 2}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("several") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def tokens(server: Serving) -> dict[str, str]:
    return {name: add_token(server.data, name) for name in ("ana", "bo", "cid", "eve")}


@pytest.fixture
def decisions(server: Serving, tmp_path: Path) -> Iterator[HttpDecisions]:
    made = HttpDecisions(load_settings({"endpoint": server.http, "data": tmp_path}, {}))
    yield made
    made.close()


@pytest.fixture
def ran() -> list[Any]:
    return []


@pytest.fixture
def wire(ran: list[Any]) -> Any:
    @hansard.tool(effect="write", describe="Wire {sum} to {to}", undo=lambda a, r: ("unwire", {}))
    def wire(to: str, sum: int = 5) -> str:
        ran.append((to, sum))
        return f"wired {sum}"

    return wire


def gate_of(decisions: Any, wire: Any, **told: Any) -> Gate:
    return Gate(tools=[wire], decisions=decisions, agent="clerk", **told)


def test_a_call_runs_once_as_many_people_approved_it_as_it_requires(
    decisions: HttpDecisions, wire: Any, ran: list[Any], tokens: dict[str, str]
) -> None:
    with gate_of(decisions, wire, **TWO) as gate:
        asked = gate.call("wire", {"to": "acme"}).for_model()
        identity = asked["approval_id"]
        first = approvals.approve(identity, token=tokens["ana"], note="invoice 7 is right")
        with pytest.raises(NotApproved):
            approvals.run(identity)
        with pytest.raises(DecisionConflict) as again:
            approvals.approve(identity, token=tokens["ana"])
        with pytest.raises(DecisionRefused) as other:
            approvals.approve(identity, token=tokens["eve"])
        before = list(ran)
        last = approvals.approve(identity, token=tokens["bo"])
        done = approvals.run(identity)

    assert "confirmation by 2 people" in asked["message"]
    assert asked["approvals"] == "0 of 2 approved; 2 more needed"
    assert (first["status"], first["approvals_left"], first["decided_by"]) == ("awaiting", 1, None)
    assert [(one["name"], one["method"]) for one in first["approved_by"]] == [("ana", "token")]
    assert again.value.code == "another_approver_required"
    assert (other.value.code, other.value.details["requested_approvers"]) == (
        "not_an_approver",
        ["ana", "bo", "cid"],
    )
    assert "ana, bo, cid" in str(other.value)
    assert before == []
    assert (last["status"], last["approvals_left"]) == ("approved", 0)
    assert ran == [("acme", 5)]
    assert done.by == "ana and bo"


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_a_call_that_waits_goes_on_with_the_last_approval(
    decisions: HttpDecisions, wire: Any, ran: list[Any], tokens: dict[str, str], is_async: bool
) -> None:
    def decide() -> None:
        with Gate(decisions=decisions):
            while not (found := approvals.pending(channel="waits")):
                pass
            for name in ("ana", "bo"):
                approvals.approve(found[0]["approval_id"], token=tokens[name])

    deciding = threading.Thread(target=decide)
    deciding.start()
    gate = gate_of(decisions, wire, wait_s=60, channel="waits", **TWO)
    if is_async:
        result = asyncio.run(gate.acall("wire", {"to": "acme"})).for_model()
    else:
        result = gate.call("wire", {"to": "acme"}).for_model()
    deciding.join()

    assert result == "wired 5"
    assert ran == [("acme", 5)]


def test_what_waited_in_vain_says_how_many_are_missing(
    decisions: HttpDecisions, wire: Any, ran: list[Any], tokens: dict[str, str]
) -> None:
    with gate_of(decisions, wire, channel="half", **TWO) as gate:
        asked = gate.call("wire", {"to": "acme"}).for_model()
        approvals.approve(asked["approval_id"], token=tokens["cid"])
        stands = approvals.wait_decision(asked["approval_id"], timeout_s=0.2)
        awaited = asyncio.run(approvals.await_decision(asked["approval_id"], timeout_s=0.2))

    assert [one["status"] for one in (stands, awaited)] == ["awaiting", "awaiting"]
    assert stands["approved_by"][0]["name"] == "cid"
    assert ran == []


def test_more_than_there_are_approvers_is_refused_before_anybody_is_asked(
    decisions: HttpDecisions, store: Desk, wire: Any
) -> None:
    for place in (decisions, store.decisions):
        gate = gate_of(place, wire, approvers=["ana", "ANA"], approvals_required=2)
        with gate, pytest.raises(InvalidArguments, match="2 approvals are required of 1 approvers"):
            gate.call("wire", {"to": "acme"})


def test_an_embedded_store_counts_names_that_are_claimed(
    store: Desk, wire: Any, ran: list[Any]
) -> None:
    with gate_of(store.decisions, wire, **TWO) as gate:
        identity = gate.call("wire", {"to": "acme"}).for_model()["approval_id"]
        approvals.approve(identity, by="ana")
        with pytest.raises(DecisionConflict) as again:
            approvals.approve(identity, by=" Ana ")
        with pytest.raises(DecisionRefused) as other:
            approvals.approve(identity, by="eve")
        granted = approvals.approve(identity, by="Bo")
        approvals.run(identity)

    assert (again.value.code, other.value.code) == ("another_approver_required", "not_an_approver")
    assert [one["method"] for one in granted["approved_by"]] == ["claimed", "claimed"]
    assert ran == [("acme", 5)]


def test_in_a_chat_two_people_say_yes(
    decisions: HttpDecisions, wire: Any, ran: list[Any], tokens: dict[str, str]
) -> None:
    said: list[str] = []
    channel = TextChannel("two-in-a-chat", said.append, decide_token=tokens.get)
    talk = ChatGate(
        channel,
        agent=lambda message: str(talk.gate.call("wire", {"to": message}).for_model()["message"]),
        tools=[wire],
        decisions=decisions,
        **TWO,
    )

    talk.handle("acme", by="ana")
    talk.handle("yes", by="ana")
    talk.handle("yes", by="ana")
    before, told = list(ran), list(said)
    talk.handle("yes", by="bo")

    assert "0 of 2 approved; 2 more needed" in told[0]
    assert "was not run yet: 1 of 2 approved, by ana; 1 more needed" in told[1]
    assert "counts once" in told[2]
    assert before == []
    assert ran == [("acme", 5)]
    assert said[-1].startswith("Done!")


# ---- every decision, with the token of a person and never with the program's own


def as_is(decide: Callable[[], Any]) -> Any:
    return decide()


def in_a_loop(decide: Callable[[], Any]) -> Any:
    async def main() -> Any:
        return await asyncio.to_thread(decide)

    return asyncio.run(main())


VERBS: dict[str, Callable[[str, str | None], Any]] = {
    "approve": lambda one, token: approvals.approve(one, token=token),
    "approve as edited": lambda one, token: approvals.approve(
        one, token=token, arguments={"to": "acme", "sum": 4}
    ),
    "reject": lambda one, token: approvals.reject(one, reason="no", token=token),
    "revise": lambda one, token: approvals.revise(one, "less", token=token),
    "settle": lambda one, token: approvals.resolve_outcome(
        one, executed=False, note="looked", token=token
    ),
    "undo": lambda one, token: approvals.undo(one, token=token),
}


@pytest.mark.parametrize("way", [as_is, in_a_loop])
@pytest.mark.parametrize("verb", VERBS)
def test_a_decision_takes_the_token_that_is_given_with_it_alone(
    server: Serving, tmp_path: Path, tokens: dict[str, str], verb: str,
    way: Callable[[Callable[[], Any]], Any], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    # Of init(token=) and of the environment, both with every scope: neither decides.
    own = add_token(server.data, "program-of-all", *Scope)
    monkeypatch.setenv("HANSARD_TOKEN", own)
    settings = load_settings({"endpoint": server.http, "data": tmp_path, "token": own}, {})
    asking = HttpDecisions(load_settings({"endpoint": server.http, "data": tmp_path}, {}))
    decisions = HttpDecisions(settings)

    @hansard.tool(effect="write", undo=lambda a, r: (unwire, {}))
    def wire(to: str, sum: int = 5) -> str:
        if verb == "settle":
            raise TimeoutError
        return "wired"

    @hansard.tool(effect="write")
    def unwire() -> None: ...

    with Gate(tools=[wire, unwire], decisions=asking) as gate:
        identity = gate.call("wire", {"to": "acme"}).for_model()["approval_id"]
        if verb in ("settle", "undo"):
            approvals.approve(identity, token=tokens["eve"])
            try:
                approvals.run(identity)
            except TimeoutError:
                assert verb == "settle"
    with Gate(tools=[wire, unwire], decisions=decisions):
        with pytest.raises(DecisionRefused) as refused:
            way(lambda: VERBS[verb](identity, None))
        way(lambda: VERBS[verb](identity, tokens["eve"]))
    decisions.close()
    asking.close()

    assert refused.value.code == "credentials_required"
    events = json.loads(server.get(f"/v1/events?approval={identity}&limit=50"))["items"]
    if verb == "undo":
        [undoing] = [
            one for one in json.loads(server.get("/v1/approvals?limit=500"))["items"]
            if one["undo_of"] == identity
        ]  # fmt: skip
        events = json.loads(server.get(f"/v1/events?approval={undoing['approval_id']}"))["items"]
    decided = [one for one in events if one["actor"] == "me"]
    assert {one["body"].get("principal") for one in decided} == {"eve"}
    assert {one["body"]["auth_method"] for one in decided} == {"token"}


MEMORY = """
import asyncio, sys
import hansard
from hansard import memory
from hansard.errors import MemoryRefused

hansard.init(endpoint=sys.argv[1], token=sys.argv[2])
way = asyncio.run if sys.argv[4] == "async" else None


def end(**told):
    told |= {"reason": "it is not so", "by": "clerk"}
    if way is None:
        return memory.invalidate(kept, **told)
    return way(asyncio.to_thread(memory.invalidate, kept, **told))


kept = memory.write("Totals are rounded.", writer="app", type="constraint", subject="rounding",
                    project="books-" + sys.argv[4])
try:
    end()
except MemoryRefused as refused:
    print(refused.code)
print(end(token=sys.argv[3]).state)
"""


@pytest.mark.parametrize("way", ["plain", "async"])
def test_memory_ends_with_the_token_of_a_person_alone(
    server: Serving, tokens: dict[str, str], tmp_path: Path, way: str
) -> None:
    own = add_token(server.data, f"program-of-memory-{way}", *Scope)

    told = subprocess.run(
        [sys.executable, "-c", MEMORY, server.http, own, tokens["ana"], way],
        capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "HANSARD_TOKEN": own, "HANSARD_DATA": str(tmp_path)},
    )  # fmt: skip

    assert told.stdout.split() == ["credentials_required", "invalidated"], told.stderr
    listed = json.loads(server.get(f"/v1/memory?project=books-{way}&state=all"))["items"]
    assert [(one["ended"]["by"], one["ended"]["method"]) for one in listed] == [("ana", "token")]


# ---- by the rules of the program


def test_a_rule_of_the_gate_requires_several_people(store: Desk, wire: Any, ran: list[Any]) -> None:
    rule = {
        "id": "large", "name": "n", "effect": "require_approval", "applies_to": {"action": "do"},
        "metadata": {"approvals_required": 2, "approvers": ["ana", "bo"]},
    }  # fmt: skip

    with gate_of(store.decisions, wire, policy=[rule]) as gate:
        asked = gate.call("wire", {"to": "acme"}).for_model()
        for name in ("ana", "bo"):
            assert ran == []
            approvals.approve(asked["approval_id"], by=name)
        approvals.run(asked["approval_id"])
    with (
        gate_of(store.decisions, wire, policy=[rule], approvers=["eve"]) as gate,
        pytest.raises(InvalidArguments, match="none of the gate's approvers"),
    ):
        gate.call("wire", {"to": "acme"})

    assert asked["approvals"] == "0 of 2 approved; 2 more needed"
    assert ran == [("acme", 5)]
