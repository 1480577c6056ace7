"""The run list in a real browser: order, columns, views, completion, the brush, many values."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from hansard_web.runs.columns import COLUMNS
from tests.journeys.axe import violations
from tests.signing import session_of
from tests.web.conftest import Served
from tests.web.makers import RunMaker

pytestmark = pytest.mark.slow
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
HOSTILE = '<b>"\u202e' + "w" * 400


def query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_every_column_orders_the_list_and_its_head_shows_the_arrow(
    page: Page, runs: RunMaker
) -> None:
    runs.run("b", agent="zoe", model="m2", duration_s=9)
    runs.run("a", agent="ann", model="m1", duration_s=1, status=2)
    columns = [key for key, column in COLUMNS.items() if column.sort]
    page.goto(f"/?columns={','.join(columns)}")
    expect(page.locator("#runs .rowlink")).to_have_text(["a", "b"])
    expect(page.locator("th.c-started svg")).to_be_visible()

    for key in ("status", "name", *columns):
        head = page.locator(f"th.c-{key}")
        head.get_by_role("link").click()
        expect(head).to_have_attribute("aria-sort", re.compile("ascending|descending"))
        expect(page.locator("#runs .rowlink")).to_have_count(2)
        assert query_of(page)["sort"]
    page.goto("/?sort=name")
    expect(page.locator("#runs .rowlink")).to_have_text(["a", "b"])
    page.goto("/?sort=-agent&columns=agent")
    expect(page.locator("#runs .rowlink")).to_have_text(["b", "a"])
    expect(page.locator(".list-head")).to_contain_text("Sorted among the newest 10,000 runs")


def test_a_view_that_one_browser_saves_is_opened_in_another(
    page: Page, browser: Browser, served: Served, runs: RunMaker
) -> None:
    runs.run("fails", status=2, agent="mender")
    runs.run("works")
    page.goto("/?status=error&sort=-cost_usd&columns=steps,agent")

    page.get_by_role("button", name="View", exact=True).click()
    page.get_by_label("Name of the view").fill("Failures / week")
    page.get_by_role("button", name="Save view").click()

    expect(page).to_have_url(re.compile("view=Failures"))
    other = browser.new_context(base_url=served.url, viewport={"width": 390, "height": 800})
    other.add_cookies(
        [
            {"name": name, "value": value, "url": served.url}
            for name, value in session_of(served.app.state.site.folder).items()
        ]
    )
    tab = other.new_page()
    tab.goto("/?view=Failures / week")
    expect(tab.locator("#runs .rowlink")).to_have_text(["fails"])
    assert query_of(tab) == {
        "status": ["error"], "sort": ["-cost_usd"], "columns": ["agent,steps"],
        "view": ["Failures / week"],
    }  # fmt: skip
    tab.get_by_role("button", name="Failures / week").click()
    tab.get_by_label("New name").fill("Failures")
    tab.get_by_role("button", name="Rename").click()
    expect(tab).to_have_url(re.compile(r"view=Failures$"))
    tab.get_by_role("button", name="Failures").click()
    tab.get_by_role("button", name="Delete view").click()
    expect(tab).not_to_have_url(re.compile("view="))
    expect(tab.locator("#runs .rowlink")).to_have_text(["fails"])
    other.close()


def test_columns_are_chosen_and_stay_in_the_address(page: Page, runs: RunMaker) -> None:
    runs.run("fix", agent="mender")
    page.goto("/?agent=mender")

    page.get_by_role("button", name="View", exact=True).click()
    page.get_by_label("Output").check()
    page.get_by_label("Cost", exact=True).uncheck()
    page.get_by_role("button", name="Show columns").click()

    expect(page.locator("th.c-output")).to_be_visible()
    expect(page.locator("th.c-cost")).to_have_count(0)
    assert query_of(page)["agent"] == ["mender"]


def test_keys_and_values_are_completed_by_keyboard(page: Page, runs: RunMaker) -> None:
    runs.run("one", agent="mender of things")
    runs.run("two", agent="clerk")
    page.goto("/")
    box = page.get_by_role("combobox", name="Filter", exact=True)

    box.press_sequentially("age")
    expect(page.get_by_role("option")).to_have_text(["agent:"])
    box.press("ArrowDown")
    box.press("Enter")
    expect(box).to_have_value("agent:")
    expect(page.get_by_role("option")).to_have_count(2)
    box.press_sequentially("MEN")
    expect(page.get_by_role("option")).to_have_count(1)
    box.press("ArrowDown")
    expect(box).to_have_attribute("aria-activedescendant", "q-option-0")
    box.press("Tab")

    expect(box).to_have_value('agent:"mender of things" ')
    expect(page.locator("#runs .rowlink")).to_have_text(["one"])
    box.press_sequentially("st")
    expect(page.get_by_role("listbox")).to_be_visible()
    box.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()


def test_the_brush_narrows_the_list_by_pointer_and_by_keyboard(page: Page, runs: RunMaker) -> None:
    runs.run("old", age_s=3600)
    runs.run("new", age_s=10)
    page.goto("/")
    plot = page.locator(".heat-plot")
    box = plot.bounding_box()
    assert box

    page.mouse.move(box["x"] + 1, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 30, steps=4)
    expect(page.locator(".brush-range")).to_be_visible()
    page.mouse.up()

    expect(page).to_have_url(re.compile("since=.*until="))
    expect(page.locator("#runs .rowlink")).to_have_text(["old"])
    page.goto("/")
    keys = page.get_by_role("slider")
    keys.focus()
    keys.press("ArrowLeft")
    keys.press("Shift+ArrowLeft")
    keys.press("Escape")
    expect(page.locator(".brush-range")).to_be_hidden()
    keys.press("ArrowLeft")
    keys.press("Shift+ArrowLeft")
    keys.press("Enter")
    expect(page.locator("#runs .rowlink")).to_have_text(["new"])


def test_every_value_of_a_facet_is_reached_and_searched(page: Page, runs: RunMaker) -> None:
    for number in range(12):
        runs.run(f"run {number}", agent=f"agent-{number:02}")
    page.goto("/?sort=name")

    page.get_by_role("button", name="4 more…").click()
    values = page.locator("#facet-values")
    expect(values.locator("li")).to_have_count(12)
    values.get_by_label("Search values").press_sequentially("11")
    expect(values.locator("li")).to_have_count(1)
    values.get_by_role("link").click()

    expect(page.locator("#runs .rowlink")).to_have_text(["run 11"])
    assert query_of(page)["sort"] == ["name"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1024, 1440])
def test_hostile_names_fit_and_break_no_rule_of_accessibility(
    page: Page, runs: RunMaker, width: int, scheme: str
) -> None:
    for number in range(10):
        runs.run(HOSTILE + str(number), agent=HOSTILE + str(number), words=HOSTILE, status=2)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"/?columns={','.join(COLUMNS)}&agent=x&agent={HOSTILE}0")
    assert page.evaluate(SIDEWAYS) <= 1
    page.goto("/")

    assert page.evaluate(SIDEWAYS) <= 1
    assert violations(page) == []
    page.get_by_role("button", name="View", exact=True).click()
    assert violations(page) == []
    assert page.evaluate(SIDEWAYS) <= 1
