"""Reviews in a real browser: read and decided by keyboard."""

from __future__ import annotations

import re
import time

from playwright.sync_api import Page, expect

from tests.journeys.axe import violations
from tests.store.task_maker import TaskMaker
from tests.web.makers import RunMaker


def test_what_repeats_is_found_and_decided_by_keyboard(page: Page, runs: RunMaker) -> None:
    failing = TaskMaker(runs.store, now_ns=time.time_ns())
    failing.fail_often(7, "no such file: '/tmp/x.json'")
    failing.fail_often(5, tool="fetch_page")
    failing.detect()
    failing.close()
    page.goto("/")

    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.get_by_role("heading", name="Reviews")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/tasks/[0-9a-f]{32}$"))
    expect(page.locator("#h-task")).to_have_text("The tool run_tests keeps failing in the same way")
    page.get_by_label("Why, or what is to be done").fill("mend the fixture")
    page.keyboard.press("Enter")
    expect(page.locator(".ask-done")).to_contain_text("Approved by ana")
    expect(page.locator("#task")).to_contain_text("mend the fixture")

    page.set_viewport_size({"width": 390, "height": 800})
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="It is done").click()
    expect(page.locator(".ask-done")).to_contain_text("Done")
