"""Notifications as a receiver gets them: signed, once, after kill -9, and only where configured."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import StatusCode
from standardwebhooks import Webhook, WebhookVerificationError

from bench import notifications as campaign
from hansard_collector.notifications.messages import Webhook as Endpoint
from hansard_collector.notifications.work import NotificationWork
from hansard_store.approvals.records import Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.config import load_config
from tests.instrumentation.clients.provider import Provider, Received, Reply, json_reply, providing
from tests.journeys.processes import ServingProcess, hansard, serving
from tests.signing import add_token, bearer

WAIT_S = 30.0


@pytest.fixture
def chat() -> Iterator[Provider]:
    with providing() as served:
        served.answer = lambda _: json_reply({})
        yield served


def sending_to(address: str) -> tuple[str, ...]:
    return "--outbound", "on", "--notify", address, "--public-url", "https://traces.example.com/"


def messages(chat: Provider, type: str = "") -> list[dict[str, Any]]:
    """Return what was received, of one type or all."""
    found = [one.json for one in list(chat.received)]
    return [one for one in found if not type or one["type"] == type]


def wait_for(chat: Provider, type: str, count: int = 1) -> list[dict[str, Any]]:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        if len(found := messages(chat, type)) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{count} of {type} were not received: {messages(chat)}")


def propose(server: ServingProcess, **more: Any) -> str:
    body = {"tool": "send_mail", "arguments": {"to": "bo"}, "agent": "mailer", **more}
    answer = httpx2.post(f"{server.http}/v1/approvals", json=body, timeout=30)
    assert answer.is_success, answer.text
    return str(answer.json()["approval_id"])


def decide(server: ServingProcess, approval_id: str, verb: str, **body: Any) -> None:
    token = bearer(add_token(server.data))
    url = f"{server.http}/v1/approvals/{approval_id}/{verb}"
    answer = httpx2.post(url, json=body, headers=token, timeout=30)
    assert answer.is_success, answer.text


@pytest.mark.slow
def test_an_approval_is_notified_of_when_it_waits_and_when_it_is_decided(
    tmp_path: Path, chat: Provider
) -> None:
    with serving(tmp_path, *sending_to(f"{chat.address}/hook")) as server:
        waiting = propose(server)
        decide(server, waiting, "revise", note="the password is hunter2")
        (message,) = wait_for(chat, "approval.waiting")
        (decision,) = wait_for(chat, "approval.decided")
        brief = propose(server, expires_in_s=1)
        (expired,) = wait_for(chat, "approval.expired")
        listed = httpx2.get(f"{server.http}/v1/notifications", timeout=30).json()

    assert message["data"]["approval_id"] == waiting
    assert message["data"]["url"] == f"https://traces.example.com/approvals/{waiting}"
    assert "send_mail" in message["text"]
    assert (decision["data"]["decision"], decision["data"]["by"]) == ("revised", "ana")
    assert expired["data"]["approval_id"] == brief
    assert not [one for one in chat.received if b"hunter2" in one.body or b'"bo"' in one.body]
    statuses = [one["deliveries"][0]["status"] for one in listed["items"]]
    assert statuses == ["delivered"] * len(chat.received)
    assert {one["id"] for one in listed["items"]} == {one["id"] for one in messages(chat)}


@pytest.mark.slow
def test_a_message_is_signed_as_standard_webhooks_are(tmp_path: Path, chat: Provider) -> None:
    with serving(tmp_path, *sending_to(f"{chat.address}/hook")) as server:
        propose(server)
        wait_for(chat, "approval.waiting")
    secret = hansard("notifications", "secret", "--data", str(tmp_path)).stdout.strip()
    (received,) = chat.received

    verified = Webhook(secret).verify(received.body, received.headers)

    assert verified == received.json
    assert received.headers["webhook-id"] == received.json["id"]
    altered = received.body.replace(b"send_mail", b"read_mail")
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(altered, received.headers)


@pytest.mark.slow
def test_what_fails_is_sent_again_under_its_id_until_it_is_taken(
    tmp_path: Path, chat: Provider
) -> None:
    chat.replies.extend(
        (Reply([b"no"], status=503), Reply([b"half"], breaks_off=True), json_reply({}))
    )

    with serving(tmp_path, *sending_to(f"{chat.address}/hook")) as server:
        propose(server)
        tries = wait_for(chat, "approval.waiting", 3)
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            (one,) = httpx2.get(f"{server.http}/v1/notifications", timeout=30).json()["items"]
            if one["deliveries"][0]["status"] == "delivered":
                break
            time.sleep(0.05)

    (delivery,) = one["deliveries"]
    assert len({message["id"] for message in tries}) == 1
    assert (delivery["status"], delivery["attempts"], delivery["http_status"]) == (
        "delivered", 3, 200,
    )  # fmt: skip


@pytest.mark.slow
def test_nothing_is_sent_nor_piles_up_while_outbound_is_off(tmp_path: Path, chat: Provider) -> None:
    address = f"{chat.address}/hook"
    with serving(tmp_path, "--notify", address) as server:
        decide(server, propose(server), "approve")
        off = httpx2.get(f"{server.http}/v1/notifications", timeout=30).json()
        token = bearer(add_token(server.data))
        refused = httpx2.post(f"{server.http}/v1/notifications/test", headers=token, timeout=30)
        waiting = propose(server)

    with serving(tmp_path, *sending_to(address)):
        (message,) = wait_for(chat, "approval.waiting")

    assert (off["items"], off["endpoints"]) == ([], [])
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "notifications_off")
    # What still waits when it is switched on is notified of; what was decided before is not.
    assert message["data"]["approval_id"] == waiting
    assert messages(chat, "approval.decided") == []


@pytest.mark.slow
def test_one_slow_endpoint_does_not_hold_up_another_and_each_gets_its_subjects(
    tmp_path: Path, chat: Provider
) -> None:
    release = threading.Event()

    def answer(request: Received) -> Reply:
        if request.path == "/slow":
            release.wait(WAIT_S)
        return json_reply({})

    chat.answer = answer
    slow, quick = f"{chat.address}/slow", f"{chat.address}/quick"
    arguments = ("--outbound", "on", "--notify", slow, "--notify", f"review+chain={quick}")
    try:
        with serving(tmp_path, *arguments) as server:
            propose(server)
            sent = hansard("notifications", "test", "--data", str(tmp_path), *arguments, "--json")
            assert sent.returncode == 0, sent.stderr
            until = time.monotonic() + WAIT_S
            while time.monotonic() < until and "/quick" not in paths(chat):
                time.sleep(0.05)
            assert "/quick" in paths(chat)
            release.set()
    finally:
        release.set()

    of_quick = [one.json["type"] for one in chat.received if one.path == "/quick"]
    assert set(of_quick) == {"test"}


def paths(chat: Provider) -> set[str]:
    return {one.path for one in list(chat.received)}


@pytest.mark.slow
def test_an_approval_of_an_embedded_program_is_notified_of_by_the_server(
    tmp_path: Path, chat: Provider
) -> None:
    with serving(tmp_path, *sending_to(f"{chat.address}/hook")):
        with ApprovalService(tmp_path) as store:
            made = store.propose(Proposal("refund", {"amount": 3}, agent="desk"))

        (message,) = wait_for(chat, "approval.waiting")

    assert message["data"]["approval_id"] == made.approval.approval_id
    assert (message["data"]["tool"], message["data"]["agent"]) == ("refund", "desk")


@pytest.mark.slow
def test_names_of_tools_and_agents_cannot_make_links_or_mentions_in_a_chat(
    tmp_path: Path, chat: Provider
) -> None:
    with serving(tmp_path, *sending_to(f"{chat.address}/hook")) as server:
        propose(server, agent="<!channel> <https://evil.example|click> @here")
        (message,) = wait_for(chat, "approval.waiting")

    first, _, link = message["text"].partition("\n")
    assert "<" not in message["text"]
    assert "`&lt;!channel&gt; &lt;https://evil.example|click&gt; @here`" in first
    assert link.startswith("https://traces.example.com/approvals/")


@pytest.mark.slow
def test_an_altered_audit_log_is_notified_of_once(tmp_path: Path, chat: Provider) -> None:
    with serving(tmp_path) as server:
        propose(server)
    with closing(apsw.Connection(str(tmp_path / "hansard.db"))) as connection:
        trigger = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'event_stays'").get
        connection.execute("DROP TRIGGER event_stays")
        connection.execute("UPDATE event SET who = 'somebody' WHERE seq = 1")
        connection.execute(str(trigger))
    work = NotificationWork(
        DataFolder(tmp_path), [Endpoint(f"{chat.address}/hook")], pages="http://localhost"
    )

    work.look_at_chain()
    work.look_at_chain()
    with work.working():
        wait_for(chat, "chain.broken")

    assert len(messages(chat, "chain.broken")) == 1


@pytest.mark.slow
def test_an_altered_schema_is_notified_of_though_it_stops_decisions(
    tmp_path: Path, chat: Provider
) -> None:
    with serving(tmp_path, *sending_to(f"{chat.address}/hook")) as server:
        propose(server)
        with closing(apsw.Connection(str(tmp_path / "hansard.db"))) as connection:
            connection.execute("DROP TRIGGER event_stays")

        wait_for(chat, "schema.altered")
        time.sleep(1.5)

    assert len(messages(chat, "schema.altered")) == 1


@pytest.mark.slow
def test_none_is_lost_or_repeated_under_another_id_after_kill_9() -> None:
    figures = campaign.run(kills=2)

    assert [one.what for one in figures if not one.is_met] == []


def test_an_address_that_is_none_is_refused_at_the_start() -> None:
    for text in ("ftp://chat.example.com", "approvals=https://chat.example.com", "https://"):
        with pytest.raises(Exception, match="approval, review"):
            load_config({"notify": (text,)}, {})


def test_the_address_of_a_webhook_is_shown_nowhere(tmp_path: Path) -> None:
    secret = "T00000000-B00000000"
    address = f"http://127.0.0.1:9/hooks/{secret}"
    with serving(tmp_path, *sending_to(address)) as server:
        propose(server)
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            items = httpx2.get(f"{server.http}/v1/notifications", timeout=30).json()["items"]
            if items and items[0]["deliveries"][0]["error"]:
                break
            time.sleep(0.05)
        page = httpx2.get(f"{server.http}/notifications", timeout=30).text
        metrics = httpx2.get(f"{server.http}/metrics", timeout=30).text

    assert items[0]["deliveries"][0]["error"]
    assert secret not in json.dumps(items) + page + metrics
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


@pytest.mark.slow
def test_a_closed_error_that_returns_is_notified_of_once_until_it_is_closed_again(
    tmp_path: Path, chat: Provider
) -> None:
    with serving(tmp_path, *sending_to(f"{chat.address}/hook")) as server:
        fail(server, "the password hunter2 was refused")
        (group,) = httpx2.get(f"{server.http}/v1/errors", timeout=30).json()["items"]
        close(server, group["error_id"])
        fail(server, "the password hunter2 was refused")
        (first,) = wait_for(chat, "error_group.returned")
        fail(server, "the password hunter2 was refused")
        close(server, group["error_id"])
        fail(server, "the password hunter2 was refused")
        wait_for(chat, "error_group.returned", 2)

    assert first["data"]["error_group_id"] == group["error_id"]
    assert first["data"]["url"].endswith(f"/errors/{group['error_id']}")
    assert len(messages(chat, "error_group.returned")) == 2
    assert not [one for one in chat.received if b"hunter2" in one.body]


def fail(server: ServingProcess, message: str) -> None:
    """Send a run whose tool fails, as the stock exporter does."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(HttpExporter(f"{server.http}/v1/traces")))
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("execute_tool sign_in") as span:
        span.set_attribute("gen_ai.operation.name", "execute_tool")
        span.set_attribute("gen_ai.tool.name", "sign_in")
        span.record_exception(PermissionError(message))
        span.set_status(StatusCode.ERROR, message)
    provider.shutdown()


def close(server: ServingProcess, error_id: str) -> None:
    token = bearer(add_token(server.data))
    url = f"{server.http}/v1/errors/{error_id}/decide"
    answer = httpx2.post(url, json={"decision": "close"}, headers=token, timeout=30)
    assert answer.is_success, answer.text
