"""Taking memory back by MCP at an open server: the person's approval is the decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hansard_store.principals.model import Scope
from tests.journeys.processes import Serving, hosting
from tests.signing import add_token, bearer
from tests.web.mcp.speaking import Speaker

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Desk:
    """An open server, an MCP client and an HTTP client without a token, and a person with one."""

    serving: Serving
    agent: Speaker
    http: httpx2.Client
    person: dict[str, str]

    def memory(self, subject: str) -> str:
        fact = {
            "writer": "app", "memory_type": "fact", "subject": subject, "content": "So it is.",
            "namespace": {"project": "shop"},
        }  # fmt: skip
        return str(self.post("/v1/memory/write", fact).json()["memory"]["memory_id"])

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> httpx2.Response:
        return self.http.post(f"{self.serving.http}{path}", json=body, headers=headers)

    def get(self, path: str) -> Any:
        return self.http.get(f"{self.serving.http}{path}").json()

    def approve(self, approval_id: str) -> None:
        answer = self.post(f"/v1/approvals/{approval_id}/approve", {}, self.person)
        assert answer.status_code == 200, answer.text

    def propose(self, memory_id: str, tool: str = "hansard.invalidate_memory") -> tuple[str, str]:
        """Propose by the API what the tool of MCP proposes; return the ids of approval and key."""
        arguments = {"memory_id": memory_id, "reason": "we moved"}
        body = {"tool": tool, "arguments": arguments, "effect": "write", "agent": "bot"}
        made = self.post("/v1/approvals", body)
        assert made.status_code == 201, made.text
        return str(made.json()["approval_id"]), str(made.json()["proposal_key"])

    def claim(self, approval_id: str, key: str) -> str:
        made = self.post(f"/v1/approvals/{approval_id}/claim", {"proposal_key": key})
        assert made.status_code == 200, made.text
        return str(made.json()["claim_id"])

    def state_of(self, memory_id: str) -> str:
        return str(self.get(f"/v1/memory/{memory_id}")["memory"]["state"])


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    data: Path = tmp_path_factory.mktemp("approved") / "data"
    with hosting(data) as serving, httpx2.Client(timeout=30) as http:
        person = bearer(add_token(data, "ana"))
        yield Desk(serving, Speaker(serving.http), http, person)


def test_a_client_without_a_token_takes_memory_back_once_a_person_approved_it(desk: Desk) -> None:
    memory_id = desk.memory("the address")
    call = {"memory_id": memory_id, "reason": "we moved"}

    first = desk.agent.call("invalidate_memory", **call).answer
    early = desk.agent.call("invalidate_memory", **call, confirmation=first["confirmation"]).answer
    before = desk.state_of(memory_id)
    desk.approve(first["approval_id"])
    ran = desk.agent.call("invalidate_memory", **call, confirmation=first["confirmation"]).answer

    assert (early["status"], before) == ("pending_confirmation", "current")
    assert ran["status"] == "done"
    assert desk.state_of(memory_id) == "invalidated"
    kept = desk.get(f"/v1/approvals/{first['approval_id']}")
    assert (kept["decided_by"], kept["execution"]["state"]) == ("ana", "done")
    [event] = desk.get(f"/v1/events?subject=memory:{memory_id}&type=memory.invalidated")["items"]
    assert (event["who"], event["approval_id"]) == ("ana", first["approval_id"])
    assert event["body"].items() >= {"principal": "ana", "auth_method": "token"}.items()


def test_without_an_approval_it_takes_a_token_that_may_decide(desk: Desk) -> None:
    memory_id = desk.memory("the phone")
    end = {"memory_id": memory_id, "reason": "no", "by": "ana"}

    without = desk.post("/v1/memory/invalidate", end)
    sender = bearer(add_token(desk.serving.data, "sender", Scope.INGEST))
    as_sender = desk.post("/v1/memory/invalidate", end, sender)
    with_token = desk.post("/v1/memory/invalidate", end, desk.person)

    assert (without.status_code, without.json()["error"]["code"]) == (401, "credentials_required")
    assert (as_sender.status_code, as_sender.json()["error"]["code"]) == (403, "scope_missing")
    assert with_token.status_code == 200
    assert desk.state_of(memory_id) == "invalidated"


def test_an_approval_ends_only_the_memory_that_it_names_while_it_is_being_run(desk: Desk) -> None:
    mine, other = desk.memory("mine"), desk.memory("other")
    approval_id, key = desk.propose(mine)
    desk.approve(approval_id)
    end = {"memory_id": mine, "reason": "we moved", "approval_id": approval_id}
    path = "/v1/memory/invalidate/approved"

    unclaimed = desk.post(path, {**end, "claim_id": "ab" * 16})
    claim_id = desk.claim(approval_id, key)
    elsewhere = desk.post(path, {**end, "memory_id": other, "claim_id": claim_id})
    reason = desk.post(path, {**end, "reason": "another", "claim_id": claim_id})
    guessed = desk.post(path, {**end, "claim_id": "cd" * 16})
    taken = desk.post(path, {**end, "claim_id": claim_id})
    desk.post(f"/v1/approvals/{approval_id}/result", {"claim_id": claim_id, "ok": True})
    late = desk.post(path, {**end, "claim_id": claim_id})

    refused = [unclaimed, elsewhere, reason, guessed, late]
    assert [one.status_code for one in refused] == [403] * 5
    assert {one.json()["error"]["code"] for one in refused} == {"approval_mismatch"}
    assert taken.status_code == 200
    assert (desk.state_of(mine), desk.state_of(other)) == ("invalidated", "current")


def test_an_approval_of_another_tool_ends_no_memory(desk: Desk) -> None:
    memory_id = desk.memory("kept")
    approval_id, key = desk.propose(memory_id, tool="send_mail")
    desk.approve(approval_id)
    end = {"memory_id": memory_id, "reason": "we moved", "approval_id": approval_id}

    answer = desk.post(
        "/v1/memory/invalidate/approved", {**end, "claim_id": desk.claim(approval_id, key)}
    )

    assert answer.status_code == 403
    assert desk.state_of(memory_id) == "current"
