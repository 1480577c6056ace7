"""Reports sent to an address: by a cycle by hand and beside a server, and what goes wrong."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_web.app.config import load_config
from hansard_web.heartbeat.process import HeartbeatProcesses
from tests.instrumentation.clients.provider import Provider, Received, Reply, json_reply, providing
from tests.instrumentation.hooks.hook_events import eventually
from tests.journeys.processes import hansard
from tests.store.empty import empty_store

SECRET = "T00000000-B00000000-abcdef"


@pytest.fixture
def chat() -> Iterator[Provider]:
    with providing() as served:
        served.answer = lambda _: Reply([b"ok"], media_type="text/plain")
        yield served


def cycle(data: Path, webhook: str) -> dict[str, Any]:
    """Run one cycle of the heartbeat, which writes a report; return the phase of the report."""
    ended = hansard("heartbeat", "--once", "--json", "--data", str(data),
                    HANSARD_REPORT_WEBHOOK=webhook)  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert SECRET not in ended.stdout + ended.stderr
    phases = {one["name"]: one for one in json.loads(ended.stdout)["phases"]}
    report: dict[str, Any] = phases["report"]
    assert report["status"] == "done"
    return report


def not_sent(data: Path) -> list[str]:
    """Return what the diagnostics say of reports that were not sent."""
    connection = apsw.Connection(str(data / "hansard.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = connection.execute("SELECT message FROM diagnostics WHERE signature = 'not_sent'")
        return [message for (message,) in found]
    finally:
        connection.close()


def test_a_new_report_is_sent_once(tmp_path: Path, chat: Provider) -> None:
    data = empty_store(tmp_path / "data").path
    address = f"{chat.address}/hooks/{SECRET}?wait=true"
    (data / "hansard.toml").write_text(f'report_webhook = "{address}"\nrecipients = ["ana"]\n')

    first = cycle(data, "")
    again = hansard("heartbeat", "--once", "--data", str(data))  # no report is due

    assert again.returncode == 0
    [sent] = chat.received
    assert sent.path == f"/hooks/{SECRET}?wait=true"
    assert sent.headers["content-type"] == "application/json"
    name = first["figures"]["report"]
    page = (data / "reports" / f"{name}.md").read_text(encoding="utf-8")
    assert sent.json == {"text": page, "report": name, "recipients": ["ana"]}
    assert (first["figures"]["sent"], not_sent(data)) == (True, [])
    assert not (data / "reports" / f"{name}.ack").exists()  # sent is not read


def test_a_server_s_heartbeat_sends_too_and_shows_nobody_the_address(
    tmp_path: Path, chat: Provider
) -> None:
    data = empty_store(tmp_path / "data").path
    seen: set[bytes] = set()

    def look(_: Received) -> Reply:
        seen.update(command_lines())
        return json_reply({})

    chat.answer = look
    given = {"data": str(data), "report_webhook": f"{chat.address}/hooks/{SECRET}"}

    # What `hansard serve --heartbeat` starts; the shortest interval of the command is a minute.
    with HeartbeatProcesses(load_config(given, {}), every_s=0.5).working():
        assert eventually(lambda: seen)  # the reply looks while the sender waits for it

    assert any(b"heartbeat" in line for line in seen)
    assert not [line for line in seen if SECRET.encode() in line]


def command_lines() -> set[bytes]:
    """Return the arguments of every process, as each user of the machine reads them."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.add(path.read_bytes())
        except OSError:  # it ended meanwhile
            continue
    return found


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply([b"no"], status=500), "answered 500"),
        (Reply([], status=302, headers={"location": "/elsewhere"}), "answered 302"),
        (Reply([b"half"], breaks_off=True), "does not speak HTTP: IncompleteRead"),
    ],
)
def test_a_refused_report_fails_no_phase(
    tmp_path: Path, chat: Provider, reply: Reply, reason: str
) -> None:
    data = empty_store(tmp_path / "data").path
    chat.answer = lambda _: reply

    phase = cycle(data, f"{chat.address}/hooks/{SECRET}")

    assert len(chat.received) == 1
    assert phase["figures"]["sent"] is False
    assert phase["summary"].endswith(", not sent")
    [message] = not_sent(data)
    assert message.endswith(f"was not sent: 127.0.0.1 {reason}")
    assert SECRET not in message


def test_an_address_that_never_answers_is_not_waited_for(tmp_path: Path, chat: Provider) -> None:
    data = empty_store(tmp_path / "data").path
    held = threading.Event()
    chat.answer = lambda _: Reply([held])

    began_s = time.monotonic()
    phase = cycle(data, f"{chat.address}/hooks/{SECRET}")
    took_s = time.monotonic() - began_s
    held.set()

    assert phase["figures"]["sent"] is False
    assert took_s < 40
    assert not_sent(data)[0].endswith("did not answer within 5 s")


def test_an_address_without_a_server_fails_no_phase(tmp_path: Path) -> None:
    data = empty_store(tmp_path / "data").path

    assert cycle(data, f"http://127.0.0.1:9/hooks/{SECRET}")["figures"]["sent"] is False
    assert "cannot be reached" in not_sent(data)[0]


def test_an_address_that_is_none_is_refused_without_showing_it(tmp_path: Path) -> None:
    data = empty_store(tmp_path / "data").path

    ended = hansard("heartbeat", "--once", "--data", str(data),
                    HANSARD_REPORT_WEBHOOK=f"chat.example.com/{SECRET}")  # fmt: skip

    assert ended.returncode == 2
    assert "HANSARD_REPORT_WEBHOOK" in ended.stderr
    assert SECRET not in ended.stderr
