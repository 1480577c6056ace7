"""A claim is its claimer's: nothing that others can read reports its result."""

from __future__ import annotations

import re
from typing import Final

import pytest
from starlette.testclient import TestClient

from hansard_store.principals.model import Scope
from hansard_store.verification.integrity import verify_store
from tests.signing import add_token, bearer
from tests.web.principals.conftest import folder_of

pytestmark = pytest.mark.slow

WIRE: Final = {"tool": "wire_money", "arguments": {"to": "acme"}, "agent": "bot"}
READ: Final = (
    "/v1/events?limit=500",
    "/v1/events/export",
    "/v1/approvals",
    "/v1/approvals/{id}",
    "/approvals/{id}",
    "/events",
)
FORGED: Final = {"ok": True, "result_ref": "bank:ok", "undo": {"tool": "wipe", "arguments": {}}}


def claimed(api: TestClient) -> tuple[str, str, dict[str, str]]:
    """Return an approved action that its proposer has claimed, and the claim's id."""
    bot = bearer(add_token(folder_of(api), "bot", Scope.INGEST, Scope.READ))
    made = api.post("/v1/approvals", json=WIRE, headers=bot).json()
    path = f"/v1/approvals/{made['approval_id']}"
    ana = bearer(add_token(folder_of(api), "ana"))
    assert api.post(f"{path}/approve", json={}, headers=ana).status_code == 200
    key = {"proposal_key": made["proposal_key"], "arguments": WIRE["arguments"]}
    answer = api.post(f"{path}/claim", json=key, headers=bot)
    assert answer.status_code == 200, answer.text
    return made["approval_id"], answer.json()["claim_id"], bot


def readable(api: TestClient, approval_id: str, headers: dict[str, str]) -> set[str]:
    """Return every id, hash and part of one that a reader finds about an approval."""
    texts = [api.get(path.format(id=approval_id), headers=headers).text for path in READ]
    runs = {found for text in texts for found in re.findall(r"[0-9a-f]{16,}", text)}
    return {run[at : at + 32] for run in runs for at in range(max(len(run) - 31, 1))}


@pytest.mark.parametrize("state", ["claimed", "unknown"])
def test_nothing_a_reader_finds_reports_the_result_of_another_s_claim(
    api: TestClient, state: str
) -> None:
    approval_id, claim_id, bot = claimed(api)
    path = f"/v1/approvals/{approval_id}"
    if state == "unknown":
        cut_off = {"claim_id": claim_id, "ok": None}
        assert api.post(f"{path}/result", json=cut_off, headers=bot).status_code == 200
    other = bearer(add_token(folder_of(api), "other", Scope.INGEST, Scope.READ))

    found = readable(api, approval_id, other)
    answers = [
        api.post(f"{path}/result", json={**FORGED, "claim_id": one}, headers=other) for one in found
    ]

    assert claim_id not in found
    assert len(found) > 20
    assert [one.text for one in answers if one.is_success] == []
    ended = api.post(f"{path}/result", json={"claim_id": claim_id, "ok": False}, headers=bot)
    assert ended.json()["execution"]["state"] == "failed"
    assert verify_store(folder_of(api)).findings == []
