"""Times of a page in the reader's zone with UTC under the pointer, or in UTC by choice."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from hansard_store.approvals.service import ApprovalService
from tests.signing import session_of
from tests.web.approvals import ask
from tests.web.conftest import Served
from tests.web.makers import RunMaker

TOKYO = "Asia/Tokyo"  # nine hours before UTC's day ends, and no summer time
TIME = re.compile(r"\b(\d\d):(\d\d):(\d\d)\b")


@pytest.fixture
def far(browser: Browser, served: Served) -> Iterator[Page]:
    """A tab of a reader in Tokyo."""
    context = browser.new_context(base_url=served.url, timezone_id=TOKYO)
    cookies = session_of(served.app.state.site.folder).items()
    context.add_cookies([{"name": n, "value": v, "url": served.url} for n, v in cookies])
    yield context.new_page()
    context.close()


def seconds_of(text: str) -> int:
    found = TIME.search(text)
    assert found, text
    hours, minutes, seconds = map(int, found.groups())
    return hours * 3600 + minutes * 60 + seconds


def test_times_are_local_with_utc_in_the_title(far: Page, served: Served, runs: RunMaker) -> None:
    runs.run("one")
    ask(ApprovalService(served.app.state.site.folder, source="api"))
    far.goto("/events")

    time = far.locator(".evs tbody time").first
    local, title = time.inner_text(), time.get_attribute("title") or ""
    assert title.endswith(" UTC")
    assert (seconds_of(local) - seconds_of(title)) % 86_400 == 9 * 3600
    expect(far.locator(".evs thead [data-zone]")).to_have_text("GMT+9")


def test_a_reader_who_chose_utc_reads_utc_on_every_page(
    far: Page, served: Served, runs: RunMaker
) -> None:
    runs.run("one")
    ask(ApprovalService(served.app.state.site.folder, source="api"))
    far.goto("/events")

    far.locator("[popovertarget=settings]").click()
    expect(far.get_by_role("button", name=f"Local {TOKYO}")).to_be_visible()
    far.get_by_role("button", name="UTC", exact=True).click()

    expect(far).to_have_url(re.compile("/events$"))
    time = far.locator(".evs tbody time").first
    assert seconds_of(time.inner_text()) == seconds_of(time.get_attribute("title") or "")
    expect(far.locator(".evs thead [data-zone]")).to_have_text("UTC")


def test_what_comes_in_later_is_local_too(far: Page, served: Served, runs: RunMaker) -> None:
    far.goto("/memory")

    far.evaluate(
        """document.querySelector('main').insertAdjacentHTML('beforeend',
        '<p><time id="new" datetime="2026-01-31T23:30:00Z">2026-01-31 23:30:00 UTC</time></p>')"""
    )

    expect(far.locator("#new")).to_have_text("2026-02-01 08:30:00 GMT+9")


def test_ages_say_ago_and_name_both_zones(far: Page, runs: RunMaker) -> None:
    runs.run("one")
    far.goto("/")

    age = far.locator("#runs time[data-age]").first
    expect(age).to_have_text(re.compile(r"now|ago$"))
    expect(age).to_have_attribute("title", re.compile(r"GMT\+9 · .* UTC$"))
