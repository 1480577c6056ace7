"""Thirteen questions that people debug with, answered in a real browser from `/` by few clicks.

A click is a click; typing a filter, or one brush, counts as one. Each answer is computed from what
was sent, and has to stand in the window, not only in the page.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.demo_store import demo_store
from tests.journeys.processes import Serving, hosting
from tests.signing import session_of
from tests.web.busy_team import BUDGET, CARD_ERROR, LONG_RUN_ERROR, SLOW_QUERY, Team, work

pytestmark = pytest.mark.slow

_NORM: Final = "Round once, at the end"  # what the demo's first run teaches its second


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server over the demo's store and a team's nine days, sent with the stock exporter."""
    with hosting(demo_store(tmp_path_factory)) as serving:
        team = Team()
        work(team)
        team.send(serving)
        yield serving


@dataclass
class Seeker:
    """Somebody with a question: counts clicks, and sees only what is in the window."""

    page: Page
    most: int = 2
    clicks: int = 0
    began: float = field(default_factory=time.monotonic)

    def click(self, what: Locator) -> None:
        """Click something that is in the window."""
        expect(what).to_be_in_viewport()
        what.click()
        self._count()

    def filter(self, words: str) -> None:
        """Type a filter into the list: one click."""
        box = self.page.get_by_role("combobox", name="Filter")
        box.fill(words)
        box.press("Enter")
        self.page.wait_for_url(re.compile(r"\?"))
        expect(self.page.locator("#run-count")).to_have_text(re.compile(r"^\d runs?$"))
        self._count()

    def sees(self, where: Locator, *words: str) -> None:
        """Find the words in something that is in the window."""
        for word in words:
            expect(where).to_contain_text(word)
        expect(where).to_be_in_viewport()

    def _count(self) -> None:
        self.clicks += 1
        assert self.clicks <= self.most, f"{self.clicks} clicks, at most {self.most}"

    def row(self, words: str) -> Locator:
        """Return a row of the list of runs."""
        return self.page.locator("#runs tr", has_text=words).first.locator(".rowlink")

    def step(self, title: str) -> Locator:
        """Return a row of a run's tree."""
        return self.page.locator("#rows [role=row]", has_text=title).first


@pytest.fixture
def seeker(browser: Browser, server: Serving, request: pytest.FixtureRequest) -> Iterator[Seeker]:
    """Somebody on the first page, at a window of 1440 by 900."""
    context = browser.new_context(base_url=server.http, viewport={"width": 1440, "height": 900})
    context.add_cookies(
        [
            {"name": name, "value": value, "url": server.http}
            for name, value in session_of(server.data).items()
        ]
    )
    page = context.new_page()
    page.goto("/")
    seeker = Seeker(page)
    yield seeker
    seconds = time.monotonic() - seeker.began
    request.node.user_properties.append(("clicks", seeker.clicks))
    request.node.user_properties.append(("seconds", round(seconds, 1)))
    context.close()


def money(cell: Locator) -> float:
    return float(cell.inner_text().strip().removeprefix("$"))


def test_which_run_failed_and_why(seeker: Seeker) -> None:
    seeker.click(seeker.page.get_by_role("link", name=re.compile(r"^errors \d")))
    seeker.sees(seeker.page.locator("#runs tr", has_text="carla").first, CARD_ERROR)
    seeker.click(seeker.row("carla"))

    seeker.sees(seeker.page.locator("#step h2").first, "refund")
    seeker.sees(seeker.page.locator("#step").get_by_text(CARD_ERROR).first)


def test_which_run_cost_most_and_why(seeker: Seeker) -> None:
    seeker.click(seeker.page.get_by_role("link", name="Cost"))
    seeker.click(seeker.page.locator("#runs .rowlink").first)

    seeker.sees(seeker.page.locator("h1"), "Summarise the contracts of 2019.")
    call = seeker.step("118 contracts, 3 renewed")
    seeker.sees(call.locator(".tg-in"), "412.0k")
    total = seeker.page.locator("#rows [role=row]").first.locator(".tg-cost")
    assert money(call.locator(".tg-cost")) > 0.9 * money(total)


def test_what_a_model_knew_at_a_step(seeker: Seeker) -> None:
    seeker.click(seeker.row("Find a laptop for the new designer"))
    seeker.click(seeker.step("We recommend Model X."))

    panel = seeker.page.locator("#step")
    seeker.sees(
        panel.locator(
            ":is(p, pre):visible", has_text="Write the recommendation: Model X, 2,400 EUR."
        )
    )
    expect(panel).not_to_contain_text(BUDGET)


