"""One pending action a channel: of one requester, and nobody ends what another requested."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_store.principals.model import Scope
from hansard_store.verification.integrity import verify_store
from tests.signing import add_token, bearer
from tests.web.approvals import read
from tests.web.principals.conftest import folder_of

PAY: dict[str, Any] = {
    "tool": "pay", "arguments": {"n": 1}, "channel": "crm", "one_per_channel": True,
}  # fmt: skip


@pytest.fixture
def senders(api: TestClient) -> dict[str, dict[str, str]]:
    folder = folder_of(api)
    scopes = (Scope.INGEST, Scope.READ)
    return {"": {}, **{name: bearer(add_token(folder, name, *scopes)) for name in ("bot", "eve")}}


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ("bot", "bot", "rejected"),
        ("", "", "rejected"),
        ("bot", "eve", "awaiting"),
        ("bot", "", "awaiting"),
        ("", "eve", "awaiting"),
    ],
)
def test_only_the_requester_of_an_action_replaces_it(
    api: TestClient,
    senders: dict[str, dict[str, str]],
    first: str,
    second: str,
    status: str,
) -> None:
    made = api.post("/v1/approvals", json={**PAY, "agent": "one"}, headers=senders[first]).json()

    newer = api.post("/v1/approvals", json={**PAY, "agent": "two"}, headers=senders[second])

    assert newer.status_code == 201
    at = f"/v1/approvals/{made['approval_id']}"
    found = api.get(at).json()
    assert found["status"] == status
    if status == "rejected":
        (event,) = api.get("/v1/events", params={"type": "action.rejected"}).json()["items"]
        assert event["body"]["caused_by"] == "agent:two"
        assert event["body"].get("caused_by_principal") == (second or None)
        page = " ".join(read(api, at.removeprefix("/v1")).text.split())
        assert "ended it for a newer action of two in its channel" in page
    assert verify_store(folder_of(api)).findings == []
