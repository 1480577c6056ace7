"""A server on which anyone decides: each decision is kept and shown as what it is."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_store.principals.model import Scope
from hansard_store.verification.integrity import verify_store
from hansard_web.app.config import WebSettings
from tests.journeys.processes import hansard as run_command
from tests.signing import add_token, bearer, session_of
from tests.store.task_maker import TaskMaker
from tests.web.approvals import read, send
from tests.web.conftest import MakeClient
from tests.web.makers import RunMaker
from tests.web.principals.conftest import folder_of

WIRE: dict[str, Any] = {"tool": "wire_money", "arguments": {"to": "acme"}, "agent": "bot"}
NOBODY = "somebody without a credential"


@pytest.fixture
def anyone(make_client: MakeClient) -> TestClient:
    client = make_client(WebSettings(decide="anyone"))
    client.auth = None
    return client


def propose(client: TestClient, **more: Any) -> str:
    answer = client.post("/v1/approvals", json={**WIRE, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["approval_id"])


def last_body(client: TestClient, approval_id: str) -> dict[str, Any]:
    found = client.get("/v1/events", params={"approval": approval_id}).json()["items"]
    body: dict[str, Any] = found[0]["body"]
    return body


@pytest.mark.parametrize(
    ("verb", "past"), [("approve", "Approved"), ("reject", "Rejected"), ("revise", "Sent back")]
)
def test_a_decision_is_that_of_nobody_of_a_claimed_name_or_of_a_token(
    anyone: TestClient, verb: str, past: str
) -> None:
    note = {"note": "x"} if verb == "revise" else {}
    secret = bearer(add_token(folder_of(anyone), "ana"))
    said = {}
    for name, body, headers in (
        ("nobody", {}, {}), ("kim", {"by": "kim"}, {}), ("ana", {}, secret),
    ):  # fmt: skip
        approval_id = propose(anyone)
        path = f"/v1/approvals/{approval_id}/{verb}"
        found = anyone.post(path, json={**note, **body}, headers=headers).json()
        event = last_body(anyone, approval_id)
        page = read(anyone, f"/approvals/{approval_id}")
        said[name] = (
            found["decided_by"], found["decided_method"], event.get("principal"),
            event["auth_method"], page.text.count(f"{past} by {NOBODY}"),
            page.text.count(f"{past} by kim (claimed)"), page.text.count(f"{past} by ana"),
        )  # fmt: skip

    assert said == {
        "nobody": ("me", "none", None, "none", 1, 0, 0),
        "kim": ("kim", "claimed", None, "claimed", 0, 1, 0),
        "ana": ("ana", "token", "ana", "token", 0, 0, 1),
    }
    assert verify_store(folder_of(anyone)).findings == []


@pytest.mark.parametrize("verb", ["approve", "reject", "revise"])
def test_a_wrong_token_decides_nothing_where_a_right_one_is_known(
    anyone: TestClient, verb: str
) -> None:
    """Without any token of its own a server ignores what a program has set for another one."""
    wrong = bearer("hnt_" + "0" * 40)
    body = {"note": "x"} if verb == "revise" else {}
    ignored, refused = propose(anyone), propose(anyone)

    before = anyone.post(f"/v1/approvals/{ignored}/{verb}", json=body, headers=wrong)
    add_token(folder_of(anyone), "ana")
    after = anyone.post(f"/v1/approvals/{refused}/{verb}", json=body, headers=wrong)

    assert (before.status_code, before.json()["decided_method"]) == (200, "none")
    assert last_body(anyone, ignored)["auth_method"] == "none"
    assert (after.status_code, after.json()["error"]["code"]) == (401, "unauthenticated")
    assert anyone.get(f"/v1/approvals/{refused}").json()["status"] == "awaiting"
    assert verify_store(folder_of(anyone)).findings == []


def test_the_history_of_an_action_marks_who_was_not_proved(anyone: TestClient) -> None:
    nobody, kim, ana = (propose(anyone) for _ in range(3))
    anyone.post(f"/v1/approvals/{nobody}/approve", json={})
    anyone.post(f"/v1/approvals/{kim}/approve", json={"by": "kim"})
    anyone.post(
        f"/v1/approvals/{ana}/approve", json={}, headers=bearer(add_token(folder_of(anyone), "ana"))
    )

    pages = [read(anyone, f"/approvals/{one}").text for one in (nobody, kim, ana)]

    assert f"{NOBODY} approved it" in pages[0]
    assert "kim (claimed) approved it" in pages[1]
    assert "ana approved it" in pages[2]


def test_a_second_decision_is_told_whose_the_first_was(anyone: TestClient) -> None:
    approval_id = propose(anyone)
    anyone.post(f"/v1/approvals/{approval_id}/approve", json={})

    refused = anyone.post(f"/v1/approvals/{approval_id}/reject", json={"by": "kim"})

    assert refused.status_code == 409
    assert f"already, by {NOBODY}" in refused.json()["error"]["message"]


def test_forms_give_no_name_that_nobody_gave(anyone: TestClient) -> None:
    approval_id = propose(anyone, approvers=["ana", "bo"])
    at = f"/approvals/{approval_id}"
    add_token(folder_of(anyone), "ana")

    nobody = read(anyone, f"{at}?edit=1")
    anyone.cookies.update(session_of(folder_of(anyone), "ana"))
    signed_in = read(anyone, f"{at}?edit=1")
    send(anyone, at, "approve", revision=1, arguments='{"to": "bank"}')

    assert nobody.all("input", name="by") == []
    assert [one.text for one in nobody.one("section", id="edit").all("option")] == ["ana", "bo"]
    assert signed_in.all("input", name="by") == signed_in.all("select", name="by") == []
    told = last_body(anyone, approval_id)
    assert (told["principal"], told.get("stated_by")) == ("ana", None)


def test_a_token_that_may_not_decide_elsewhere_is_told_that_anyone_may(anyone: TestClient) -> None:
    approval_id = propose(anyone)
    sender = bearer(add_token(folder_of(anyone), "bot", Scope.INGEST))

    page = anyone.get(f"/approvals/{approval_id}", headers=sender).text
    decided = anyone.post(f"/v1/approvals/{approval_id}/approve", json={}, headers=sender)

    assert "and not decide" not in page
    assert (decided.status_code, decided.json()["decided_by"]) == (200, "bot")


def test_reviews_say_that_nobody_was_known(anyone: TestClient, runs: RunMaker) -> None:
    with closing(TaskMaker(runs.store)) as tasks:
        with runs.store.batch():
            tasks.fail_often(5)
        task = tasks.detect_one()
    path = f"/v1/tasks/{task.task_id}/decide"

    anyone.post(path, json={"decision": "approve"})
    page = anyone.get(f"/tasks/{task.task_id}").text
    told = anyone.post(path, json={"decision": "done", "by": "kim"}).json()["task"]
    after = anyone.get(f"/tasks/{task.task_id}").text

    assert f"by {NOBODY}" in page
    assert (told["done"]["by"], told["done"]["method"]) == ("kim", "claimed")
    assert "by kim (claimed)" in after


@pytest.mark.slow
def test_a_terminal_claims_its_name_whatever_a_server_takes(tmp_path: Path) -> None:
    from hansard_store.approvals.records import Proposal
    from hansard_store.approvals.service import ApprovalService

    with ApprovalService(tmp_path) as desk:
        made = desk.propose(Proposal("wire", {"to": "acme"})).approval
    at = {"HANSARD_DATA": str(tmp_path), "HANSARD_DECIDE": "anyone"}

    run_command("approvals", "approve", made.approval_id, "--by", "me", **at)
    shown = run_command("approvals", "show", made.approval_id, **at)

    assert "me (claimed)" in shown.stdout