def test_which_hand_off_lost_the_budget(seeker: Seeker) -> None:
    seeker.click(seeker.row("Find a laptop for the new designer"))
    seeker.click(seeker.page.locator("[data-reading]", has_text="Messages"))

    lost = seeker.page.locator(".talk-turn", has_text="hand-off planner → researcher")
    seeker.sees(lost)
    seeker.sees(seeker.page.locator(".talk :is(p, pre):visible", has_text=BUDGET))
    seeker.sees(
        seeker.page.locator(".talk").locator(
            ":is(p, pre):visible", has_text="List the best laptops"
        )
    )
    expect(seeker.page.locator(".talk :is(p, pre):visible", has_text=BUDGET)).to_have_count(1)


def test_why_an_item_was_not_in_the_prompt(seeker: Seeker) -> None:
    seeker.most = 3
    seeker.filter("tool:apply_patch")
    seeker.click(seeker.row("tests are not edited"))
    seeker.click(seeker.step("15 of 24 items"))

    item = seeker.page.locator("#step tr", has_text="CONVENTIONS.md").first
    seeker.sees(item, "No room left")


def test_what_is_different_between_a_good_run_and_a_bad_one(seeker: Seeker) -> None:
    seeker.most = 3
    quotes = seeker.page.locator("#runs tr", has_text="Quote 12 chairs")
    seeker.click(quotes.first.get_by_role("checkbox"))
    expect(seeker.page).to_have_url(re.compile("compare="))
    seeker.click(quotes.last.get_by_role("checkbox"))
    seeker.click(seeker.page.locator(".compare-bar .btn--primary"))

    changed = seeker.page.locator("main")
    seeker.sees(changed.get_by_text("gpt-4o-mini").first)
    seeker.sees(changed.get_by_text("Round everything").first)


def test_where_the_prompt_cache_broke(seeker: Seeker) -> None:
    seeker.click(seeker.row("Dear shop, about my invoice"))
    seeker.sees(seeker.page.locator(".run-totals"), "3")
    seeker.click(seeker.page.get_by_role("link", name=re.compile("cache break")))

    seeker.sees(seeker.page.locator("#step").get_by_text("14:0").first)


def test_who_approved_an_action(seeker: Seeker) -> None:
    seeker.click(seeker.page.get_by_role("link", name="Approvals", exact=True))

    seeker.sees(seeker.page.locator("article").get_by_text("approved by rosa").first)


def test_how_many_tokens_each_model_took_last_week(seeker: Seeker) -> None:
    seeker.click(seeker.page.get_by_role("link", name="Usage", exact=True))
    seeker.click(seeker.page.get_by_role("link", name="7 days"))

    row = seeker.page.get_by_role("row").filter(has=seeker.page.get_by_text("o3", exact=True))
    seeker.sees(row.first, "414.4k", "950")


def test_the_one_error_of_a_run_of_nine_hundred_steps(seeker: Seeker) -> None:
    seeker.filter("agent:importer")
    seeker.click(seeker.row("importer"))

    seeker.sees(seeker.page.locator("#step h2").first, "store_row")
    seeker.sees(seeker.page.locator("#step").get_by_text(LONG_RUN_ERROR))
    seeker.sees(seeker.page.locator("#rows [aria-selected=true]"), LONG_RUN_ERROR)


def test_which_user_has_had_most_errors(seeker: Seeker) -> None:
    seeker.click(seeker.page.get_by_role("link", name="Users", exact=True))
    seeker.click(seeker.page.get_by_role("link", name="Failed"))

    seeker.sees(seeker.page.locator("tbody tr").first, "carla@example.com", "6")


def test_which_tool_made_the_longest_run_slow(seeker: Seeker) -> None:
    seeker.click(seeker.page.get_by_role("link", name="Duration"))
    seeker.click(seeker.page.locator("#runs .rowlink").first)

    seeker.sees(seeker.step("search_orders"), "1 m 35 s", SLOW_QUERY[:20])


def test_what_a_run_remembered_from_an_earlier_one(seeker: Seeker) -> None:
    seeker.filter("tool:apply_patch")
    seeker.click(seeker.row("Make the failing test pass"))

    seeker.sees(seeker.page.locator(".run-head .mem-panel > summary", has_text="Memory"), _NORM)
