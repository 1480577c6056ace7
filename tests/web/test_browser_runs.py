"""Journeys in a real browser; the `page` fixture fails on any word in its console."""

from __future__ import annotations

import re
import time
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.requests import Encoding, IngestRequest, Signal
from hansard_web.live import MOST_PENDING
from tests.collector.ingesting import SENDER, span, traces
from tests.web.conftest import Served
from tests.web.makers import RunMaker


def row_names(page: Page) -> list[str]:
    return page.locator("#runs .rowlink").all_inner_texts()


def test_typing_narrows_the_list_and_the_address_follows(page: Page, runs: RunMaker) -> None:
    runs.run("fix", agent="mender")
    runs.run("reply", agent="front-desk")
    page.goto("/")

    page.get_by_label("Filter", exact=True).press_sequentially("agent:mender")

    expect(page.locator("#runs .rowlink")).to_have_text(["fix"])
    expect(page).to_have_url(re.compile(r"\?agent=mender$"))
    expect(page.locator("#run-count")).to_have_text("1 run")
    page.reload()
    expect(page.locator(".filter .chip")).to_contain_text("agent mender")
    page.get_by_label("Remove filter agent").click()
    expect(page.locator("#runs .rowlink")).to_have_text(["reply", "fix"])


@pytest.mark.covers("UI-23")
def test_a_live_row_appears_on_top_and_changes_in_its_place(page: Page, runs: RunMaker) -> None:
    runs.run("first")
    page.goto("/")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")

    started = runs.run("second", duration_s=None)
    expect(page.locator("#runs .rowlink")).to_have_text(["second", "first"])
    row = page.locator(f"#run-{started}")
    expect(row.locator(".status")).to_have_attribute("data-status", "open")

    runs.run("second", trace=started, status=2)
    expect(row.locator(".status")).to_have_attribute("data-status", "error")
    assert row_names(page) == ["second", "first"]


def test_an_empty_filtered_list_shows_the_first_run_that_meets_the_filter(
    page: Page, runs: RunMaker
) -> None:
    runs.run("other", agent="mender")
    page.goto("/?agent=front-desk")
    expect(page.locator("#results .empty")).to_contain_text("No runs match")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")

    runs.run("another", agent="mender")
    runs.run("reply", agent="front-desk")

    expect(page.locator("#runs .rowlink")).to_have_text(["reply"])
    expect(page.locator("#results .empty")).to_have_count(0)


@pytest.mark.covers("UI-24")
def test_how_each_run_ended_is_a_word_that_screen_readers_read(page: Page, runs: RunMaker) -> None:
    made = {
        "OK": runs.run("fine"),
        "error": runs.run("broken", status=2),
        "open": runs.run("begun", duration_s=None),
    }

    page.goto("/")
    listed = {name: page.locator(f"#run-{run_id}").aria_snapshot() for name, run_id in made.items()}
    page.goto(f"/runs/{made['error']}")
    opened = page.locator("main").aria_snapshot()

    for name, read_out in listed.items():
        words = {other for other in made if re.search(rf"\b{other}\b", read_out)}
        assert words == {name}, read_out
    assert re.search(r"\berror\b", opened)


def test_what_is_counted_over_a_live_list_follows_it(page: Page, runs: RunMaker) -> None:
    runs.run("first", agent="mender")
    page.goto("/")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
    expect(page.locator("#run-count")).to_have_text("1 run")
    page.locator("#facets a", has_text="mender").focus()

    runs.run("second", agent="mender", status=2)

    expect(page.locator("#run-count")).to_have_text("2 runs")
    expect(page.locator("#facets a", has_text="mender").locator(".num")).to_have_text("2")
    expect(page.locator("#facets a", has_text="mender")).to_be_focused()
    expect(page.locator("#pills")).to_contain_text("errors 1")


def test_new_rows_wait_while_a_row_is_selected(page: Page, runs: RunMaker) -> None:
    runs.run("first")
    page.goto("/")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
    page.locator("#runs input[type=checkbox]").check()

    runs.run("second")

    expect(page.locator("#new-runs")).to_have_text("1 new run")
    assert row_names(page) == ["first"]
    page.locator("#new-runs").click()
    expect(page.locator("#runs .rowlink")).to_have_text(["second", "first"])


