"""Hansard's own names: nobody is given them; that Hansard decided is known by the method."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

import hansard
from hansard import approvals, memory
from hansard.errors import DecisionRefused, InvalidArguments, MemoryRefused
from hansard_store.approvals.records import Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.database.connections import open_for_ingest
from hansard_web.app.config import WebSettings
from tests.journeys.processes import hansard as run_command
from tests.signing import add_token, bearer
from tests.web.approvals import read
from tests.web.conftest import MakeClient
from tests.web.principals.conftest import folder_of

OWN = ("hansard", "system", "Hansard", "h\u0430nsard", "hansard\u200b", "systern", "\uff48ansard")
WIRE: dict[str, Any] = {"tool": "wire_money", "arguments": {"to": "acme"}, "agent": "bot"}
WHOSE = {"memory_type": "fact", "subject": "api", "namespace": {"project": "p"}, "writer": "app"}
INVALID = {"memory_id": "0" * 32, "reason": "wrong"}


@pytest.fixture
def anyone(make_client: MakeClient) -> TestClient:
    client = make_client(WebSettings(decide="anyone"))
    client.auth = None
    return client


def propose(client: TestClient, **more: Any) -> str:
    answer = client.post("/v1/approvals", json={**WIRE, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["approval_id"])


@pytest.mark.parametrize("name", OWN)
def test_a_program_cannot_decide_in_hansards_name(
    name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANSARD_DATA", str(tmp_path))
    hansard.init(embedded=True)
    try:

        @hansard.tool(effect="write")
        def wire(to: str) -> str:
            return to

        asked = wire("acme")["approval_id"]
        for decide in (approvals.approve, approvals.reject):
            with pytest.raises(DecisionRefused) as refused:
                decide(asked, by=name)
            assert refused.value.code == "name_reserved"
        assert approvals.get(asked)["status"] == "awaiting"
        with pytest.raises(MemoryRefused):
            memory.write("80", writer="app", type="fact", subject="port", project="p", by=name)
        with (
            hansard.gate(tools=[wire], agent=name) as gate,
            pytest.raises(InvalidArguments, match=r"agent|Hansard"),
        ):
            gate.call("wire", {"to": "acme"})
    finally:
        hansard.shutdown()


@pytest.mark.parametrize("verb", ["approve", "reject", "revise"])
@pytest.mark.parametrize("name", OWN)
def test_no_request_decides_in_hansards_name(anyone: TestClient, verb: str, name: str) -> None:
    approval_id = propose(anyone)
    body = {"by": name, **({"note": "x"} if verb == "revise" else {})}
    ana = bearer(add_token(folder_of(anyone), "ana"))

    refused = [
        anyone.post(f"/v1/approvals/{approval_id}/{verb}", json=body, headers=headers)
        for headers in ({}, ana)
    ]

    assert [(one.status_code, one.json()["error"]["code"]) for one in refused] == [
        (400, "name_reserved")
    ] * 2
    assert anyone.get(f"/v1/approvals/{approval_id}").json()["status"] == "awaiting"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/approvals", {**WIRE, "agent": "hansard"}),
        ("/v1/approvals", {**WIRE, "tool": "system"}),
        ("/v1/approvals", {**WIRE, "approvers": ["ana", "System"]}),
        ("/v1/memory/write", {**WHOSE, "content": "80", "by": "hansard"}),
        ("/v1/memory/write", {**WHOSE, "content": "80", "agent": "system"}),
        ("/v1/memory/purge", {**INVALID, "by": "hansard"}),
        ("/v1/memory/invalidate", {**INVALID, "by": "hansard"}),
        ("/v1/memory/accept", {"memory_id": "0" * 32, "by": "hansard"}),
        ("/v1/events", {"type": "tool.called", "tool": "hansard"}),
        ("/v1/events", {"type": "tool.returned", "tool": "system"}),
        ("/v1/events", {"type": "tool.returned", "tool": "systern"}),
        ("/v1/events", {"type": "policy.blocked", "tool": "hansard"}),
        ("/v1/events", {"type": "message.inbound", "channel": "c", "by": "hansard"}),
        ("/v1/events", {"type": "failure", "tool": "pay", "agent": "hansard"}),
    ],
)
def test_no_request_gives_hansards_name(
    anyone: TestClient, path: str, body: dict[str, Any]
) -> None:
    refused = anyone.post(path, json=body)

    assert refused.status_code == 400, refused.text


@pytest.mark.slow
def test_a_command_decides_in_the_name_of_its_user_and_never_in_hansards(
    anyone: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval_id = propose(anyone)
    data = str(folder_of(anyone).path)

    refused = run_command("approvals", "approve", approval_id, "--by", "hansard", HANSARD_DATA=data)
    of_user = run_command(
        "approvals", "approve", approval_id, "--json", HANSARD_DATA=data, LOGNAME="hansard"
    )

    assert refused.returncode in (1, 2)
    assert "Hansard's own" in refused.stderr
    told = json.loads(of_user.stdout)
    assert (told["decided_by"], told["decided_method"]) == ("user-hansard", "claimed")


def test_hansards_own_decision_is_known_by_its_method(anyone: TestClient) -> None:
    """What an earlier version took in Hansard's name stays what it was: claimed."""
    approval_id = propose(anyone)
    anyone.post(f"/v1/approvals/{approval_id}/approve", json={"by": "kim"})
    connection = open_for_ingest(folder_of(anyone))
    connection.execute("UPDATE approval SET decided_by = 'hansard'")
    connection.close()

    found = anyone.get(f"/v1/approvals/{approval_id}").json()
    page = read(anyone, f"/approvals/{approval_id}")

    assert (found["decided_by"], found["decided_method"]) == ("hansard", "claimed")
    assert "Approved by hansard (claimed)" in page.text.replace("approved", "Approved")


def test_what_time_decides_has_no_method(anyone: TestClient) -> None:
    folder, clock = folder_of(anyone), [1_800_000_000_000_000_000]
    with ApprovalService(folder, clock=lambda: clock[0]) as store:
        made = store.propose(Proposal("wire", {}, lifetime_ns=1_000_000_000)).approval
        clock[0] += 2_000_000_000
        store.expire_due()

    found = anyone.get(f"/v1/approvals/{made.approval_id}").json()

    assert (found["status"], found["decided_by"], found["decided_method"]) == (
        "expired", "hansard", None,
    )  # fmt: skip


def test_the_log_of_an_approvals_page_marks_a_claimed_name(anyone: TestClient) -> None:
    approval_id = propose(anyone)
    anyone.post(f"/v1/approvals/{approval_id}/approve", json={"by": "ana"})

    page = read(anyone, f"/approvals/{approval_id}")

    rows = [row.text for row in page.all("tr") if "action.approved" in row.text]
    assert len(rows) == 1
    assert "ana (claimed)" in " ".join(rows[0].split())
