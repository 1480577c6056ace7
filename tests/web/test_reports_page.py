"""Reports: the newest one rendered, who has read it, and what it is made of."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_collector.reports import ReportSettings, write_report
from hansard_store.heartbeat import CycleLog, PhaseRecord
from hansard_store.memory.service import MemoryService
from hansard_store.reports.files import Reports
from hansard_web.app.config import WebSettings
from tests.signing import session_of
from tests.store.task_maker import TaskMaker
from tests.web.conftest import MakeClient
from tests.web.forms import form_token
from tests.web.html import parse
from tests.web.makers import RunMaker

HOUR = 3_600 * 10**9
HOSTILE = "<script>alert(1)</script>`**x**"


@pytest.fixture
def failing(runs: RunMaker) -> Iterator[TaskMaker]:
    maker = TaskMaker(runs.store, now_ns=time.time_ns())
    yield maker
    maker.close()


def page(client: TestClient, path: str = "/reports", status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.text[-2000:]
    return answer.text


def report(maker: TaskMaker, *, ago_ns: int = 0, **settings: Any) -> str:
    given = ReportSettings(**settings)
    return write_report(maker.store.folder, given, now_ns=maker.now_ns - ago_ns).report.name


def cycle(maker: TaskMaker, number: int, *, ago_ns: int, **figures: Any) -> None:
    at_ns, cycle_id = maker.now_ns - ago_ns, f"{number:032x}"
    log = CycleLog(maker.store.folder, clock=lambda: at_ns)
    log.begin(cycle_id, origin="server")
    step = f"{cycle_id}-{number:016x}"
    log.add(PhaseRecord(cycle_id, "maintenance", step, "done", at_ns, at_ns + 7 * 10**6,
                        "two contradictions", figures))  # fmt: skip
    log.add(PhaseRecord(cycle_id, "scan", step, "failed", at_ns, at_ns, "no net", {}))
    log.end(cycle_id)
    log.close()


def test_an_empty_page_says_which_command_fills_it(client: TestClient) -> None:
    text = page(client)

    assert "No report yet" in text
    assert "hansard report" in text
    assert 'aria-current="page">Reports<' in text


@pytest.mark.covers("UI-20", "DI-27")
def test_the_newest_report_stands_beside_what_it_is_made_of(
    client: TestClient, failing: TaskMaker
) -> None:
    failing.fail_often(9, "no such file: /tmp/a.txt")
    (task,) = [one.task for one in failing.detect()]
    for number in (1, 2, 3):
        cycle(failing, number, ago_ns=number * HOUR, contradictions_found=number, stale_entries=4)
    book = MemoryService(failing.store.folder)
    claim = book.write_json({
        "writer": "app", "memory_type": "note", "subject": "tests", "content": "all tests pass",
        "namespace": {"project": "shop"},
    })["memory"]["memory_id"]  # fmt: skip
    evidence = f"{'ab' * 16}-{'cd' * 8}"
    book.write_json({
        "writer": "post_step_summarizer", "memory_type": "correction", "subject": "tests",
        "attribute": "correction 1", "content": "3 of 5 tests failed", "step_id": evidence,
        "namespace": {"project": "shop"},
        "metadata": {"origin": "evaluation", "corrects": claim, "evidence": [evidence]},
    })  # fmt: skip
    book.close()
    name = report(failing)

    text = page(client)

    whole = parse(text)
    shown = whole.one("article", class_="report").text
    for words in (
        "1 review waits for a person; 9 calls failed in the last 24 hours.",
        "tool run_tests, 9 times", "no such file: /tmp/a.txt",
        "correction of tests: 3 of 5 tests failed",
    ):  # fmt: skip
        assert words in shown
    assert task is not None
    for href in (
        f"/tasks/{task.task_id}", f"/tasks/{task.task_id[-8:]}", f"/memory/{claim}",
        f"/steps/{evidence}", f"/reports/{name}", "/runs/" + f"{3:032x}",
    ):  # fmt: skip
        assert f'href="{href}"' in text, href
    for words in ("two contradictions", "no net", "all tests pass", "the last 3 runs", "7 ms"):
        assert words in text
    assert text.count('class="spark"') == 2
    assert "Nobody yet." in text


@pytest.mark.covers("UI-20", "DI-25")
def test_a_report_is_acknowledged_by_a_plain_form_as_the_one_who_is_signed_in(
    client: TestClient, failing: TaskMaker
) -> None:
    name = report(failing)
    csrf = form_token(page(client))

    forged = client.post(f"/reports/{name}/ack", data={"by": "kim"})
    done = client.post(f"/reports/{name}/ack", data={"csrf": csrf, "by": "kim"})
    after = page(client)

    (ack,) = Reports(failing.store.folder).get(name).acks
    assert (forged.status_code, done.status_code) == (403, 303)
    assert done.headers["location"] == f"/reports/{name}"
    assert (ack.who, ack.method) == ("ana", "session")
    assert "I have read it" not in after
    assert "acknowledged" in after


@pytest.mark.covers("DI-28")
def test_each_recipient_has_a_line_and_the_next_one_is_named_after_a_time(
    make_client: MakeClient, failing: TaskMaker
) -> None:
    settings = WebSettings(recipients=("kim", "ana", "lee"), report_escalation_ns=HOUR)
    client = make_client(settings)
    client.cookies.update(session_of(failing.store.folder))
    report(failing, ago_ns=HOUR + HOUR // 2)

    text = page(client)

    for words in ("waits for ana", "did not answer in time", "comes later", "passed to ana"):
        assert words in text


def test_recorded_words_are_text_and_nothing_else(client: TestClient, failing: TaskMaker) -> None:
    failing.fail_often(5, HOSTILE, tool=HOSTILE)
    failing.detect()
    report(failing)

    text = page(client)

    assert "<script>alert" not in text
    assert "<strong>x" not in text


def test_a_report_that_is_none_is_not_found(client: TestClient) -> None:
    page(client, "/reports/REPORT-20200101T000000Z", 404)
    page(client, "/reports/key", 404)


def test_without_signing_in_nothing_is_acknowledged(
    make_client: MakeClient, failing: TaskMaker
) -> None:
    name = report(failing)
    client = make_client()
    client.auth = None

    text = page(client)

    assert "You are not signed in" in text
    answer = client.post(f"/reports/{name}/ack", data={})
    assert answer.headers["location"].startswith("/signin")
    assert Reports(failing.store.folder).get(name).acks == ()
