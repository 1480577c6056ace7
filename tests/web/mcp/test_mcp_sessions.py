"""Sessions of `/mcp`, as a client sees them on the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from hansard_web.mcp import server, sessions
from hansard_web.mcp.tools import TOOLS
from tests.web.mcp.conftest import AGENT, READER, Office

Json = dict[str, Any]
FACT = {
    "memory_type": "fact",
    "subject": "sessions",
    "content": "They hold no right.",
    "namespace": {"project": "of-sessions"},
}


@dataclass
class Wire:
    """One client with one token, that keeps what it was sent."""

    office: Office
    token: str = AGENT
    session_id: str | None = None
    told: list[Json] = field(default_factory=list)  # before the answer

    def send(self, method: str, **params: Any) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return httpx2.post(
            f"{self.office.url}/mcp", json=body, headers=self.headers(), trust_env=False, timeout=30
        )

    def headers(self) -> dict[str, str]:
        own = {"Mcp-Session-Id": self.session_id} if self.session_id else {}
        version = {"MCP-Protocol-Version": "2025-11-25"} if self.session_id else {}
        accept = {"Accept": "application/json, text/event-stream"}
        return {"Authorization": f"Bearer {self.token}", **accept, **own, **version}

    def begin(self, name: str = "ide") -> Wire:
        client = {"name": name, "version": "1"}
        answer = self.send(
            "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client
        )
        assert answer.status_code == 200, answer.text
        self.session_id = answer.headers.get("mcp-session-id")
        return self

    def call(self, name: str, meta: Json | None = None, **arguments: Any) -> Json:
        more = {"_meta": meta} if meta else {}
        return self.read(self.send("tools/call", name=name, arguments=arguments, **more))

    def read(self, answer: httpx2.Response) -> Json:
        """Return the result of an answer, a stream or not."""
        assert answer.status_code == 200, answer.text
        if answer.headers["content-type"].startswith("text/event-stream"):
            lines = [line for line in answer.text.splitlines() if line.startswith("data: {")]
            *self.told, last = (json.loads(line.removeprefix("data: ")) for line in lines)
        else:
            last = answer.json()
        result: Json = last["result"]
        return result

    def end(self) -> httpx2.Response:
        return httpx2.delete(f"{self.office.url}/mcp", headers=self.headers(), trust_env=False)


def test_a_session_tells_people_which_client_asks(office: Office) -> None:
    wire = Wire(office).begin("marvin")

    told = wire.call("remember_fact", **FACT)["structuredContent"]["answer"]

    assert wire.session_id
    approval = office.stage.get(f"/v1/approvals/{told['approval_id']}")
    assert approval["agent"] == "mcp marvin"


def test_a_client_that_asks_for_progress_hears_that_its_call_still_waits(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PROGRESS_S", 0.05)
    wire = Wire(office).begin()
    asked = wire.call("remember_fact", **FACT)["structuredContent"]["answer"]

    answer = wire.call(
        "get_approval", {"progressToken": "p1"}, approval_id=asked["approval_id"], wait_s=0.5
    )

    assert answer["structuredContent"]["answer"]["status"] == "awaiting"
    assert len(wire.told) >= 2
    progress = [one["params"] for one in wire.told if one["method"] == "notifications/progress"]
    assert {one["progressToken"] for one in progress} == {"p1"}
    assert progress[0]["progress"] < progress[1]["progress"]
    assert "get_approval waits" in progress[0]["message"]


def test_nobody_hears_of_progress_without_asking(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PROGRESS_S", 0.01)
    wire = Wire(office).begin()
    asked = wire.call("remember_fact", **FACT)["structuredContent"]["answer"]

    wire.call("get_approval", approval_id=asked["approval_id"], wait_s=0.2)

    assert wire.told == []


def test_a_session_of_before_a_restart_is_served_for_itself(office: Office) -> None:
    wire = Wire(office, session_id="5e55" * 8)

    answer = wire.send("tools/list")

    assert answer.headers["content-type"].startswith("application/json")
    assert len(wire.read(answer)["tools"]) == len(TOOLS)


def test_a_session_that_was_ended_is_told_to_begin_again(office: Office) -> None:
    wire = Wire(office).begin()

    ended, after, again = wire.end(), wire.send("tools/list"), wire.end()

    assert (ended.status_code, after.status_code, again.status_code) == (200, 404, 404)


def test_another_token_gets_nothing_of_a_session(office: Office) -> None:
    wire = Wire(office).begin("marvin")
    thief = Wire(office, READER, wire.session_id)

    asked = thief.call("remember_fact", **FACT)["structuredContent"]["answer"]
    ended = thief.end()

    agent = office.stage.get(f"/v1/approvals/{asked['approval_id']}")["agent"]
    assert "marvin" not in agent
    assert ended.status_code == 404
    assert wire.read(wire.send("tools/list"))["tools"]


def test_when_there_are_too_many_sessions_a_client_is_served_without(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST", 0)

    wire = Wire(office).begin()

    assert wire.session_id is None
    assert wire.read(wire.send("tools/list"))["tools"]


def test_sessions_that_were_ended_make_room(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    Wire(office).begin()  # with the first client comes the manager, which keeps its limits
    monkeypatch.setattr(sessions, "MOST", 1)
    with monkeypatch.context() as at_once:
        at_once.setattr(sessions, "IDLE_S", 0.0)  # those of other tests make room
        first = Wire(office).begin()

    assert Wire(office).begin().session_id is None
    assert first.end().status_code == 200
    assert Wire(office).begin().session_id is not None


def test_sessions_that_went_quiet_make_room(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Wire(office).begin()
    monkeypatch.setattr(sessions, "MOST", 1)
    monkeypatch.setattr(sessions, "IDLE_S", 0.0)

    second = Wire(office).begin()

    assert first.session_id
    assert second.session_id
    assert first.read(first.send("tools/list"))["tools"]


@pytest.mark.parametrize(
    "body",
    [b'{"method": "initialize"', b'["initialize"]', b'{"say": "initialize"}', b'"initialize"'],
)
def test_what_only_mentions_initialize_begins_nothing(office: Office, body: bytes) -> None:
    headers = {**Wire(office).headers(), "Content-Type": "application/json"}

    answer = httpx2.post(f"{office.url}/mcp", content=body, headers=headers, trust_env=False)

    assert answer.status_code == 400
    assert "mcp-session-id" not in answer.headers
