"""The same gate with a server: what programs that send their telemetry there have."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard import approvals
from hansard._backend.http import HttpDecisions
from hansard._config.settings import load_settings
from hansard._gate.gate import Gate
from hansard.chat import ChatGate, TextChannel
from hansard.errors import (
    DecisionConflict,
    DecisionRefused,
    GateUnavailable,
    NotApproved,
)
from hansard_store.principals.model import Scope
from tests.instrumentation.gating.gates import restarted, state_of
from tests.journeys.processes import Serving, environment, hosting
from tests.journeys.processes import hansard as run_command
from tests.signing import add_token, credential
from tests.stored_bytes import stored_bytes

pytestmark = pytest.mark.slow

SECRET = "sk-proj-" + "z9Y8x7W6v5U4t3S2" * 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture
def decisions(server: Serving, tmp_path: Path) -> Iterator[HttpDecisions]:
    made = HttpDecisions(load_settings({"endpoint": server.http, "data": tmp_path}, {}))
    yield made
    made.close()


@pytest.fixture
def ran() -> list[Any]:
    return []


@pytest.fixture
def gate(decisions: HttpDecisions, ran: list[Any]) -> Gate:
    @hansard.tool(effect="write", describe="Send to {to}", undo=lambda a, r: ("recall", {"n": r}))
    def send(to: str, body: str = "Hello") -> int:
        ran.append((to, body))
        return len(ran)

    @hansard.tool(effect="write")
    async def asend(to: str) -> None:
        ran.append(to)

    @hansard.tool(effect="read")
    def look(what: str) -> str:
        return what.upper()

    return Gate(tools=[send, asend, look], decisions=decisions, agent="clerk")


def post(server: Serving, path: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"content-type": "application/json", **credential(server.data, path)}
    request = urllib.request.Request(f"{server.http}{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        found: dict[str, Any] = json.load(response)
        return found


def refusal(server: Serving, path: str, body: dict[str, Any]) -> str:
    """Return why a request is refused with 409."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(server, path, body)
    assert refused.value.code == 409
    return str(json.load(refused.value)["error"]["message"])


def approve(server: Serving, identity: str, **more: Any) -> None:
    post(server, f"/v1/approvals/{identity}/approve", {"by": "ana", **more})


def test_a_call_is_asked_about_approved_and_run_over_http(
    server: Serving, gate: Gate, ran: list[Any]
) -> None:
    answer = gate.call("send", {"to": "maria@acme.com"}).for_model()
    identity = answer["approval_id"]
    with pytest.raises(NotApproved):
        gate.run(identity)
    approve(server, identity)

    assert ran == []
    assert gate.run(identity).result == 1
    with pytest.raises(DecisionConflict, match=r"claimed already|run already"):
        gate.run(identity)
    assert ran == [("maria@acme.com", "Hello")]
    assert state_of(gate, identity) == ("approved", "done")


def test_a_waiting_call_polls_until_it_is_decided(
    server: Serving, gate: Gate, ran: list[Any]
) -> None:
    gate.wait_s = math.inf

    def decide() -> None:
        while not (found := gate.decisions.approvals(status="awaiting", tool="send")):
            threading.Event().wait(0.005)
        approve(server, found[0]["approval_id"], arguments={"to": "ann@acme.com", "body": "Hi"})

    with ThreadPoolExecutor(1) as other:
        decided = other.submit(decide)
        answer = gate.call("send", {"to": "maria@acme.com"}).for_model()
        decided.result(30)

    assert (answer["status"], answer["result"]) == ("executed", 1)
    assert ran == [("ann@acme.com", "Hi")]


@pytest.mark.covers("PO-22")
def test_a_waiting_call_goes_on_when_somebody_approves_on_the_command_line(
    server: Serving, gate: Gate, ran: list[Any]
) -> None:
    gate.wait_s = math.inf
    answers: list[Any] = []
    asked = {"to": "cli@acme.com"}
    call = threading.Thread(target=lambda: answers.append(gate.call("send", asked).for_model()))
    call.start()
    while not (found := gate.decisions.approvals(status="awaiting", tool="send")):
        threading.Event().wait(0.005)

    told = run_command(
        "approvals", "approve", found[0]["approval_id"][-8:], "--data", str(server.data)
    )
    call.join(30)

    assert told.returncode == 0, told.stderr
    assert ran == [("cli@acme.com", "Hello")]
    assert answers == [1]


