"""Approvals over HTTP: proposed, waited for, decided, claimed and reported."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_web.app.config import AccessToken, Scope, WebSettings
from hansard_web.approvals import bodies as models
from tests.web.answers import check_fits
from tests.web.conftest import MakeClient

EMAIL = {"to": "alice@company.com", "subject": "Q3", "body": "Hi"}


def rules(*rules: dict[str, Any]) -> dict[str, Any]:
    """Return a body that puts rules in force."""
    named = [{"name": one["id"], "applies_to": {"action": "do"}, **one} for one in rules]
    house = {"schema_version": 1, "name": "house", "version": "1", "rules": named}
    return {"rule_sets": [house], "version": 0}


@pytest.fixture
def api(make_client: MakeClient) -> TestClient:
    return make_client()


def propose(api: TestClient, **changes: Any) -> dict[str, Any]:
    body = {"tool": "send_email", "arguments": EMAIL, "agent": "clerk", **changes}
    answer = api.post("/v1/approvals", json=body)
    assert answer.status_code == 201, answer.text
    proposed: dict[str, Any] = answer.json()
    check_fits(models.ProposedBody, proposed)
    return proposed


def post(api: TestClient, approval: dict[str, Any], verb: str, **body: Any) -> Any:
    key = {"Hansard-Proposal-Key": approval["proposal_key"]} if verb == "repropose" else {}
    return api.post(f"/v1/approvals/{approval['approval_id']}/{verb}", json=body, headers=key)


@pytest.mark.covers("PO-20", "PO-21")
def test_an_action_goes_from_proposal_to_result(api: TestClient) -> None:
    made = propose(api)
    key = {"Hansard-Proposal-Key": made["proposal_key"]}
    at = f"/v1/approvals/{made['short_id']}"
    early = api.get(at, headers=key).json()

    granted = post(api, made, "approve", by="ann").json()
    reader, proposer = api.get(at).json(), api.get(at, headers=key).json()
    claimed = post(api, made, "claim", arguments=EMAIL, token=proposer["token"]).json()
    again = post(api, made, "claim", arguments=EMAIL, token=proposer["token"])
    done = post(api, made, "result", claim_id=claimed["claim_id"], ok=True, result_ref="m1").json()

    assert (early["status"], early["token"]) == ("awaiting", None)
    assert (granted["status"], granted["decided_by"]) == ("approved", "ann")
    assert "token" not in reader
    assert claimed["arguments"] == EMAIL
    assert (again.status_code, again.json()["error"]["code"]) == (409, "token_used")
    assert (done["execution"]["state"], done["execution"]["result_ref"]) == ("done", "m1")
    check_fits(models.ApprovalBody, done)
    listed = api.get("/v1/approvals").json()
    check_fits(models.Approvals, listed)
    assert [one["approval_id"] for one in listed["items"]] == [made["approval_id"]]


def test_a_draft_is_sent_back_and_comes_again(api: TestClient) -> None:
    made = propose(api)

    empty = post(api, made, "revise", note=" ")
    revised = post(api, made, "revise", note="less formal", by="ann").json()
    back = post(api, made, "repropose", arguments={**EMAIL, "body": "Hey"}).json()

    assert (empty.status_code, empty.json()["error"]["code"]) == (400, "invalid_proposal")
    assert (revised["status"], revised["note"]) == ("revised", "less formal")
    assert (back["status"], back["revision"]) == ("awaiting", 2)
    assert [one["note"] for one in back["drafts"]] == ["less formal", None]
    assert [one["flag"] for one in back["fields"]] == [None, None, "changed"]


def test_whoever_decides_second_is_told_the_first_decision(api: TestClient) -> None:
    made = propose(api)
    first = post(api, made, "approve", by="ann")

    same = post(api, made, "approve", by="ann")
    other = post(api, made, "reject", by="bob", reason="no")

    assert first.json() == same.json()
    assert other.status_code == 409
    error = other.json()["error"]
    assert error["code"] == "already_decided"
    assert (error["details"]["decision"]["status"], error["details"]["decision"]["decided_by"]) == (
        "approved",
        "ann",
    )


def test_a_decision_on_a_draft_that_was_replaced_is_refused(api: TestClient) -> None:
    made = propose(api)
    post(api, made, "revise", note="again")
    post(api, made, "repropose", arguments={"to": "eve@evil.example"})

    answer = post(api, made, "approve", revision=1)

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "revision_changed")


def test_a_later_draft_is_not_approved_without_its_revision(api: TestClient) -> None:
    made = propose(api)
    post(api, made, "revise", note="again")
    post(api, made, "repropose", arguments={"to": "eve@evil.example"})

    blind = post(api, made, "approve")
    standing = api.get(f"/v1/approvals/{made['approval_id']}").json()["status"]
    granted = post(api, made, "approve", revision=2)

    error = blind.json()["error"]
    assert (blind.status_code, error["code"], error["details"]) == (
        409, "revision_required", {"revision": 2},
    )  # fmt: skip
    assert (standing, granted.status_code) == ("awaiting", 200)
    assert post(api, made, "approve").status_code == 200  # the same decision of the same person


@pytest.mark.covers("PO-05", "PO-20", "EV-04")
def test_policy_denies_gates_and_is_recorded(api: TestClient) -> None:
    put = rules(
        {"id": "no-pay", "effect": "deny", "conditions": {"tool.name": "pay"}},
        {"id": "ask", "effect": "require_approval", "conditions": {"tool.name": "send_email"}},
    )
    assert api.put("/v1/policy/rules", json=put).status_code == 200

    denied = api.post("/v1/approvals", json={"tool": "pay", "arguments": {"sum": 5}})
    made = propose(api)

    assert (denied.status_code, denied.json()["error"]["code"]) == (403, "blocked")
    assert denied.json()["error"]["details"]["rule_ids"] == ["no-pay"]
    assert made["policy"]["rule_ids"] == ["ask"]
    assert "require_approval" in made["policy"]["obligations"]
    types = [one["type"] for one in api.get("/v1/events").json()["items"]]
    assert types == ["policy.gated", "action.created", "policy.blocked"]
    assert len(api.get("/v1/policy/checks").json()["items"]) == 2


def test_edited_arguments_pass_policy_again(api: TestClient) -> None:
    made = propose(api)
    conditions = {"arguments.to": {"ends_with": "@evil.example"}}
    put = rules({"id": "never-evil", "effect": "deny", "conditions": conditions})
    assert api.put("/v1/policy/rules", json=put).status_code == 200

    denied = post(api, made, "approve", arguments={**EMAIL, "to": "bob@evil.example"})
    edited = post(api, made, "approve", arguments={**EMAIL, "body": "Dear"}, by="ann").json()
    key = {"Hansard-Proposal-Key": made["proposal_key"]}
    token = api.get(f"/v1/approvals/{made['approval_id']}", headers=key).json()["token"]
    old = post(api, made, "claim", arguments=EMAIL, token=token)
    claimed = post(api, made, "claim", token=token).json()

    assert denied.json()["error"]["code"] == "blocked"
    assert (edited["status"], edited["revision"]) == ("approved", 2)
    assert [one["by"] for one in edited["drafts"]] == ["agent:clerk", "me:ann"]
    assert old.json()["error"]["code"] == "arguments_changed"
    assert claimed["arguments"] == {**EMAIL, "body": "Dear"}


def test_a_batch_is_proposed_together_and_each_part_can_be_taken_out(api: TestClient) -> None:
    parts = [{"tool": "create_contact", "arguments": {"name": name}} for name in "abcde"]
    made = api.post("/v1/approvals", json={"batch": parts}).json()
    check_fits(models.ProposedBatch, made)
    second = made["items"][1]
    post(api, second, "reject", by="ann", reason="not her")

    seen = {one["approval_id"]: one["revision"] for one in made["items"]}
    granted = post(api, made["items"][0], "approve", batch=True, revisions=seen, by="ann").json()

    check_fits(models.ApprovedBatch, granted)
    assert len(granted["items"]) == 4
    found = api.get(f"/v1/approvals?batch={made['batch_id']}").json()["items"]
    assert sorted(one["status"] for one in found) == ["approved"] * 4 + ["rejected"]


def test_what_was_added_to_a_batch_after_it_was_looked_at_is_not_approved(api: TestClient) -> None:
    part = {"tool": "create_contact", "arguments": {"name": "Ann"}}
    made = api.post("/v1/approvals", json={"batch": [part, part]}).json()
    seen = {one["approval_id"]: 1 for one in made["items"]}
    later = propose(api, tool="pay", arguments={"amount": 9}, batch_id=made["batch_id"])

    blind = post(api, made["items"][0], "approve", batch=True)
    granted = post(api, made["items"][0], "approve", batch=True, revisions=seen).json()["items"]

    assert (blind.status_code, blind.json()["error"]["details"]) == (
        400,
        {"parameter": "revisions"},
    )
    assert {one["approval_id"] for one in granted} == set(seen)
    assert api.get(f"/v1/approvals/{later['approval_id']}").json()["status"] == "awaiting"


@pytest.mark.parametrize(
    ("more", "parameter"),
    [
        ({"batch": True, "revisions": {}}, "revisions"),
        ({"batch": True, "revisions": {"0" * 32: 1}}, "revisions"),
        ({"batch": True, "arguments": {"name": "Bob"}}, "arguments"),
        ({"batch": True, "note": "all of them"}, "note"),
        ({"batch": True, "revision": 1}, "revision"),
        ({"revisions": {"0" * 32: 1}}, "revisions"),
    ],
)
def test_nothing_of_the_approval_of_a_batch_is_dropped_silently(
    api: TestClient, more: dict[str, Any], parameter: str
) -> None:
    part = {"tool": "create_contact", "arguments": {"name": "Ann"}}
    made = api.post("/v1/approvals", json={"batch": [part, part]}).json()
    seen = {one["approval_id"]: 1 for one in made["items"]} if more.get("batch") else None

    refused = post(api, made["items"][0], "approve", **{"revisions": seen, **more})

    assert (refused.status_code, refused.json()["error"]["details"]) == (
        400,
        {"parameter": parameter},
    )
    assert api.get("/v1/approvals").json()["waiting"]["awaiting"] == 2


def test_only_the_proposer_brings_an_action_back(api: TestClient) -> None:
    made = propose(api)
    post(api, made, "revise", note="again")
    at = f"/v1/approvals/{made['approval_id']}/repropose"
    other = propose(api)["proposal_key"]

    answers = [
        api.post(at, json={"arguments": {"to": "eve@evil.example"}}, headers=headers)
        for headers in ({}, {"Hansard-Proposal-Key": other})
    ]

    assert [one.json()["error"]["code"] for one in answers] == ["bad_token", "bad_token"]
    assert "drafts" not in answers[0].text
    assert post(api, made, "repropose", arguments=EMAIL).json()["revision"] == 2


@pytest.mark.parametrize("number", ["1e999", "-1e999", "[1e400]"])
def test_numbers_that_cannot_be_told_apart_are_refused(api: TestClient, number: str) -> None:
    body = f'{{"tool": "pay", "arguments": {{"amount": {number}}}}}'
    answer = api.post("/v1/approvals", content=body, headers={"Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_json")


def test_waiting_ends_with_the_decision(make_client: MakeClient) -> None:
    api, other = make_client(), make_client()
    made = propose(api)
    answers: list[Any] = []
    at = f"/v1/approvals/{made['approval_id']}?wait=30"
    waiter = threading.Thread(target=lambda: answers.append(api.get(at)))
    waiter.start()

    post(other, made, "approve", by="ann")
    waiter.join(20)

    assert [one.json()["status"] for one in answers] == ["approved"]


def test_waiting_ends_with_its_time_and_with_another_draft(api: TestClient) -> None:
    made = propose(api)
    at = f"/v1/approvals/{made['approval_id']}"

    assert api.get(f"{at}?wait=0.05").json()["status"] == "awaiting"
    assert api.get(f"{at}?wait=30&revision=7").json()["revision"] == 1
    for bad in ("61", "nan", "x", "-1"):
        assert api.get(f"{at}?wait={bad}").json()["error"]["code"] == "invalid_query"


def test_waiting_ends_when_the_action_expires(api: TestClient) -> None:
    made = propose(api, expires_in_s=1)

    found = api.get(f"/v1/approvals/{made['approval_id']}?wait=30").json()

    assert (found["status"], found["reason"]) == ("expired", "expired")


def test_an_outcome_that_nobody_knows_is_settled_once(api: TestClient) -> None:
    made = propose(api)
    post(api, made, "approve")
    headers = {"Hansard-Proposal-Key": made["proposal_key"]}
    address = f"/v1/approvals/{made['approval_id']}"
    claimed = api.post(f"{address}/claim", json={"lease_s": 1e-9}, headers=headers).json()

    settled = post(api, made, "settle", outcome="ran", note="it is there", result_ref="deal:7")
    again = post(api, made, "settle", outcome="did_not_run", note="no", by="eve")
    late = post(api, made, "result", claim_id=claimed["claim_id"], ok=False)

    ran = settled.json()["execution"]
    assert (ran["state"], ran["result_ref"]) == ("done", "deal:7")
    expected = {"by": "ana", "method": "token", "outcome": "ran", "note": "it is there"}
    assert ran["settled"].items() >= expected.items()
    assert (again.status_code, again.json()["error"]["code"]) == (409, "outcome_known")
    assert (late.status_code, late.json()["error"]["code"]) == (409, "settled_already")
    assert post(api, made, "settle", outcome="perhaps", note="x").status_code == 400
    assert post(api, made, "settle", outcome="ran", note="").status_code == 400


@pytest.fixture
def tokened(make_client: MakeClient) -> TestClient:
    tokens = tuple(AccessToken(f"{one}-secret-token", frozenset({one})) for one in Scope)
    return make_client(WebSettings(tokens=tokens))


def test_a_senders_token_may_propose_and_not_decide(tokened: TestClient) -> None:
    def bearer(scope: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {scope}-secret-token"}

    body = {"tool": "t", "arguments": {}}
    refused = tokened.post("/v1/approvals", json=body, headers=bearer("decide"))
    made = tokened.post("/v1/approvals", json=body, headers=bearer("ingest")).json()
    at = f"/v1/approvals/{made['approval_id']}"

    key = {"Hansard-Proposal-Key": made["proposal_key"]}
    codes = {
        scope: [
            tokened.post(f"{at}/{verb}", json=body, headers=bearer(scope) | key).status_code
            for verb, body in (("revise", {"note": "x"}), ("repropose", {"arguments": {}}))
        ]
        for scope in ("ingest", "read", "decide")
    }
    claim = tokened.post(f"{at}/claim", json={}, headers=bearer("decide"))

    assert refused.status_code == 403
    assert codes == {"ingest": [403, 409], "read": [403, 403], "decide": [200, 403]}
    assert claim.status_code == 403


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"tool": "x"}, 201),
        ({"arguments": {}}, 400),
        ({"tool": "x", "arguments": [1]}, 400),
        ({"tool": "x", "arguments": {"a": "‹redacted:openai:37d7c58be048›"}}, 400),
        ({"tool": "", "arguments": {}}, 400),
        ({"tool": "a\nb", "arguments": {}}, 400),
        ({"tool": "x", "arguments": {}, "expires_in_s": 0}, 400),
        ({"tool": "x", "arguments": {}, "run_id": "zz"}, 400),
        ({"tool": "x", "arguments": {}, "one_per_channel": True}, 400),
        ({"tool": "x", "arguments": {}, "facts": {"mood": "bad"}}, 400),
        ({"tool": "x", "arguments": {}, "undo_of": "00000000"}, 404),
        ({"tool": "x", "arguments": {}, "surprise": 1}, 400),
    ],
)
def test_a_proposal_that_cannot_be_meant_is_refused(
    api: TestClient, body: dict[str, Any], code: int
) -> None:
    assert api.post("/v1/approvals", json=body).status_code == code


def test_a_list_is_paged_by_cursor_and_filtered(api: TestClient) -> None:
    for number in range(5):
        propose(api, arguments={"n": number}, tool=f"t{number % 2}")

    first = api.get("/v1/approvals?limit=2").json()
    second = api.get(f"/v1/approvals?limit=2&cursor={first['next_cursor']}").json()

    numbers = [one["arguments"]["n"] for one in (*first["items"], *second["items"])]
    assert numbers == [4, 3, 2, 1]
    assert first["waiting"] == {"awaiting": 5, "revised": 0}
    assert len(api.get("/v1/approvals?tool=t1&status=awaiting").json()["items"]) == 2
    assert api.get("/v1/approvals?status=done").json()["error"]["code"] == "invalid_query"
    assert api.get("/v1/approvals?cursor=x").json()["error"]["code"] == "invalid_cursor"


def test_ids_may_be_short_and_unknown_ones_are_told(api: TestClient) -> None:
    made = propose(api)

    assert api.get(f"/v1/approvals/{made['short_id']}").status_code == 200
    assert api.get(f"/v1/approvals/{made['short_id'][:7]}").status_code == 404
    assert api.get("/v1/approvals/zzzzzzzz").status_code == 404
