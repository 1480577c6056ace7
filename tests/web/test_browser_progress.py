"""What takes its time shows that it does; what is quick shows nothing; a form is sent once."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from hansard_store.approvals.service import ApprovalService
from tests.web.approvals import ask
from tests.web.conftest import Served
from tests.web.makers import RunMaker


def test_a_slow_page_shows_a_bar_and_a_quick_one_none(
    page: Page, served: Served, runs: RunMaker
) -> None:
    runs.run("one")
    ask(ApprovalService(served.app.state.site.folder, source="api"))
    page.goto("/events")
    page.evaluate(
        """() => { window.shown = 0; new MutationObserver(() => {
          if (!document.getElementById('progress').hidden) window.shown += 1;
        }).observe(document.getElementById('progress'), { attributes: true }); }"""
    )

    page.get_by_role("link", name="Verify", exact=True).click()
    expect(page.locator("#chain")).to_be_visible()
    held: list[Route] = []
    page.route("**/fragments/events/chain*", lambda route: held.append(route))
    page.get_by_role("link", name="Verify", exact=True).click()
    expect(page.locator("#progress")).to_be_visible()
    expect(page.locator("body")).to_have_attribute("aria-busy", "true")
    for route in held:
        route.continue_()

    expect(page.locator("#progress")).to_be_hidden()
    expect(page.locator("body")).not_to_have_attribute("aria-busy", "true")


def test_a_form_is_sent_once_however_often_it_is_clicked(page: Page, runs: RunMaker) -> None:
    runs.run("one")
    page.goto("/usage")
    sent: list[Route] = []
    page.route("**/theme", lambda route: (sent.append(route), route.continue_()))
    page.locator("[popovertarget=settings]").click()

    page.evaluate(
        """() => { const one = document.querySelector('#theme button[value=dark]');
        one.click(); one.click(); one.click(); }"""
    )

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert len(sent) == 1
    expect(page.locator("#progress")).to_be_hidden()