def test_an_async_call_waits_in_another_thread(server: Serving, gate: Gate, ran: list[Any]) -> None:
    async def both() -> Any:
        gate.wait_s = math.inf
        call = asyncio.create_task(gate.acall("asend", {"to": "maria@acme.com"}))
        found: list[Any] = []
        for _ in range(1000):
            found = await asyncio.to_thread(
                gate.decisions.approvals, status="awaiting", tool="asend"
            )
            if found:
                break
        await asyncio.to_thread(approve, server, found[0]["approval_id"])
        return await call

    assert asyncio.run(both()).result is None
    assert ran == ["maria@acme.com"]


def test_a_reading_call_has_its_events_before_and_after(server: Serving, gate: Gate) -> None:
    assert gate.call("look", {"what": "maria"}).for_model() == "MARIA"

    events = json.loads(server.get("/v1/events?action=look"))["items"]
    assert [one["type"] for one in events] == ["tool.returned", "tool.called"]
    assert len({one["subject"] for one in events}) == 1
    assert b"maria" not in server.get("/v1/events?action=look").lower()


@pytest.mark.covers("CG-18")
def test_after_a_restart_the_same_program_may_run_it_and_another_may_not(
    server: Serving, gate: Gate, ran: list[Any], tmp_path: Path
) -> None:
    identity = gate.call("send", {"to": "maria@acme.com"}).for_model()["approval_id"]
    approve(server, identity)
    stranger = HttpDecisions(load_settings({"endpoint": server.http, "data": tmp_path / "b"}, {}))

    other = restarted(gate)
    other._decisions = stranger
    with pytest.raises(DecisionConflict) as caught:
        other.run(identity)
    stranger.close()
    restarted(gate).run(identity)

    assert (caught.value.code, len(ran)) == ("bad_token", 1)
    assert list((tmp_path / "proposals").iterdir()) == []


@pytest.mark.covers("CG-25")
def test_a_secret_does_not_leave_the_process(
    server: Serving, gate: Gate, ran: list[Any], tmp_path: Path
) -> None:
    first, second = (
        gate.call("send", {"to": "maria@acme.com", "body": f"Use {SECRET}"}).for_model()[
            "approval_id"
        ]
        for _ in range(2)
    )
    for identity in (first, second):
        approve(server, identity)

    with pytest.raises(DecisionConflict) as caught:
        restarted(gate).run(first)
    gate.run(second)

    shown = json.loads(server.get(f"/v1/approvals/{second}"))
    assert caught.value.code == "must_repropose"
    assert ran == [("maria@acme.com", f"Use {SECRET}")]
    assert shown["arguments"]["body"].startswith("[secret: ")
    files = stored_bytes(server.data, tmp_path)
    assert files
    assert [path for path, content in files.items() if SECRET.encode() in content] == []


@pytest.mark.covers("CG-28")
def test_how_a_call_is_undone_is_told_with_its_result(server: Serving, gate: Gate) -> None:
    identity = gate.call("send", {"to": "maria@acme.com"}).for_model()["approval_id"]
    approve(server, identity)
    gate.run(identity)

    made = post(server, f"/v1/approvals/{identity}/undo", {"by": "ana"})

    assert (made["tool"], made["arguments"], made["undo_of"]) == ("recall", {"n": 1}, identity)


@pytest.mark.covers("CG-17")
def test_a_lost_call_is_settled_over_http(server: Serving, gate: Gate, ran: list[Any]) -> None:
    identity = gate.call("send", {"to": "maria@acme.com"}).for_model()["approval_id"]
    approve(server, identity)
    address = f"/v1/approvals/{identity}/settle"
    told = {"outcome": "did_not_run", "note": "looked"}

    early = refusal(server, address, told)
    gate.decisions.claim(identity, {"arguments": {"to": "maria@acme.com", "body": "Hello"}})
    running = refusal(server, address, told)

    assert "has not begun" in early
    assert "is claimed" in running
    assert ran == []


@pytest.mark.covers("CG-21")
def test_without_a_server_nothing_runs(
    server: Serving, gate: Gate, ran: list[Any], tmp_path: Path
) -> None:
    identity = gate.call("send", {"to": "maria@acme.com"}).for_model()["approval_id"]
    approve(server, identity)
    nobody = load_settings({"endpoint": "http://127.0.0.1:9", "data": tmp_path}, {})
    gate._decisions = HttpDecisions(nobody)

    for call in (
        lambda: gate.call("send", {"to": "maria@acme.com"}).for_model(),
        lambda: gate.call("look", {"what": "x"}).for_model(),
        lambda: gate.run(identity),
    ):
        with pytest.raises(GateUnavailable):
            call()
    assert ran == []