def test_the_pause_key_holds_rows_back_until_it_is_pressed_again(
    page: Page, runs: RunMaker
) -> None:
    runs.run("first")
    page.goto("/")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")

    page.keyboard.press(".")
    expect(page.locator("#live-state")).to_have_text("Paused")
    runs.run("second")
    expect(page.locator("#new-runs")).to_have_text("1 new run")
    assert row_names(page) == ["first"]

    page.keyboard.press(".")
    expect(page.locator("#runs .rowlink")).to_have_text(["second", "first"])


def test_a_flood_of_runs_is_offered_and_moves_nothing(page: Page, runs: RunMaker) -> None:
    runs.run("first")
    page.goto("/")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")

    with runs.store.batch():
        for number in range(MOST_PENDING + 5):
            runs.store.span("flood", run=f"flood {number}", role="agent")

    expect(page.locator("#new-runs")).to_have_text("Show what is new")
    assert row_names(page) == ["first"]
    page.locator("#new-runs").click()
    expect(page.locator("#runs .rowlink").first).to_have_text("flood")


@pytest.mark.covers("UI-24")
def test_the_list_is_walked_selected_and_opened_by_keys_alone(page: Page, runs: RunMaker) -> None:
    made = [runs.run(name) for name in ("third", "second", "first")]
    page.goto("/")

    page.keyboard.press("j")
    expect(page.locator(".rowlink:focus")).to_have_text("first")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator(".rowlink:focus")).to_have_text("second")
    page.keyboard.press("x")
    expect(page.locator(f"#run-{made[1]} input")).to_be_checked()
    expect(page.locator(".compare-bar")).to_contain_text("select another")
    expect(page).to_have_url(re.compile(f"compare={made[1]}"))
    page.keyboard.press("Escape")
    expect(page.locator(".compare-bar")).to_have_count(0)

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/runs/{made[2]}"))


def test_keys_go_to_every_page_and_to_the_filter_box(page: Page, runs: RunMaker) -> None:
    runs.run()
    page.goto("/")

    page.keyboard.press("/")
    expect(page.get_by_label("Filter", exact=True)).to_be_focused()
    page.keyboard.type("gu")  # typing is not navigating
    page.keyboard.press("Escape")
    for key, heading in (("u", "Usage"), ("c", "Conversations"), ("h", "Health"), ("s", "Search")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(heading)
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.locator("h1")).to_have_text("Runs")


def test_the_help_names_the_keys(page: Page, runs: RunMaker) -> None:
    runs.run()
    page.goto("/")

    page.keyboard.press("?")

    expect(page.locator("#keys")).to_be_visible()
    expect(page.locator("#keys")).to_contain_text("pause or resume live rows")
    keys = page.locator("nav [data-go]").evaluate_all("all => all.map(one => one.dataset.go)")
    assert len(set(keys)) == len(keys) > 8


def test_two_selected_runs_are_compared_without_leaving_the_list(
    page: Page, runs: RunMaker
) -> None:
    runs.run("slow", duration_s=9)
    runs.run("fast", duration_s=2)
    page.goto("/")

    for box in page.locator("#runs input[type=checkbox]").all():
        box.check()

    expect(page.locator(".compare-bar")).to_contain_text("7.00 s longer")
    page.get_by_text("Clear").click()
    expect(page.locator(".compare-bar")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/$"))


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_a_theme_is_chosen_once_for_every_page(page: Page, runs: RunMaker, theme: str) -> None:
    runs.run()
    page.goto("/usage")

    page.locator("[popovertarget=settings]").click()
    page.get_by_role("button", name=theme).click()

    expect(page).to_have_url(re.compile("/usage$"))
    page.goto("/")
    expect(page.locator("html")).to_have_attribute("data-theme", theme.lower())
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"Light": "rgb(247, 245, 239)", "Dark": "rgb(21, 24, 28)"}[theme]


