"""Users and conversations in a browser: two clicks from the runs, on a phone, in both themes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.journeys.axe import violations
from tests.signing import session_of
from tests.web.conftest import Served
from tests.web.traces import Trace, asks, returns, said

SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
ADDRESSES = ("/users", "/users/ann", "/conversations", "/conversations?id=c")


def world(pipeline: Pipeline) -> None:
    for number, user in enumerate(("ann", "w" * 400, "\u202eevil", "ada+x@example.com"), 1):
        trace = Trace(f"{number:032x}", began_s_ago=600 - number)
        talk = "c" if user == "ann" else f"talk/{user}"
        trace.agent(1, name="desk", duration_s=4, user__id=user, gen_ai__conversation__id=talk)
        history = [said("user", "Where is order 7? " + "v" * 300)]
        request = asks("find_order", "call_1", {"id": 7})
        trace.chat(2, 1, history, request, 0.1)
        trace.tool(3, 1, "find_order", "call_1", 1, result="shipped")
        history += [request, returns("call_1", "shipped")]
        trace.chat(4, 1, history, said("assistant", "It was shipped."), 2)
        trace.send(pipeline)


@pytest.fixture(params=[(1440, "light"), (390, "dark"), (390, "light"), (1440, "dark")])
def tab(
    request: pytest.FixtureRequest, browser: Browser, served: Served, pipeline: Pipeline
) -> Iterator[Page]:
    world(pipeline)
    width, scheme = request.param
    context = browser.new_context(
        base_url=served.url, viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    cookies = session_of(served.app.state.site.folder).items()
    context.add_cookies([{"name": n, "value": v, "url": served.url} for n, v in cookies])
    yield context.new_page()
    context.close()


def test_pages_of_people_break_no_rule_and_do_not_scroll_sideways(tab: Page) -> None:
    for address in ADDRESSES:
        tab.goto(address)
        assert violations(tab) == [], address
        assert tab.evaluate(SIDEWAYS) == 0, address


def test_a_user_is_two_clicks_from_the_runs(page: Page, pipeline: Pipeline) -> None:
    world(pipeline)
    page.goto("/")

    page.get_by_role("navigation", name="Main").get_by_role("link", name="Users").click()
    page.get_by_role("link", name="ann", exact=True).click()

    expect(page.get_by_role("heading", level=1)).to_have_text("ann")


def test_hostile_ids_lead_to_their_own_page(page: Page, pipeline: Pipeline) -> None:
    world(pipeline)
    page.goto("/users")
    count = page.locator("tbody .rowlink").count()

    for number in range(count):
        page.goto("/users")
        link = page.locator("tbody .rowlink").nth(number)
        title = link.get_attribute("title") or ""
        link.click()
        expect(page.get_by_role("heading", level=1)).to_have_attribute("title", title)
        expect(page.locator("dl.figures dd").first).to_have_text("1")


def test_a_conversation_is_read_on_a_phone_with_tools_folded(
    page: Page, pipeline: Pipeline
) -> None:
    world(pipeline)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/conversations")
    title = page.locator("tbody th.title").first
    box = title.bounding_box()
    assert box is not None
    assert box["width"] > 120

    page.goto("/conversations?id=c")
    expect(page.locator("#messages .msg-read").get_by_text("It was shipped.")).to_be_visible()
    expect(page.locator("details.turn-tools .call").first).to_be_hidden()
    page.locator("details.turn-tools > summary").click()
    expect(page.locator("details.turn-tools .call").first).to_be_visible()