PROGRAM = """
import sys
import hansard

@hansard.tool(effect="write", describe="Send to {to}")
def send(to: str): return f"sent to {to}"

hansard.init()
with hansard.start_run("clerk") as run:
    identity = send("maria@acme.com")["approval_id"]
    hansard.flush()
    print(run.run_id, identity, flush=True)
    sys.stdin.readline()
    hansard.approvals.run(identity)
"""


@pytest.mark.covers("PO-05", "PO-19", "UI-07")
def test_a_run_is_blocked_while_its_call_waits_and_shows_both_steps_after(
    server: Serving, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(HANSARD_ENDPOINT=server.http, HANSARD_DATA=str(tmp_path)),
    ) as program:
        assert program.stdout is not None
        run_id, identity = program.stdout.readline().split()
        waiting = json.loads(server.get(f"/v1/runs/{run_id}"))["status"]
        approve(server, identity)
        program.communicate("\n", timeout=30)

    ended = json.loads(server.get(f"/v1/runs/{run_id}"))
    steps = json.loads(server.get(f"/v1/runs/{run_id}/steps"))["items"]
    asked, ran = (one for one in steps if one["name"] == "execute_tool send")
    told = json.loads(server.get(f"/v1/steps/{ran['step_id']}"))
    assert (program.returncode, waiting, ended["status"]) == (0, "blocked", "ok")
    assert told["tool"]["result"] == "sent to maria@acme.com"
    assert told["attributes"]["hansard.approval.id"] == identity
    assert asked["span_id"] in json.dumps(told["links"])
    assert json.loads(server.get(f"/v1/approvals/{identity}"))["step_id"] == asked["step_id"]


def test_a_program_decides_with_the_token_of_a_person_and_never_with_its_own(
    server: Serving, tmp_path: Path
) -> None:
    own = add_token(server.data, "program", *Scope)
    settings = load_settings({"endpoint": server.http, "data": tmp_path, "token": own}, {})
    decisions = HttpDecisions(settings)
    asked = [
        decisions.propose({"tool": "send", "arguments": {"to": name}, "effect": "write"})
        for name in ("ann", "bob")
    ]
    with Gate(tools=[], decisions=decisions, agent="clerk"):
        first, second = (one["approval_id"] for one in asked)

        with pytest.raises(DecisionRefused, match="hansard tokens add") as unknown:
            approvals.approve(first, by="ana")
        with pytest.raises(DecisionRefused, match="requested this action") as mine:
            approvals.approve(first, token=own)
        granted = approvals.approve(first, token=add_token(server.data, "noor"))
        rejected = approvals.reject(second, token=add_token(server.data, "kim"), reason="no")
    decisions.close()

    assert (unknown.value.code, mine.value.code) == ("credentials_required", "self_approval")
    assert asked[0]["requested_by"] == ["program"]
    assert (granted["decided_by"], granted["decided_method"]) == ("noor", "token")
    assert (rejected["decided_by"], rejected["status"]) == ("kim", "rejected")


def test_a_chat_decides_with_the_token_of_its_person_alone(
    server: Serving, decisions: HttpDecisions, ran: list[Any]
) -> None:
    @hansard.tool(effect="write")
    def send(to: str) -> str:
        ran.append(to)
        return "sent"

    said: list[str] = []
    tokens = {"noor": add_token(server.data, "noor-of-the-chat")}
    channel = TextChannel("chat-of-noor", said.append, decide_token=tokens.get)

    def agent(message: str) -> str:
        return str(talk.gate.call("send", {"to": message}).for_model()["message"])

    talk = ChatGate(channel, agent=agent, tools=[send], decisions=decisions)

    talk.handle("ann", by="eve")
    talk.handle("yes", by="eve")  # no token of hers
    refused, after_eve = said[-1], list(ran)
    talk.handle("yes", by="noor")

    assert after_eve == []
    assert "was not run" in refused
    assert "hansard tokens add" in refused
    assert ran == ["ann"]
    listed = json.loads(server.get("/v1/approvals?status=approved"))["items"]
    [stored] = [one for one in listed if one["channel"] == "chat-of-noor"]
    assert (stored["decided_by"], stored["decided_method"]) == ("noor-of-the-chat", "token")
