"""The demo as a person reads it: every page of its path, in a real browser, by clicks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.journeys.demo_story import Story
from tests.web.conftest import browser

__all__ = ["browser"]  # the fixture


@pytest.fixture
def demo(browser: Browser, story: Story) -> Iterator[Page]:
    """The first page of a demo; whatever its console says fails the test."""
    complaints: list[str] = []
    context = browser.new_context(base_url=story.address, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto("/")
    yield page
    context.close()
    assert complaints == []


@pytest.mark.covers("TS-25")
def test_a_person_finds_out_why_a_refund_needed_two_tries(demo: Page) -> None:
    expect(demo.locator("#run-count")).to_have_text("16 runs")
    demo.get_by_label("Filter", exact=True).fill("tool:issue_refund")
    expect(demo.locator("#run-count")).to_have_text("1 run")
    demo.locator("#runs .rowlink").click()

    expect(demo.locator("h1")).to_have_text("“Yes please, refund it.”")
    demo.locator("a", has_text=re.compile(r"^\s*errors")).click()
    failed = demo.get_by_role("row", name=re.compile("issue_refund")).first
    failed.locator(".tg-title").click()
    pane = demo.locator("#step")
    expect(pane).to_contain_text("the payment gateway did not answer within 200 ms")

    demo.get_by_label("Reading").get_by_role("link", name="Messages").click()
    expect(demo.locator("main")).to_contain_text("booked once")
    demo.get_by_label("Breadcrumb").get_by_role("link", name="order-a-1042").click()
    expect(demo.locator("main")).to_contain_text("arrived with a broken tank")


@pytest.mark.covers("TS-25")
def test_every_page_of_the_demo_opens_from_its_navigation(demo: Page) -> None:
    shown = {
        "Conversations": "order-b-2077",
        "Usage": "claude-sonnet-4-5",
        "Health": "all accounted for",
        "Runs": "research-assistant",
    }
    navigation = demo.get_by_role("navigation", name="Main")
    for name, words in shown.items():
        link = navigation.get_by_role("link", name=name, exact=True)
        if not link.is_visible():
            navigation.get_by_role("button", name="More").click()
        link.click()
        expect(demo.locator("main")).to_contain_text(words)

    demo.get_by_placeholder("Search everything").fill("refund policy")
    demo.keyboard.press("Enter")
    expect(demo.locator("mark").first).to_have_text(re.compile("refund", re.IGNORECASE))
