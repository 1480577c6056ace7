"""Approvals as the page tests need them: an app over a store, and actions that wait in it."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from hansard_store.approvals.records import Approval, Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.database.data_folder import DataFolder
from tests.web.html import Element, parse

MINUTE = 60 * 1_000_000_000
RUN = "0af7651916cd43dd8448eb211c80319c"
STEP = f"{RUN}-b7ad6b7169203331"
DEAL = {"title": "Shop fit-out", "amount": 22632, "owner": "Noor Haddad"}


def store_of(client: TestClient) -> ApprovalService:
    """Return the store of a client's app, as a program with its folder has it."""
    folder: DataFolder = client.app.state.site.folder  # type: ignore[attr-defined]
    return ApprovalService(folder, source="api")


def say(arguments: dict[str, Any]) -> str:
    return f"Open {arguments['title']} for {arguments['amount']}, owned by {arguments['owner']}"


def ask(store: ApprovalService, **changes: Any) -> Approval:
    """Propose to open a deal, or what `changes` make of it."""
    told: dict[str, Any] = {"tool": "create_deal", "arguments": DEAL, "agent": "front-desk"}
    told |= {"description": say(DEAL), "run_id": RUN, "step_id": STEP, **changes}
    return store.propose(Proposal(**told)).approval


def redraft(store: ApprovalService, approval: Approval, **changes: Any) -> Approval:
    """Bring a revised deal back with some arguments changed."""
    arguments = {**approval.arguments, **changes}
    return store.repropose(approval.approval_id, arguments, description=say(arguments))


def read(client: TestClient, address: str, *, status: int = 200) -> Element:
    answer = client.get(address)
    assert answer.status_code == status, answer.text[:2000]
    return parse(answer.text)


def send(client: TestClient, address: str, decision: str, **fields: Any) -> Any:
    """Press a button of a form of the page, as a browser does."""
    page = read(client, address)
    csrf = page.all("input", name="csrf")[0]["value"]
    data = {"csrf": csrf, "decision": decision, **fields}
    return client.post(address, data={name: one for name, one in data.items() if one is not None})
