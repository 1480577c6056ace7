"""Hansard's own tokens and codes of links are secrets like any other, wherever they come in."""

from __future__ import annotations

import json
import secrets
import time
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from hansard_store.database.data_folder import DataFolder
from hansard_store.principals.service import Principals
from tests.journeys.processes import hosting
from tests.signing import add_token

pytestmark = pytest.mark.slow


def _span(text: str) -> dict[str, object]:
    """Return a request with one model call that was asked a text, which stands in its name too."""
    asked = [{"role": "user", "parts": [{"type": "text", "content": text}]}]
    value = {"stringValue": json.dumps(asked)}
    span = {
        "traceId": secrets.token_hex(16),
        "spanId": secrets.token_hex(8),
        "name": f"call {text}",
        "startTimeUnixNano": str(time.time_ns()),
        "endTimeUnixNano": str(time.time_ns()),
        "attributes": [{"key": "gen_ai.input.messages", "value": value}],
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


@pytest.mark.parametrize("kind", ["token", "link"])
def test_a_token_or_link_that_a_program_sends_is_read_back_by_nobody(
    kind: str, tmp_path: Path
) -> None:
    with hosting(tmp_path / "data") as server, httpx2.Client(base_url=server.http) as client:
        if kind == "token":
            secret = written = add_token(server.data, "ana")
        else:
            with closing(Principals(DataFolder(server.data))) as principals:
                secret = principals.add_link("ana", server="one", is_once=False)
            written = f"{server.http}/signin/link/{secret}"
        wire = {"tool": "wire", "arguments": {"text": f"use {written} now"}}
        made = client.post("/v1/approvals", json=wire).json()
        client.post("/v1/traces", json=_span(f"use {written} now"))
        [run] = client.get("/v1/runs").json()["items"]
        approval = f"/v1/approvals/{made['approval_id']}"
        paths = [approval, approval.removeprefix("/v1"), "/v1/runs", "/v1/events"]
        paths += [f"/v1/runs/{run['run_id']}/steps", f"/v1/search?q={secret[:12]}"]
        answers = {path: client.get(path).text for path in paths}

    assert [path for path, text in answers.items() if secret in text] == []
    assert "‹redacted:hansard:" in answers[approval]
    files = [one for one in (tmp_path / "data").rglob("*") if one.is_file()]
    assert [one.name for one in files if secret.encode() in one.read_bytes()] == []
