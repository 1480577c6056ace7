"""Reports in a real browser: reached and acknowledged by keyboard, wide and narrow."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Page, expect

from hansard_collector.heartbeat.cycle import Heartbeat
from hansard_collector.judges import Judges
from tests.journeys.axe import violations
from tests.store.task_maker import TaskMaker
from tests.web.makers import RunMaker


@pytest.mark.covers("UI-20")
def test_the_report_of_a_heartbeat_is_read_and_acknowledged(page: Page, runs: RunMaker) -> None:
    failing = TaskMaker(runs.store, now_ns=time.time_ns())
    failing.fail_often(7, "no such file: '/tmp/x.json'")
    failing.close()
    for _ in range(2):
        Heartbeat(runs.folder, Judges()).run()
    page.goto("/")

    page.keyboard.press("g")
    page.keyboard.press("w")
    expect(page.get_by_role("heading", name="Reports", exact=True)).to_be_visible()
    expect(page.locator(".report")).to_contain_text("7 calls failed in the last 24 hours")
    assert violations(page) == []
    page.get_by_role("button", name="I have read it").press("Enter")
    expect(page.locator(".acks")).to_contain_text("ana")

    page.set_viewport_size({"width": 390, "height": 800})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
