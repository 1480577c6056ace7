"""Tools that write: they ask, and run exactly what was approved, once."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import hansard
from hansard import approvals
from hansard.errors import (
    DecisionConflict,
    DecisionRefused,
    InvalidArguments,
    NotApproved,
    NotDecoratable,
    PolicyDenied,
)
from tests.instrumentation.gating.gates import Desk, restarted, state_of

SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3


class Crm:
    """What tools change."""

    def __init__(self) -> None:
        self.contacts: list[dict[str, Any]] = []

    @hansard.tool(effect="write", describe="Create contact {name}, {email}")
    def create_contact(self, name: str, email: str | None = None) -> int:
        self.contacts.append({"name": name, "email": email})
        return len(self.contacts)

    @hansard.tool(effect="write", name="acreate_contact")
    async def acreate(self, name: str) -> int:
        await asyncio.sleep(0)
        self.contacts.append({"name": name})
        return len(self.contacts)

    @hansard.tool(effect="write")
    def fail(self, name: str) -> None:
        raise ValueError(f"no room for {name}")

    @hansard.tool(effect="write")
    def delete_contact(self, number: int) -> None:
        self.contacts.pop(number - 1)

    @hansard.tool(
        effect="write",
        name="add_contact",
        undo=lambda arguments, result: ("delete_contact", {"number": result}),
    )
    def add(self, name: str) -> int:
        self.contacts.append({"name": name})
        return len(self.contacts)


MARIA = {"name": "Maria", "email": "maria@acme.com"}


@pytest.mark.covers("CG-01", "CG-06", "CG-07")
def test_a_write_is_saved_and_answered_and_not_run(store: Desk) -> None:
    crm = Crm()

    answer = store.gate(crm.create_contact).call("create_contact", MARIA).for_model()

    [waiting] = store.store.approvals()
    assert answer == {
        "status": "pending_confirmation",
        "message": "This action requires confirmation: Create contact Maria, maria@acme.com",
        "approval_id": waiting.approval_id,
    }
    assert crm.contacts == []
    assert store.events() == ["action.created create_contact"]


@pytest.mark.covers("CG-09", "CG-30")
def test_what_was_approved_runs_as_it_was_shown_and_once(store: Desk) -> None:
    crm = Crm()
    gate = store.gate()
    with gate:
        identity = store.approve(crm.create_contact("Maria", email="maria@acme.com"))
        done = approvals.run(identity)

        assert (done.result, done.by, done.changes) == (1, "ana", {})
        with pytest.raises(DecisionConflict) as again:
            approvals.run(identity)

    assert again.value.code == "already_claimed"
    assert crm.contacts == [MARIA]
    assert store.events() == [
        "action.created create_contact",
        "action.approved create_contact",
        "action.claimed create_contact",
        "action.executed create_contact",
    ]


@pytest.mark.parametrize("decide", ["nobody", "reject", "revise", "expire"])
def test_nothing_but_an_approval_runs(store: Desk, decide: str) -> None:
    crm = Crm()
    gate = store.gate(crm.create_contact)
    identity = gate.call("create_contact", MARIA).for_model()["approval_id"]
    if decide == "reject":
        store.store.reject(identity, by="ana", reason="not now")
    elif decide == "revise":
        store.store.revise(identity, by="ana", note="another address")
    elif decide == "expire":
        store.pass_time(3601)

    with pytest.raises(NotApproved):
        gate.run(identity)

    assert crm.contacts == []


def test_many_who_run_the_same_approval_run_it_once(store: Desk) -> None:
    crm = Crm()
    gate = store.gate(crm.create_contact)
    identity = store.approve(gate.call("create_contact", MARIA))
    together = threading.Barrier(8)

    def run(_: int) -> str:
        together.wait(10)
        try:
            return str(gate.run(identity).result)
        except DecisionConflict as error:
            return error.code

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(run, range(8)))

    assert sorted(results) == ["1", *["already_claimed"] * 7]
    assert crm.contacts == [MARIA]


def test_an_approval_is_of_one_call_and_not_of_its_tool(store: Desk) -> None:
    crm = Crm()
    gate = store.gate(crm.create_contact)
    store.approve(gate.call("create_contact", MARIA))

    second = gate.call("create_contact", {"name": "Mallory"}).for_model()
    same = gate.call("create_contact", MARIA).for_model()

    assert second["status"] == same["status"] == "pending_confirmation"
    for answer in (second, same):  # a retried step asks again, and a past decision is no authority
        with pytest.raises(NotApproved):
            gate.run(answer["approval_id"])
    assert crm.contacts == []


def test_arguments_are_checked_before_anybody_is_asked(store: Desk) -> None:
    crm = Crm()
    gate = store.gate(crm.create_contact)

    for arguments in ({}, {"nam": "x"}, {"name": "x", "extra": 1}, {"name": float("nan")}, None):
        with pytest.raises(InvalidArguments):
            gate.call("create_contact", arguments)

    assert store.store.approvals() == []


@pytest.mark.covers("CG-08")
def test_an_argument_that_the_description_leaves_out_is_shown_all_the_same(store: Desk) -> None:
    @hansard.tool(effect="write", describe="Send a mail to {to}")
    def send(to: str, bcc: str = "") -> None: ...

    answer = (
        store.gate(send).call("send", {"to": "ana@acme.com", "bcc": "mallory@evil.org"}).for_model()
    )

    [waiting] = store.store.approvals()
    assert "mallory@evil.org" in answer["message"]
    assert [(one.name, one.value, one.flag) for one in waiting.fields] == [
        ("to", "ana@acme.com", None),
        ("bcc", "mallory@evil.org", "hidden"),
    ]


# ---- edits


def test_edited_arguments_run_as_edited_and_the_model_is_told(store: Desk) -> None:
    crm = Crm()
    gate = store.gate(crm.create_contact)
    edited = {"name": "Maria", "email": "maria.garcia@acme.com"}
    identity = store.approve(gate.call("create_contact", MARIA), arguments=edited)

    done = gate.run(identity)

    assert crm.contacts == [edited]
    change = {"proposed": "maria@acme.com", "run": "maria.garcia@acme.com"}
    assert (done.changes, done.by) == ({"email": change}, "ana")


def test_an_edit_never_changes_the_tool(store: Desk) -> None:
    crm = Crm()
    gate = store.gate(crm.create_contact, crm.delete_contact)
    answer = gate.call("create_contact", MARIA).for_model()

    with gate:
        gate.decisions.decide(
            answer["approval_id"],
            "approve",
            {"by": "ana", "tool": "delete_contact", "arguments": {**MARIA, "name": "Ann"}},
        )

    assert gate.run(answer["approval_id"]).tool == "create_contact"
    assert crm.contacts == [{**MARIA, "name": "Ann"}]


def test_an_edit_that_does_not_fit_the_tool_does_not_run(store: Desk) -> None:
    crm = Crm()
    gate = store.gate(crm.create_contact)
    identity = store.approve(gate.call("create_contact", MARIA), arguments={"nobody": 1})

    with pytest.raises(InvalidArguments):
        gate.run(identity)

    assert state_of(gate, identity) == ("approved", "none")


def test_an_edit_passes_the_policy_again(store: Desk) -> None:
    crm = Crm()
    ours = {"in": ["maria@acme.com"]}
    rule = {
        "id": "ours",
        "effect": "deny",
        "applies_to": {"action": "do"},
        "conditions": {"not": {"arguments.email": ours}},
    }
    gate = store.gate(crm.create_contact, policy=rule)
    answer = gate.call("create_contact", MARIA).for_model()
    identity = store.approve(answer, arguments={"name": "Maria", "email": "maria@evil.org"})

    with pytest.raises(PolicyDenied):
        gate.run(identity)

    assert (crm.contacts, state_of(gate, identity)) == ([], ("approved", "none"))
    assert store.events()[-1] == "policy.blocked create_contact"


# ---- restarts and secrets


@pytest.mark.covers("CG-18")
def test_after_a_restart_what_was_approved_runs(store: Desk) -> None:
    crm = Crm()
    gate = store.gate(crm.create_contact, channel="here")
    identity = store.approve(gate.call("create_contact", MARIA))

    with restarted(gate):
        [done] = approvals.run_all_approved(channel="here")
        assert approvals.run_all_approved(channel="here") == []

    assert (done.approval_id, crm.contacts) == (identity, [MARIA])


@pytest.mark.covers("CG-17")
@pytest.mark.parametrize("ran", [True, False])
def test_a_call_that_somebody_settled_is_not_run_again(store: Desk, ran: bool) -> None:
    crm = Crm()
    gate = store.gate(crm.create_contact)
    identity = store.approve(gate.call("create_contact", MARIA))
    store.store.claim(identity, lease_s=1)
    store.pass_time(60)
    store.store.recover()

    with gate:
        settled = approvals.resolve_outcome(
            identity, executed=ran, note="I looked in the CRM", by="ana"
        )

        with pytest.raises(DecisionConflict) as caught:
            approvals.run(identity)
        assert approvals.run_all_approved() == []

    assert settled["execution"]["settled"]["outcome"] == ("ran" if ran else "did_not_run")
    assert caught.value.code == ("already_claimed" if ran else "outcome_known")
    assert crm.contacts == []


@pytest.mark.covers("CG-09")
def test_a_record_that_was_tampered_with_does_not_run(store: Desk) -> None:
    crm = Crm()
    gate = store.gate(crm.create_contact)
    identity = store.approve(gate.call("create_contact", MARIA))
    connection = store.store._connections.get()
    connection.execute("UPDATE approval SET arguments = replace(arguments, 'Maria', 'Mallory')")

    with pytest.raises(DecisionConflict) as caught:
        restarted(gate).run(identity)

    assert (caught.value.code, crm.contacts) == ("arguments_changed", [])


@pytest.mark.covers("CG-25")
def test_a_secret_runs_from_memory_alone_and_is_never_stored(store: Desk) -> None:
    used: list[str] = []

    @hansard.tool(effect="write", describe="Log in with {token}")
    def log_in(token: str) -> None:
        used.append(token)

    gate = store.gate(log_in)
    first, second = (store.approve(gate.call("log_in", {"token": SECRET})) for _ in range(2))

    with pytest.raises(DecisionConflict) as caught:
        restarted(gate).run(first)
    gate.run(second)

    assert (caught.value.code, used) == ("must_repropose", [SECRET])
    files = [one for one in store.store.folder.path.rglob("*") if one.is_file()]
    assert files
    assert not [one for one in files if SECRET.encode() in one.read_bytes()]


# ---- how it goes on


def test_a_tool_that_fails_says_so_and_is_not_run_again(store: Desk) -> None:
    crm = Crm()
    gate = store.gate(crm.fail)
    identity = store.approve(gate.call("fail", {"name": "Maria"}))

    with pytest.raises(ValueError, match="no room for Maria"):
        gate.run(identity)
    with pytest.raises(DecisionConflict):
        gate.run(identity)

    assert state_of(gate, identity) == ("approved", "failed")


def test_what_was_sent_back_is_proposed_again_as_the_same_action(store: Desk) -> None:
    crm = Crm()
    gate = store.gate(crm.create_contact)
    identity = gate.call("create_contact", MARIA).for_model()["approval_id"]
    store.store.revise(identity, by="ana", note="with her work address")
    better = {"name": "Maria", "email": "garcia@acme.com"}

    with gate:
        answer = approvals.repropose(identity, better).for_model()
    store.approve(answer, revision=2)

    assert answer["approval_id"] == identity
    assert gate.run(identity).changes == {}
    assert crm.contacts == [better]


@pytest.mark.covers("CG-28")
def test_what_ran_is_undone_through_the_same_gate(store: Desk) -> None:
    crm = Crm()
    with store.gate(crm.add, crm.delete_contact) as gate:
        identity = store.approve(gate.call("add_contact", {"name": "Maria"}))
        gate.run(identity)

        answer = approvals.undo(identity).for_model()
        assert crm.contacts == [{"name": "Maria"}]
        back = store.approve(answer)
        gate.run(back)

        assert crm.contacts == []
        assert approvals.get(back)["undo_of"] == identity
        for again in (identity, back):
            with pytest.raises(DecisionConflict) as caught:
                approvals.undo(again)
            assert caught.value.code == "not_undoable"


# ---- waiting


@pytest.fixture
def decided_soon(store: Desk) -> Iterator[list[Any]]:
    """Do to whatever waits what the list says, from another thread."""
    plan: list[Any] = []
    is_over = threading.Event()

    def decide() -> None:
        while not is_over.wait(0.005):
            for one in store.store.approvals():
                if plan and one.status == "awaiting":
                    plan.pop(0)(one.approval_id)

    thread = threading.Thread(target=decide)
    thread.start()
    yield plan
    is_over.set()
    thread.join()


def test_a_call_waits_for_its_decision_and_returns_the_tools_result(
    store: Desk, decided_soon: list[Any]
) -> None:
    crm = Crm()
    decided_soon.append(lambda identity: store.store.approve(identity, by="ana"))

    assert (
        store.gate(crm.create_contact, wait_s=math.inf).call("create_contact", MARIA).for_model()
        == 1
    )
    assert crm.contacts == [MARIA]


def test_a_waiting_call_is_told_what_the_approver_changed(
    store: Desk, decided_soon: list[Any]
) -> None:
    crm = Crm()
    edited = {"name": "Ann", "email": "ann@acme.com"}
    decided_soon.append(lambda one: store.store.approve(one, by="ana", arguments=edited))

    answer = (
        store.gate(crm.create_contact, wait_s=math.inf).call("create_contact", MARIA).for_model()
    )

    assert (answer["status"], answer["changed_by"], answer["result"]) == ("executed", "ana", 1)
    assert answer["changed"]["name"] == {"proposed": "Maria", "run": "Ann"}
    assert "Approved by ana with changes" in answer["message"]


@pytest.mark.parametrize(
    ("verb", "kind", "status"),
    [
        ("reject", hansard.Rejected, "rejected"),
        ("revise", hansard.Revised, "revised"),
        ("expire", hansard.Expired, "expired"),
    ],
)
def test_a_call_that_waited_returns_the_state_of_its_approval(
    store: Desk, verb: str, kind: type, status: str, decided_soon: list[Any]
) -> None:
    @hansard.tool(effect="write", describe="Send to {to}")
    def send(to: str) -> None:
        raise AssertionError("it was not approved")

    decide = {
        "reject": lambda one: store.store.reject(one, by="ana", reason="not now"),
        "revise": lambda one: store.store.revise(one, by="ana", note="to bob"),
        "expire": lambda one: store.pass_time(3_601),
    }
    decided_soon.append(decide[verb])

    result = store.gate(send, wait_s=math.inf).call("send", {"to": "ann"})

    assert type(result) is kind
    assert result.for_model()["status"] == status
    assert result.for_model()["message"].endswith("Send to ann")


@pytest.mark.parametrize("verb", ["reject", "revise"])
def test_a_waiting_call_that_is_not_approved_says_why(
    store: Desk, decided_soon: list[Any], verb: str
) -> None:
    crm = Crm()
    if verb == "reject":
        decided_soon.append(lambda one: store.store.reject(one, by="ana", reason="a duplicate"))
    else:
        decided_soon.append(lambda one: store.store.revise(one, by="ana", note="a duplicate"))

    answer = (
        store.gate(crm.create_contact, wait_s=math.inf).call("create_contact", MARIA).for_model()
    )

    assert answer["status"] == {"reject": "rejected", "revise": "revised"}[verb]
    assert "a duplicate" in answer["message"]
    assert "not run" in answer["message"]
    assert crm.contacts == []


def test_a_timeout_and_an_expiry_say_so(store: Desk, decided_soon: list[Any]) -> None:
    crm = Crm()
    soon = store.gate(crm.create_contact, wait_s=0.05).call("create_contact", MARIA).for_model()
    with store.gate(crm.create_contact, wait_s=math.inf, expires_in_s=60) as patient:
        decided_soon += [lambda _: None, lambda _: store.pass_time(61)]
        late = patient.call("create_contact", MARIA).for_model()

    assert soon["status"] == "pending_confirmation"
    assert "Nobody decided within 0.05 s; still waiting" in soon["message"]
    assert late["status"] == "expired"
    assert "Nobody decided in time, so it expired and was not run" in late["message"]
    assert crm.contacts == []


def test_an_async_tool_waits_without_holding_up_the_event_loop(
    store: Desk, decided_soon: list[Any]
) -> None:
    crm = Crm()

    async def approve_from_the_same_loop() -> None:
        decided_soon.append(lambda identity: store.store.approve(identity, by="ana"))

    async def both() -> Any:
        async with store.gate(wait_s=math.inf):
            return (await asyncio.gather(crm.acreate("Maria"), approve_from_the_same_loop()))[0]

    assert asyncio.run(both()) == 1
    assert len(crm.contacts) == 1


# ---- what can be a tool


def test_functions_methods_and_class_methods_are_gated(store: Desk) -> None:
    ran: list[Any] = []

    class Owner:
        @hansard.tool(effect="write")
        @staticmethod
        def still(value: int) -> None:
            ran.append(value)

        @hansard.tool(effect="write", name="of_class")
        @classmethod
        def of_class(cls, value: int) -> None:
            ran.append((cls, value))

    @hansard.tool(effect="write", name="plain")
    def plain(value: int, /, *more: int, last: int = 0, **rest: int) -> None:
        ran.append((value, more, last, rest))

    gate = store.gate()
    with gate:
        answers = [Owner.still(1), Owner().of_class(2), plain(1, 2, 3, other=4)]
        assert ran == []
        for answer in answers:
            gate.run(store.approve(answer))

    assert ran == [1, (Owner, 2), (1, (2, 3), 0, {"other": 4})]


def test_generators_are_refused() -> None:
    with pytest.raises(NotDecoratable, match="a generator runs in pieces"):

        @hansard.tool(effect="write")
        def rows() -> Iterator[int]:
            yield 1


def test_options_of_a_gate_need_an_effect() -> None:
    with pytest.raises(TypeError, match="effect="):
        hansard.tool(describe="x")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="'read' or 'write'"):
        hansard.tool(effect="delete")(lambda: None)  # type: ignore[call-overload]


@pytest.mark.parametrize("verb", ["approve", "reject", "revise"])
@pytest.mark.parametrize("name", ["clerk", "Clerk", "ＣＬＥＲＫ", "сlerk", "c1erk", "cler\u200bk"])
def test_an_agent_cannot_decide_about_its_own_action_by_its_own_name(
    store: Desk, verb: str, name: str
) -> None:
    gate = store.gate(hansard.tool(effect="write", name="send")(lambda to: to), agent="clerk")
    note = {"note": "x"} if verb == "revise" else {}

    with gate:
        identity = gate.call("send", {"to": "Maria"}).for_model()["approval_id"]
        with pytest.raises(DecisionRefused, match="requested this action") as refused:
            getattr(approvals, verb)(identity, by=name, **note)
        standing = approvals.get(identity)["status"]
        approvals.approve(identity, by="ana")

    assert refused.value.code == "self_approval"
    assert standing == "awaiting"
    assert gate.run(identity).result == "Maria"


def test_a_name_that_is_read_as_an_approver_s_is_not_that_approver_s(store: Desk) -> None:
    gate = store.gate(
        hansard.tool(effect="write", name="send")(lambda to: to), agent="clerk", approvers=["ana"]
    )

    with gate:
        identity = gate.call("send", {"to": "Maria"}).for_model()["approval_id"]
        with pytest.raises(
            DecisionRefused, match="read like 'ana', and is another name"
        ) as refused:
            approvals.approve(identity, by="аna")
        approvals.approve(identity, by="Ana")

    assert refused.value.code == "not_an_approver"
    assert gate.run(identity).result == "Maria"


def test_a_boolean_is_no_number_of_people_or_seconds(store: Desk) -> None:
    send = hansard.tool(effect="write", name="send")(lambda to: to)

    required = pytest.raises(InvalidArguments, match="can be required")
    with store.gate(send, approvals_required=True) as gate, required:
        gate.call("send", {"to": "Maria"})
    with pytest.raises(TypeError, match="expires_in_s is a number of seconds"):
        store.gate(send, expires_in_s=True)


def test_a_boolean_is_no_draft(store: Desk) -> None:
    gate = store.gate(hansard.tool(effect="write", name="send")(lambda to: to))

    with gate:
        identity = gate.call("send", {"to": "Maria"}).for_model()["approval_id"]
        with pytest.raises(InvalidArguments, match="revision"):
            approvals.approve(identity, by="ana", revision=True)
        assert approvals.get(identity)["status"] == "awaiting"
