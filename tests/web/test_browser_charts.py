"""The overview and the latency page in a real browser: keys, a brush, figures, hostile names."""

from __future__ import annotations

import csv
import io
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.axe import violations
from tests.web.makers import RunMaker

HOUR = 3600
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
HOSTILE = ("<b onclick=alert(1)>bold</b>", "m" * 400, "نموذج-اللغة")
pytestmark = pytest.mark.slow


def some_hours(runs: RunMaker) -> None:
    for hour in range(6):
        for number in range(hour + 1):
            runs.run(
                f"answer {number}",
                age_s=hour * HOUR + 60,
                model="gpt-5" if number % 2 else "gpt-4o-mini-2024-07-18",
                tool="search_docs",
                status=2 if hour == 3 else 0,
            )


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_break_no_rule_of_accessibility(
    page: Page, runs: RunMaker, width: int, scheme: str
) -> None:
    some_hours(runs)
    for name in HOSTILE:
        runs.run("answer", agent=name, model=name, tool=name[:200], status=2)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")

    for address in ("/overview?since=24h", "/overview?since=24h&by=agent", "/latency?by=tool"):
        page.goto(address)
        for summary in page.locator(".chart-data > summary").all()[:2]:
            summary.click()
        assert violations(page) == [], address
        assert page.evaluate(SIDEWAYS) <= 0, address
        assert page.locator("main b[onclick]").count() == 0


def test_arrow_keys_go_from_point_to_point_and_enter_opens_the_runs(
    page: Page, runs: RunMaker
) -> None:
    some_hours(runs)
    page.goto("/overview?since=24h")
    points = page.locator("[data-chart]").nth(1).locator("a")

    points.last.focus()
    expect(page.locator(".chart-tip")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(points.nth(points.count() - 3)).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.locator("#runs .rowlink").first).to_be_visible()
    assert set(query(page)) >= {"since", "until"}
    assert urlsplit(page.url).path == "/"


def test_shift_and_arrows_choose_a_range_that_becomes_the_period(
    page: Page, runs: RunMaker
) -> None:
    some_hours(runs)
    page.goto("/overview?since=24h&by=agent")
    points = page.locator("[data-chart]").first.locator("a")
    count = points.count()
    first, last = (points.nth(at).get_attribute("href") or "" for at in (count - 4, count - 2))
    since, until = parse_qs(urlsplit(first).query)["since"], parse_qs(urlsplit(last).query)["until"]

    points.last.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile("/overview"))
    page.wait_for_url(re.compile("until="))
    assert query(page) == {"since": since, "until": until, "by": ["agent"]}


def test_a_drag_over_a_chart_narrows_the_period(page: Page, runs: RunMaker) -> None:
    some_hours(runs)
    page.goto("/overview?since=24h")
    box = page.locator("[data-chart]").first.bounding_box()
    assert box is not None
    column = box["width"] / page.locator("[data-chart]").first.locator("a").count()

    page.mouse.move(box["x"] + 18.5 * column, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 20 * column, box["y"] + 50)
    page.mouse.move(box["x"] + 22.5 * column, box["y"] + 50)
    page.mouse.up()

    page.wait_for_url(re.compile("until="))
    assert len(page.locator("[data-chart]").first.locator("a").all()) == 5


def test_the_figures_of_the_page_are_those_of_its_file(page: Page, runs: RunMaker) -> None:
    some_hours(runs)
    page.goto("/overview?since=24h")
    heads = page.locator(".heads")

    address = page.locator(".chart-data > a").first.get_attribute("href") or ""
    body = page.request.get(address).text()
    rows = [row for row in csv.DictReader(io.StringIO(body)) if not row["by"]]

    assert sum(int(row["model_calls"]) for row in rows) == 21
    expect(heads).to_contain_text("Model calls")
    expect(heads.locator("div", has_text="Model calls").locator("dd").first).to_contain_text("21")
    assert sum(int(row["failed_runs"]) for row in rows) == 4
    expect(heads).to_contain_text("4 of 21 runs")


def test_a_row_of_latency_opens_its_slowest_runs(page: Page, runs: RunMaker) -> None:
    some_hours(runs)
    page.goto("/latency")
    expect(page.locator(".latency tbody th")).to_have_text(["gpt-4o-mini", "gpt-5"])

    page.get_by_role("link", name="Count").click()
    expect(page.locator(".l-count[aria-sort]")).to_have_attribute("aria-sort", "descending")
    page.locator(".latency tbody tr").first.get_by_role("link", name="dearest").click()

    expect(page.locator("#runs .rowlink").first).to_be_visible()
    assert query(page)["sort"] == ["-cost_usd"]
    assert query(page)["model"] == ["gpt-4o-mini-2024-07-18"]
