"""Errors in a real browser: from the list of runs to the causes, and closing one by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.axe import violations
from tests.web.makers import RunMaker
from tests.web.test_errors_page import HOSTILE, Failing


@pytest.mark.slow
def test_the_causes_of_36_failed_runs_are_one_click_away(page: Page, runs: RunMaker) -> None:
    failing = Failing(runs)
    for number in range(36):
        failing.fail(f"cause {'abc'[number % 3]} of order {number}", tool=f"tool_{number % 3}")
    page.goto("/?status=error&kind=any")
    expect(page.locator(".run-error").first).to_contain_text("ToolError: cause")

    page.get_by_role("link", name="Errors", exact=True).first.click()

    expect(page.locator("table.errors tbody tr")).to_have_count(3)
    expect(page.locator("table.errors tbody tr").first).to_contain_text("12")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("tool_")
    page.get_by_label("Note", exact=True).fill("the provider was down")
    page.get_by_role("button", name="Close").click()
    expect(page.locator(".err-head")).to_contain_text("closed")
    expect(page.locator(".err-history")).to_contain_text("the provider was down")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_messages_fit_and_nothing_is_inaccessible(
    page: Page, runs: RunMaker, scheme: str
) -> None:
    failing = Failing(runs)
    failing.fail(HOSTILE, tool="x" * 400, agent="\u202e" + "a" * 300)
    failing.fail("timed out")
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for width in (1440, 1024, 768, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto("/errors")
        hrefs = [one.get_attribute("href") for one in page.locator("table.errors .rowlink").all()]
        for path in ("/errors", *hrefs, "/errors?state=closed", "/?status=error&kind=any"):
            page.goto(path or "")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            if width in (1440, 390):
                assert violations(page) == [], (path, width)