def test_older_runs_come_when_they_are_scrolled_to(page: Page, runs: RunMaker) -> None:
    for number in range(60):
        runs.run(f"run {number}")
    page.goto("/")
    expect(page.locator("#runs .rowlink")).to_have_count(50)

    page.locator("a.more").scroll_into_view_if_needed()

    expect(page.locator("#runs .rowlink")).to_have_count(60)
    expect(page.locator("a.more")).to_have_count(0)


def test_the_greeting_turns_into_the_list_with_the_first_span(page: Page, runs: RunMaker) -> None:
    page.goto("/")
    expect(page.locator("h1")).to_have_text("No traces yet")
    expect(page.locator("#live-state")).to_have_text("Listening")

    runs.run("first words")

    expect(page.locator("h1")).to_have_text("Runs")
    expect(page.locator("#runs .rowlink")).to_have_text(["first words"])


def test_a_snippet_is_copied_with_one_click(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/")

    page.locator("[data-copy]").first.click()

    expect(page.locator("#say")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:")


@pytest.mark.covers("UI-02")
@pytest.mark.parametrize("width", [1440, 768, 390])
@pytest.mark.parametrize("path", ["/", "/conversations", "/search?q=time", "/usage", "/health"])
def test_no_page_asks_another_host_or_is_wider_than_its_window(
    page: Page, runs: RunMaker, path: str, width: int
) -> None:
    runs.run("fix", conversation="c1", tool="search")
    runs.run("a rather long name of a run " * 5, words="word " * 200, agent="agent" * 20)
    page.set_viewport_size({"width": width, "height": 900})

    page.goto(path)

    expect(page.locator("h1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.covers("UI-22")
def test_hostile_recordings_run_nothing(page: Page, runs: RunMaker) -> None:
    hostile = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
    runs.run(hostile, words=hostile, agent=hostile, conversation="c\"><b hx-get='/usage'>")

    for path in ("/", "/conversations", "/search?q=document.title", "/usage"):
        page.goto(path)
        expect(page.locator("main")).to_contain_text("<img src=x")
        assert not page.title().startswith("run")
        assert page.locator("main img, main script, main b[hx-get]").count() == 0


@pytest.mark.covers("UI-01")
def test_everything_is_read_without_scripts(
    browser: Browser, served: Served, runs: RunMaker
) -> None:
    for number in range(60):
        runs.run(f"run {number}", agent="mender" if number % 2 else "survey", status=number % 3)
    context = browser.new_context(base_url=served.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/")

    page.get_by_label("Filter", exact=True).fill("agent:mender status:error")
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page.locator("#runs .rowlink")).to_have_count(10)
    page.get_by_label("Remove filter agent").click()
    page.get_by_label("Remove filter status").click()
    page.get_by_role("link", name="Older runs").click()
    expect(page.locator("#runs .rowlink")).to_have_count(10)
    page.get_by_role("button", name="More").click()
    page.get_by_label("Main").get_by_role("link", name="Search").click()
    page.get_by_role("main").get_by_role("searchbox").fill("noon")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator(".hit").first).to_be_visible()
    page.locator("[popovertarget=settings]").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    context.close()


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_column_of_the_ledger_is_cut(
    page: Page, pipeline: Pipeline, width: int, scheme: Literal["light", "dark"]
) -> None:
    body = traces([span(1)]).SerializeToString()
    request = IngestRequest(Signal.TRACES, Encoding.PROTOBUF, body, SENDER, time.time_ns())
    assert pipeline.submit(request).result(30).accepted == 1
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)

    page.goto("/health")

    expect(page.locator(".ledger tbody tr")).to_have_count(1)
    heads = page.locator(".ledger thead th").evaluate_all(
        "all => all.map(one => [one.innerText, one.clientWidth, one.scrollWidth])"
    )
    shown = [head for head in heads if head[1] > 0]
    assert "Received" in [head[0] for head in shown]
    assert [head for head in shown if head[2] > head[1]] == []
    assert page.evaluate(
        "() => { const t = document.querySelector('.ledger');"
        " return t.scrollWidth <= t.parentElement.clientWidth; }"
    )
