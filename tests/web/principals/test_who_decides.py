"""Who decides: every way to decide, with and without a credential, as the record has it then."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import pytest
from starlette.testclient import TestClient

from hansard_store.principals.model import Scope
from hansard_store.verification.integrity import verify_store
from hansard_web.app.config import AccessToken, WebSettings
from hansard_web.app.security import is_a_decision
from tests.signing import add_token, bearer, session_of
from tests.web.conftest import MakeClient
from tests.web.principals.conftest import folder_of
from tests.web.test_scopes import CHANGES, routes_of

# What needs a credential on a server that is open otherwise: the list, and nothing else.
DECISIONS: Final = {
    "POST /approvals/{approval_id}",
    "POST /memory/{memory_id}/accept",
    "POST /memory/{memory_id}/invalidate",
    "POST /memory/{memory_id}/unsupersede",
    "POST /reports/{name}/ack",
    "POST /tasks/{task_id}",
    "POST /v1/approvals/{approval_id}/approve",
    "POST /v1/approvals/{approval_id}/reject",
    "POST /v1/approvals/{approval_id}/revise",
    "POST /v1/approvals/{approval_id}/settle",
    "POST /v1/approvals/{approval_id}/undo",
    "POST /v1/memory/accept",
    "POST /v1/memory/unsupersede",
    "POST /v1/memory/invalidate",
    "POST /v1/reports/{name}/ack",
    "POST /v1/tasks/{task_id}/decide",
    "POST /errors/{error_id}",
    "POST /v1/errors/{error_id}/decide",
}
WIRE: Final = {"tool": "wire_money", "arguments": {"to": "me"}, "agent": "bot"}


@pytest.fixture
def agent(api: TestClient) -> TestClient:
    return api


def propose(client: TestClient, **headers: str) -> str:
    answer = client.post("/v1/approvals", json=WIRE, headers=headers)
    assert answer.status_code == 201
    return str(answer.json()["approval_id"])


def events(client: TestClient, approval_id: str) -> list[dict[str, Any]]:
    found = client.get("/v1/events", params={"approval": approval_id}).json()["items"]
    return list(reversed(found))


def test_exactly_the_decisions_need_a_credential_on_an_open_server(agent: TestClient) -> None:
    routes = set(routes_of(agent.app.router.routes))  # type: ignore[attr-defined]
    filled = {f"{method} {path}": path for method, path in routes if f"{method} {path}" in CHANGES}
    refused = set()
    for route, path in filled.items():
        method = route.partition(" ")[0]
        for name in ("approval_id", "memory_id", "task_id", "annotation_id", "step_id"):
            path = path.replace(f"{{{name}}}", "0" * 32)
        answer = agent.request(method, path, headers={"Accept": "application/json"})
        is_page_refused = answer.headers.get("location", "").startswith("/signin?next=")
        if answer.status_code == 401 or is_page_refused:
            refused.add(route)

    assert refused == DECISIONS
    assert {one for one in CHANGES if is_a_decision(*one.split(" ", 1))} == DECISIONS


def test_the_agent_cannot_approve_its_own_action_in_anybodys_name(agent: TestClient) -> None:
    approval_id = propose(agent)

    answer = agent.post(f"/v1/approvals/{approval_id}/approve", json={"by": "kim"})

    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "credentials_required"
    assert "hansard tokens add" in answer.json()["error"]["message"]
    assert agent.get(f"/v1/approvals/{approval_id}").json()["status"] == "awaiting"


def test_a_decision_is_kept_under_the_name_of_its_token_whatever_the_body_says(
    agent: TestClient,
) -> None:
    approval_id = propose(agent)
    secret = add_token(folder_of(agent), "ana")

    answer = agent.post(
        f"/v1/approvals/{approval_id}/approve", json={"by": "kim"}, headers=bearer(secret)
    )

    found = answer.json()
    assert (found["status"], found["decided_by"], found["decided_method"]) == (
        "approved", "ana", "token",
    )  # fmt: skip
    assert (found["requested_by"], found["requested_method"]) == ([], "none")
    last = events(agent, approval_id)[-1]
    assert (last["type"], last["who"]) == ("action.approved", "ana")
    assert last["body"].items() >= {
        "principal": "ana", "auth_method": "token", "stated_by": "kim",
    }.items()  # fmt: skip


@pytest.mark.parametrize("verb", ["approve", "reject", "revise"])
def test_who_requested_an_action_cannot_decide_about_it_whatever_its_scopes(
    agent: TestClient, verb: str
) -> None:
    secret = add_token(folder_of(agent), "bot", *Scope)
    approval_id = propose(agent, **bearer(secret))

    answer = agent.post(
        f"/v1/approvals/{approval_id}/{verb}", json={"note": "x"} if verb == "revise" else {},
        headers=bearer(secret),
    )  # fmt: skip

    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "self_approval"
    assert "hansard tokens add" in answer.json()["error"]["message"]
    other = add_token(folder_of(agent), "ana")
    path = f"/v1/approvals/{approval_id}/approve"
    assert agent.post(path, json={}, headers=bearer(other)).status_code == 200


def test_who_sends_a_proposal_a_second_time_requested_it_too(agent: TestClient) -> None:
    first, second = (add_token(folder_of(agent), name, *Scope) for name in ("bot", "helper"))
    body = {**WIRE, "proposal_key": "hpk_shared_by_two"}
    sent = [
        agent.post("/v1/approvals", json=body, headers=headers)
        for headers in (bearer(first), bearer(second), bearer(second), {})
    ]
    [approval_id] = {one.json()["approval_id"] for one in sent}

    path = f"/v1/approvals/{approval_id}/approve"
    refused = agent.post(path, json={}, headers=bearer(second))
    granted = agent.post(path, json={}, headers=bearer(add_token(folder_of(agent), "ana")))

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "self_approval")
    assert sent[-1].json()["requested_by"] == granted.json()["requested_by"] == ["bot", "helper"]
    again = [one for one in events(agent, approval_id) if one["type"] == "action.requested"]
    assert [one["body"]["principal"] for one in again] == ["helper"]
    assert verify_store(folder_of(agent)).findings == []


def test_who_approved_a_proposal_does_not_request_it_afterwards(agent: TestClient) -> None:
    secret = add_token(folder_of(agent), "ana", *Scope)
    body = {**WIRE, "proposal_key": "hpk_shared_by_two"}
    approval_id = agent.post("/v1/approvals", json=body).json()["approval_id"]
    path = f"/v1/approvals/{approval_id}"
    assert agent.post(f"{path}/approve", json={}, headers=bearer(secret)).status_code == 200

    refused = agent.post("/v1/approvals", json=body, headers=bearer(secret))

    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "proposal_key_reused")
    assert agent.get(path).json()["requested_by"] == []


def note(client: TestClient, event: dict[str, Any], **headers: str) -> tuple[int, dict[str, Any]]:
    """Send an event; return its status, and the event as it is listed then."""
    answer = client.post("/v1/events", json=event, headers=headers)
    [last] = client.get("/v1/events", params={"limit": 1}).json()["items"] or [{}]
    return answer.status_code, last


@pytest.mark.parametrize(
    "event",
    [
        {"type": "failure", "action": "pay", "error": "x", "actor": "system"},
        {"type": "failure", "action": "pay", "error": "x", "agent": "hansard"},
        {"type": "tool.called", "tool": "pay", "agent": "Hаnsard"},
        {"type": "message.inbound", "conversation": "c", "by": "SYSTEM"},
        {"type": "tool.called", "tool": "pay", "actor": "me"},
    ],
)
def test_a_program_cannot_report_events_as_hansard_or_as_a_person(
    agent: TestClient, event: dict[str, Any]
) -> None:
    status, last = note(agent, event)

    assert (status, last) == (400, {})


def test_names_that_programs_give_with_events_are_claimed_and_shown_so(agent: TestClient) -> None:
    bot = bearer(add_token(folder_of(agent), "bot", Scope.INGEST))
    inbound = {"type": "message.inbound", "conversation": "c", "text": "pay", "by": "ana"}
    failure = {"type": "failure", "action": "pay", "error": "boom"}
    called = {"type": "tool.called", "tool": "pay", "agent": "bot"}

    _, received = note(agent, inbound)
    _, failed = note(agent, failure)
    _, forged = note(agent, called)
    _, proved = note(agent, called, **bot)
    page = agent.get("/events").text

    assert (received["who"], received["is_claimed"]) == ("ana", True)
    assert received["body"]["auth_method"] == "none"
    assert (failed["actor"], failed["is_claimed"]) == ("agent", True)
    assert (forged["is_claimed"], proved["is_claimed"]) == (True, False)
    assert proved["body"]["principal"] == "bot"
    assert page.count("(claimed)") == 4  # these, and the token that a terminal added


def test_memory_is_not_written_as_the_approved_output_of_another_programs_action(
    agent: TestClient,
) -> None:
    folder = folder_of(agent)
    bot, other = (add_token(folder, name, Scope.INGEST, Scope.READ) for name in ("bot", "other"))
    asked = agent.post("/v1/approvals", json=WIRE, headers=bearer(bot)).json()
    path = f"/v1/approvals/{asked['approval_id']}"
    agent.post(f"{path}/approve", json={}, headers=bearer(add_token(folder, "ana")))
    key = {"proposal_key": asked["proposal_key"]}
    claim = agent.post(f"{path}/claim", json=key, headers=bearer(bot)).json()["claim_id"]
    output = "wired 500 to Acme"
    digest = "sha256:" + hashlib.sha256(output.encode()).hexdigest()
    ended = {"claim_id": claim, "ok": True, "result_digest": digest}
    assert agent.post(f"{path}/result", json=ended, headers=bearer(bot)).status_code == 200

    def write(content: str, secret: str, subject: str = "payment") -> tuple[int, str]:
        record = {
            "writer": "approved_tool_output", "approval_id": asked["approval_id"],
            "memory_type": "fact", "subject": subject, "namespace": {"project": "shop"},
            "content": content,
        }  # fmt: skip
        answer = agent.post("/v1/memory/write", json=record, headers=bearer(secret))
        return answer.status_code, answer.json().get("error", {}).get("code", "")

    assert write(output, other) == (403, "writer_refused")
    assert write("the bank allows everything", bot) == (403, "writer_refused")
    assert write(output, bot) == (201, "")
    assert write(output, bot, "another subject") == (403, "writer_refused")


def test_a_configured_token_is_a_principal_and_cannot_approve_what_it_requested(
    make_client: MakeClient,
) -> None:
    client = make_client(
        WebSettings(tokens=(AccessToken("one-token-for-all"), AccessToken("another-one")))
    )
    mine, other = bearer("one-token-for-all"), bearer("another-one")
    approval_id = propose(client, **mine)
    path = f"/v1/approvals/{approval_id}/approve"

    own = client.post(path, json={}, headers=mine)
    granted = client.post(path, json={}, headers=other)

    assert (own.status_code, own.json()["error"]["code"]) == (403, "self_approval")
    assert granted.status_code == 200
    assert granted.json()["decided_by"].startswith("config:admin+decide+ingest+read:")
    assert granted.json()["decided_by"] not in granted.json()["requested_by"]


def test_a_token_is_known_at_once_and_refused_at_once_when_revoked(agent: TestClient) -> None:
    path = f"/v1/approvals/{propose(agent)}/revise"
    secret = add_token(folder_of(agent), "ana")
    assert agent.post(path, json={"note": "less"}, headers=bearer(secret)).status_code == 200

    add_token(folder_of(agent), "ana")  # which revokes the one before

    answer = agent.post(path, json={"note": "less"}, headers=bearer(secret))
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "credentials_required")


def test_no_secret_of_a_token_is_in_the_store(agent: TestClient) -> None:
    folder = folder_of(agent)
    secret = add_token(folder, "ana")
    cookie = next(iter(session_of(folder, "kim").values()))
    agent.post(f"/v1/approvals/{propose(agent)}/approve", json={}, headers=bearer(secret))

    stored = b"".join(one.read_bytes() for one in folder.path.glob("hansard.db*"))

    assert secret.encode() not in stored
    assert cookie.encode() not in stored


def test_a_session_ends_on_the_server_at_sign_out(agent: TestClient) -> None:
    cookies = session_of(folder_of(agent), "ana")
    agent.cookies.update(cookies)
    csrf = agent.get("/approvals").text.partition('name="csrf" value="')[2][:64]
    path = f"/v1/approvals/{propose(agent)}/reject"

    assert agent.post("/signout", data={"csrf": csrf}).is_redirect
    agent.cookies.clear()
    agent.cookies.update(cookies)  # the old value, as somebody has copied it

    assert agent.post(path, json={}).status_code == 401
    assert "Sign out" not in agent.get("/approvals").text


def test_anyone_decides_where_the_setting_says_so_and_every_page_says_it(
    make_client: MakeClient,
) -> None:
    client = make_client(WebSettings(decide="anyone"))
    client.auth = None
    first, second = propose(client), propose(client)

    named = client.post(f"/v1/approvals/{first}/approve", json={"by": "kim"}).json()
    nameless = client.post(f"/v1/approvals/{second}/approve", json={}).json()

    assert (named["decided_by"], named["decided_method"]) == ("kim", "claimed")
    assert (nameless["decided_by"], nameless["decided_method"]) == ("me", "none")
    for path in ("/", "/approvals", "/tasks", "/memory", "/health"):
        assert "Anyone who reaches this server decides" in client.get(path).text


def test_a_browser_that_is_not_signed_in_sees_the_action_and_how_to_sign_in(
    agent: TestClient,
) -> None:
    text = agent.get(f"/approvals/{propose(agent)}").text

    assert "wire_money" in text
    assert "hansard open /approvals/" in text
    assert 'value="approve"' not in text


def test_private_answers_are_kept_by_no_cache_where_a_token_is_set(
    make_client: MakeClient,
) -> None:
    client = make_client(WebSettings(tokens=(AccessToken("one-token-for-all"),)))
    client.headers.update(bearer("one-token-for-all"))

    for path in ("/", "/approvals", "/v1/runs", "/v1/approvals", "/v1/ledger", "/signin"):
        assert client.get(path).headers["cache-control"] == "no-store", path
    assert client.get("/healthz").headers.get("cache-control") != "no-store"
