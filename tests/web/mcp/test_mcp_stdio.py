"""`hansard mcp` as an IDE starts it: a program of its own, on a data folder or against a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters

from hansard_store.approvals.service import ApprovalService
from hansard_web.cli import commands
from hansard_web.mcp.api_client import ApiClient, ApiRefused
from tests.journeys.processes import HANSARD, environment
from tests.web.mcp.conftest import LOOKER, Office
from tests.web.mcp.speaking import Told, told

pytestmark = pytest.mark.slow

FACT = {
    "memory_type": "fact",
    "subject": "port",
    "content": "The desk listens on 7000.",
    "namespace": {"project": "desk"},
}


def speak(*calls: tuple[str, dict[str, Any]], arguments: list[str], **more: str) -> list[Told]:
    """Start the program, call tools one after the other, and let it end."""

    async def connected() -> list[Told]:
        program = StdioServerParameters(
            command=HANSARD, args=["mcp", *arguments], env=environment(**more)
        )
        async with Client(program) as client:
            return [told(await client.call_tool(name, given)) for name, given in calls]

    return anyio.run(connected)


@pytest.mark.covers("MC-01", "MC-02", "MC-04", "MC-05", "SD-12")
def test_a_folder_is_read_without_a_server_and_proposals_survive_the_program(
    office: Office,
) -> None:
    step_id = office.stage.compiled_call()
    folder = ["--data", str(office.stage.folder.path)]
    payload = office.stage.step(step_id)["payloads"][0]["stored_ref"]

    runs, why, artifact, policy, proposed = speak(
        ("list_runs", {"agent": "clerk"}),
        ("explain_item", {"step_id": step_id, "item": "orders"}),
        ("get_payload", {"ref": payload}),
        ("check_policy", {"tool": {"name": "ls"}}),
        ("remember_fact", FACT),
        arguments=folder,
    )
    with_approval = ApprovalService(office.stage.folder)
    with_approval.approve(proposed.answer["approval_id"], by="kim")
    with_approval.close()
    # The program that proposed has ended: another one on the folder takes it up.
    ran = call_without_token(office, "remember_fact", confirmation=proposed.answer["confirmation"])

    assert step_id[:32] in {one["run_id"] for one in runs.answer["items"]}
    assert why.answer["receipts"][0]["decision"] == "include"
    assert artifact.answer["ref"] == payload
    assert policy.answer["decision"]["effect"] == "allow"
    assert proposed.answer["approval"]["agent"].startswith("mcp ")
    assert ran["answer"]["result"]["memory"]["content"] == FACT["content"]


def call_without_token(office: Office, name: str, **more: str) -> dict[str, Any]:
    """Call a tool at the door of the server that a person uses, which has no tokens."""
    params = {"name": name, "arguments": {**FACT, **more}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    accept = {"Accept": "application/json, text/event-stream"}
    answer = office.stage.client.post("/mcp", json=body, headers=accept)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["result"]["structuredContent"]
    return found


def test_a_running_server_is_asked_with_its_token(office: Office) -> None:
    office.stage.compiled_call()
    runs, refused = speak(
        ("list_runs", {}),
        ("invalidate_memory", {"memory_id": "ab" * 16, "reason": "no"}),
        arguments=["--url", office.url],
        HANSARD_TOKEN=f"read:{LOOKER}",
    )

    assert runs.answer["items"]
    assert refused.error["code"] == "scope_missing"


def test_a_server_that_is_not_there_is_a_typed_error() -> None:
    async def ask() -> None:
        async with httpx2.AsyncClient(base_url="http://127.0.0.1:1", trust_env=False) as client:
            await ApiClient(client, b"secret").get("/v1/runs")

    with pytest.raises(ApiRefused) as refused:
        anyio.run(ask)

    assert refused.value.code == "unreachable"


def test_a_folder_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    result = CliRunner().invoke(_group(), ["mcp", "--data", str(tmp_path / "file")])

    assert result.exit_code == 2
    assert "cannot use --data" in result.stderr


def _group() -> Any:
    import click

    group = click.Group()
    commands(group)
    return group
