"""Who wrote a memory: how the name is known stands beside it, wherever it is shown."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_store.database.connections import open_for_ingest
from hansard_store.principals.model import Scope
from tests.journeys.processes import hansard as run_command
from tests.signing import add_token, bearer
from tests.web.approvals import read
from tests.web.principals.conftest import folder_of

FACT: dict[str, Any] = {
    "memory_type": "fact", "subject": "port", "namespace": {"project": "p"}, "writer": "app",
}  # fmt: skip
KNOWN = ("written_by", "written_method", "written_principal")


@pytest.fixture
def bot(api: TestClient) -> dict[str, str]:
    return bearer(add_token(folder_of(api), "bot", Scope.INGEST, Scope.READ))


@pytest.fixture
def ana(api: TestClient) -> dict[str, str]:
    return bearer(add_token(folder_of(api), "ana"))


def write(api: TestClient, headers: dict[str, str], **more: Any) -> dict[str, Any]:
    answer = api.post("/v1/memory/write", json={**FACT, **more}, headers=headers)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["memory"]
    return made


def known(made: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(made[name] for name in KNOWN)


def shown(api: TestClient, made: dict[str, Any]) -> list[str]:
    """Return the writer as the record's page, the list and the command show it."""
    page = " ".join(read(api, f"/memory/{made['memory_id']}").text.split())
    listed = " ".join(read(api, "/memory?project=p").text.split())
    data = str(folder_of(api).path)
    command = run_command("memory", "show", made["memory_id"], HANSARD_DATA=data).stdout
    return [page, listed, " ".join(command.split())]


def approved(
    api: TestClient, bot: dict[str, str], ana: dict[str, str], tool: str, content: str
) -> str:
    """Let bot propose a call that ana approves, and that returns the content."""
    asked = {"tool": tool, "arguments": {"content": content}, "agent": "bot"}
    made = api.post("/v1/approvals", json=asked, headers=bot).json()
    at = f"/v1/approvals/{made['approval_id']}"
    assert api.post(f"{at}/approve", json={}, headers=ana).status_code == 200
    claimed = api.post(
        f"{at}/claim",
        json={"arguments": asked["arguments"], "proposal_key": made["proposal_key"]},
        headers=bot,
    ).json()
    digest = "sha256:" + hashlib.sha256(content.encode()).hexdigest()
    body = {"claim_id": claimed["claim_id"], "ok": True, "result_digest": digest}
    assert api.post(f"{at}/result", json=body, headers=bot).status_code == 200
    return str(made["approval_id"])


@pytest.mark.slow
def test_a_name_that_nobody_proved_is_marked(api: TestClient) -> None:
    made = write(api, {}, content="80", by="ana")

    assert known(made) == ("ana", "claimed", None)
    for text in shown(api, made):
        assert "ana (claimed)" in text


@pytest.mark.slow
def test_a_name_other_than_the_senders_is_claimed_and_the_sender_is_named(
    api: TestClient, bot: dict[str, str]
) -> None:
    made = write(api, bot, content="80", by="ana")

    assert known(made) == ("ana", "claimed", "bot")
    for text in shown(api, made):
        assert "ana (claimed)" in text
        assert "sent by bot" in text


@pytest.mark.slow
def test_the_senders_own_name_is_authenticated(api: TestClient, bot: dict[str, str]) -> None:
    made = write(api, bot, content="80", by="bot")

    assert known(made) == ("bot", "token", "bot")
    assert not any("claimed" in text for text in shown(api, made)[::2])


@pytest.mark.slow
def test_a_record_without_a_name_has_its_sender(api: TestClient, bot: dict[str, str]) -> None:
    made = write(api, bot, content="80")

    assert known(made) == (None, None, "bot")
    assert all("sent by bot" in text for text in shown(api, made))


def test_who_approved_a_call_did_not_write_its_output(
    api: TestClient, bot: dict[str, str], ana: dict[str, str]
) -> None:
    approval_id = approved(api, bot, ana, "look_up", "80")
    more = {"writer": "approved_tool_output", "approval_id": approval_id, "by": "ana"}

    made = write(api, bot, content="80", **more)

    assert known(made) == ("ana", "claimed", "bot")


@pytest.mark.parametrize(("by", "method"), [("ana", "token"), ("kim", "claimed")])
def test_who_approved_a_summary_is_authenticated_as_they_were(
    api: TestClient, bot: dict[str, str], ana: dict[str, str], by: str, method: str
) -> None:
    """As an MCP server writes it: in the name of the person who approved exactly this content."""
    approval_id = approved(api, bot, ana, "hansard.remember_fact", "80")
    more = {"writer": "human_approved_summary", "approval_id": approval_id, "by": by}

    made = write(api, bot, content="80", **more)

    assert known(made) == (by, method, "bot")


def test_a_record_of_an_earlier_version_reads_as_claimed(
    api: TestClient, bot: dict[str, str]
) -> None:
    made = write(api, bot, content="80", by="bot")
    connection = open_for_ingest(folder_of(api))
    connection.execute("UPDATE memory SET written_method = NULL, written_principal = NULL")
    connection.close()

    found = api.get(f"/v1/memory/{made['memory_id']}").json()["memory"]

    assert known(found) == ("bot", "claimed", None)
