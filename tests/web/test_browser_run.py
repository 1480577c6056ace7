"""Reading a run in a real browser; the `page` fixture fails on any word in its console."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.journeys.axe import violations
from tests.web.conftest import Served
from tests.web.test_run_hostile import PLANTED, hostile
from tests.web.test_run_opening import hand_offs, stock_loop
from tests.web.traces import Trace, said, tool_loop

RUN = "a" * 32


def row(page: Page, number: int) -> Locator:
    return page.locator(f"#s-{number:016x}")


def large(pipeline: Pipeline, count: int) -> None:
    trace = Trace(RUN)
    trace.agent(1, duration_s=count / 100)
    for number in range(2, count + 1):
        failed = "no" if number == count - 100 else None
        trace.span(number, 1, f"step {number}", number / 100, 0.005, failed=failed)
        if number % 2_500 == 0:
            trace.send(pipeline)
    trace.send(pipeline)


@pytest.mark.covers("UI-24")
def test_the_tree_is_read_with_the_keyboard_alone(page: Page, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)
    page.goto(f"/runs/{RUN}?closed=1")

    page.keyboard.press("j")
    expect(row(page, 1)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(row(page, 2)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#step .pane-head h2")).to_have_text("chat gpt-4o-mini")
    expect(page).to_have_url(re.compile(f"span={2:016x}"))
    page.keyboard.press("j")
    expect(page.locator("#step .pane-head h2")).to_have_text("execute_tool read_file")
    expect(row(page, 3)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#rows [tabindex='0']")).to_have_count(1)
    page.keyboard.press("Home")
    expect(row(page, 1)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(row(page, 1)).to_have_attribute("aria-expanded", "false")
    expect(page.locator("#rows [role=row]")).to_have_count(1)
    expect(page.locator(".run-shown")).to_have_text("1 of 6 steps shown")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#rows [role=row]")).to_have_count(6)
    page.keyboard.press("e")
    expect(row(page, 5)).to_be_focused()
    expect(page.locator("#step .pane-head h2")).to_have_text("execute_tool apply_patch")
    page.keyboard.press("Escape")
    expect(page.locator("#step")).to_be_hidden()
    expect(page).not_to_have_url(re.compile("span="))


@pytest.mark.covers("UI-24")
def test_who_goes_on_before_a_pane_has_come_stays_there(page: Page, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)
    page.goto(f"/runs/{RUN}?closed=1")
    held: list[Route] = []

    def hold_the_first(route: Route) -> None:
        if held:
            route.continue_()
        held.append(route)

    page.route("**/step?*", hold_the_first)
    page.keyboard.press("e")
    expect(row(page, 5)).to_have_attribute("aria-selected", "true")
    for _ in range(2):
        page.keyboard.press("k")
    held[0].continue_()

    expect(page.locator("#step .pane-head h2")).to_have_text("execute_tool read_file")
    expect(page).to_have_url(re.compile(f"span={3:016x}"))
    expect(row(page, 3)).to_be_focused()
    expect(row(page, 3)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("k")
    expect(page.locator("#step .pane-head h2")).to_have_text("chat gpt-4o-mini")
    expect(page).to_have_url(re.compile(f"span={2:016x}"))


def test_tabs_stay_chosen_from_step_to_step(page: Page, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)
    page.goto(f"/runs/{RUN}?span={2:016x}")

    page.get_by_role("link", name="Attributes").click()
    expect(page.locator("#step .attr").first).to_be_visible()
    row(page, 4).click()

    expect(page.locator("#step [aria-current=page]")).to_have_text("Attributes")
    expect(page).to_have_url(re.compile(f"span={4:016x}.*tab=attributes"))
    page.go_back()
    expect(row(page, 2)).to_have_attribute("aria-selected", "true")
    page.reload()
    expect(page.locator("#step [aria-current=page]")).to_have_text("Attributes")


def test_a_filter_keeps_the_selected_step(page: Page, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)
    page.goto(f"/runs/{RUN}")

    row(page, 4).click()
    expect(page.locator("#step .pane-head h2")).to_have_text("chat gpt-4o-mini")
    page.get_by_role("button", name="errors 1").click()

    expect(page.locator("#rows [role=row]")).to_have_count(2)
    expect(page).to_have_url(re.compile(f"span={4:016x}"))
    expect(page).to_have_url(re.compile("errors=1"))
    expect(page.get_by_role("button", name="errors 1")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("2")
    expect(page.locator(".msg.is-selected")).to_have_count(1)


@pytest.mark.covers("UI-25")
def test_ten_thousand_steps_are_scrolled_in_windows(page: Page, pipeline: Pipeline) -> None:
    large(pipeline, 10_000)
    page.goto(f"/runs/{RUN}")
    expect(page.locator("#rows [role=row]")).to_have_count(200)

    height = page.evaluate("document.getElementById('scroller').scrollHeight")
    assert height > 10_000 * 26

    for part, title in ((0.5, "step 5010"), (0.9, "step 9010"), (0.1, "step 1010")):
        page.evaluate(
            "part => { const box = document.getElementById('scroller');"
            " box.scrollTop = box.scrollHeight * part; }",
            part,
        )
        expect(page.get_by_text(title, exact=True)).to_be_in_viewport()
        expect(page.locator("#rows [role=row]")).to_have_count(200)
    page.keyboard.press("e")
    expect(row(page, 9_900)).to_be_focused()
    expect(row(page, 9_900)).to_be_in_viewport()
    expect(page.locator("#step .note")).to_contain_text("ValueError")


def test_dragging_over_the_minimap_zooms(page: Page, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)
    page.goto(f"/runs/{RUN}")
    expect(page.locator("#minimap path").first).to_be_attached()
    box = page.locator("#minimap").bounding_box()
    assert box is not None

    page.mouse.move(box["x"] + box["width"] * 0.15, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 20)
    page.mouse.up()

    expect(page).to_have_url(re.compile(r"from=\d+&to=\d+"))
    expect(page.locator("#zoom .chip")).to_contain_text("1.80 s to 3.60 s")
    expect(row(page, 6)).to_have_count(0)
    page.get_by_label("Show the whole run").click()
    expect(row(page, 6)).to_be_visible()
    row(page, 4).dblclick()
    expect(page).to_have_url(re.compile(r"from=\d+&to=\d+"))


def test_finding_goes_from_match_to_match(page: Page, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)
    page.goto(f"/runs/{RUN}")

    page.keyboard.press("f")
    page.keyboard.type("round_half_up")
    page.keyboard.press("Enter")
    expect(page.locator(".run-matches")).to_contain_text("2 matches")
    expect(page.locator("#rows .is-match")).to_have_count(2)
    page.keyboard.press("n")
    expect(row(page, 3)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("n")
    expect(row(page, 4)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("p")
    expect(row(page, 3)).to_have_attribute("aria-selected", "true")


@pytest.mark.covers("UI-23")
def test_a_running_run_grows_while_it_is_read(page: Page, pipeline: Pipeline) -> None:
    trace = Trace(RUN, began_s_ago=20)
    trace.agent(1, duration_s=None)
    trace.chat(2, 1, [said("user", "go")], said("assistant", "ok"), 0.1)
    trace.send(pipeline)
    page.goto(f"/runs/{RUN}?span={2:016x}")
    expect(page.locator("#run-facts .status")).to_have_attribute("data-status", "open")
    expect(page.locator("#rows [role=row]")).to_have_count(2)

    trace.tool(3, 1, "late", "c1", 3)
    trace.send(pipeline)

    expect(row(page, 3)).to_be_visible()
    expect(page.locator(".run-shown")).to_have_text("3 steps")
    expect(row(page, 2)).to_have_attribute("aria-selected", "true")
    trace.agent(1, duration_s=5)
    trace.send(pipeline)
    expect(page.locator("#run-facts .status")).to_have_attribute("data-status", "ok")


@pytest.mark.covers("UI-23")
def test_the_pane_of_a_running_step_shows_how_it_ended(page: Page, pipeline: Pipeline) -> None:
    trace = Trace(RUN, began_s_ago=20)
    trace.agent(1, duration_s=None)
    trace.chat(2, 1, [said("user", "go")], said("assistant", "ok"), 0.1)
    trace.send(pipeline)
    page.goto(f"/runs/{RUN}?span={1:016x}&tab=attributes")
    state = page.locator(".pane-head .status")
    expect(state).to_have_attribute("data-status", "open")

    trace.agent(1, duration_s=5, user__id="rosa")
    trace.send(pipeline)

    expect(state).to_have_attribute("data-status", "unset")
    expect(page.locator(".pane-body")).to_contain_text("rosa")
    expect(page).to_have_url(re.compile(f"span={1:016x}&tab=attributes$"))


def test_news_wait_while_the_conversation_is_read(page: Page, pipeline: Pipeline) -> None:
    trace = Trace(RUN, began_s_ago=20)
    trace.agent(1, duration_s=None)
    trace.chat(2, 1, [said("user", "go")], said("assistant", "ok"), 0.1)
    trace.send(pipeline)
    page.goto(f"/runs/{RUN}?view=conversation")
    expect(page.locator("article")).to_have_count(2)

    trace.chat(3, 1, [said("user", "go"), said("assistant", "ok"), said("user", "on")], None, 2)
    trace.send(pipeline)

    news = page.get_by_role("link", name="New steps: show them")
    expect(news).to_be_visible()
    expect(page.locator("article")).to_have_count(2)
    news.click()
    expect(page.locator("article")).to_have_count(3)


@pytest.mark.covers("UI-23")
def test_a_run_is_read_without_script(browser: Browser, served: Served, pipeline: Pipeline) -> None:
    large(pipeline, 500)
    context = browser.new_context(base_url=served.url, java_script_enabled=False)
    page = context.new_page()

    page.goto(f"/runs/{RUN}?first=0")
    expect(page.locator("#rows [role=row]")).to_have_count(200)
    page.get_by_role("link", name="Next 200 steps").click()
    expect(page.locator("#rows .tg-title").first).to_have_text("step 201")
    page.get_by_role("link", name="step 201", exact=True).click()
    expect(page.locator("#step .pane-head h2")).to_have_text("step 201")
    page.locator("#step .tabs").get_by_role("link", name="Attributes").click()
    expect(page.locator("#step")).to_contain_text("service.name")
    page.get_by_role("link", name="Log").click()
    expect(page.locator(".log tbody tr[aria-selected=true]")).to_have_count(1)
    page.get_by_role("link", name="Open as a page").click()
    expect(page.locator("main")).to_have_attribute("data-step-page", "")
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 768, 390])
def test_nothing_is_wider_than_the_page(
    browser: Browser, served: Served, pipeline: Pipeline, theme: str, width: int
) -> None:
    tool_loop(clock=True).send(pipeline)
    context = browser.new_context(
        base_url=served.url,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if theme == "dark" else "light",
    )
    page = context.new_page()

    for path in (
        f"/runs/{RUN}?span={4:016x}",
        f"/runs/{RUN}?view=conversation&span={6:016x}&tab=context",
        f"/runs/{RUN}?view=log&span={5:016x}&tab=events",
        f"/steps/{RUN}-{6:016x}?tab=context",
        f"/steps/{RUN}-{6:016x}?tab=attributes",
    ):
        page.goto(path)
        overflow = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 0, path
    context.close()


@pytest.mark.parametrize("width", [1280, 1000])
def test_a_long_title_leaves_room_for_what_stands_beside_it(
    page: Page, pipeline: Pipeline, width: int
) -> None:
    trace = Trace(RUN)
    trace.agent(1)
    trace.chat(2, 1, [said("user", "Here is my whole mail. " * 20)], said("assistant", "Thanks."))
    trace.send(pipeline)
    page.set_viewport_size({"width": width, "height": 720})

    page.goto(f"/runs/{RUN}")

    expect(page.get_by_role("button", name="Export")).to_be_in_viewport(ratio=1)


def test_what_a_server_refuses_is_not_copied_in_place_of_the_call(
    browser: Browser, served: Served, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{served.url}/runs/{RUN}?span={2:016x}")
    page.evaluate("navigator.clipboard.writeText('before')")
    page.route("**/copy/**", lambda route: route.fulfill(status=404, body='{"error": {}}'))

    page.locator(".copies summary").click()
    page.locator("[data-copy-from]").first.click()

    expect(page.locator("#toast")).to_contain_text("Not copied: Hansard answered 404")
    assert page.evaluate("navigator.clipboard.readText()") == "before"
    context.close()


def test_the_same_keys_read_the_log_and_the_conversation(page: Page, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)
    page.goto(f"/runs/{RUN}?view=log")

    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".log .rowlink").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#step .pane-head h2")).to_have_text("chat gpt-4o-mini")
    page.keyboard.press("j")
    expect(page.locator("#step .pane-head h2")).to_have_text("execute_tool read_file")
    page.keyboard.press("2")
    expect(page).to_have_url(re.compile("view=conversation"))
    page.keyboard.press("Escape")
    expect(page.locator("#step")).to_be_hidden()
    page.get_by_role("paragraph").filter(has_text="It rounds half up now.").click()
    expect(page.locator("#step .pane-head h2")).to_have_text("chat gpt-4o-mini")
    expect(page.locator(".msg.is-selected")).to_contain_text("It rounds half up now.")


@pytest.mark.covers("UI-22")
def test_planted_markup_runs_nowhere(page: Page, pipeline: Pipeline) -> None:
    hostile("\n\n".join(PLANTED), RUN).send(pipeline)

    for path in (
        f"/runs/{RUN}?span={2:016x}",
        f"/runs/{RUN}?view=conversation&span={4:016x}&tab=context",
        f"/runs/{RUN}?view=log&span={3:016x}&tab=events",
        f"/steps/{RUN}-{3:016x}?tab=attributes",
    ):
        page.goto(path)
        expect(page.locator("main")).to_have_count(1)
    page.goto(f"/runs/{RUN}")
    row(page, 2).click()
    expect(page.locator("#step article").first).to_be_visible()
    assert page.evaluate("window.owned") is None


def panel_is_shown(page: Page) -> bool:
    return page.locator("#step .pane-head").is_visible()


def test_the_panel_is_open_where_there_is_room_and_escape_closes_it_for_good(
    page: Page, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/runs/{RUN}")

    expect(page.locator("#step .pane-head h2")).to_have_text("execute_tool apply_patch")
    expect(row(page, 5)).to_have_attribute("aria-selected", "true")
    expect(page).not_to_have_url(re.compile("span="))
    page.keyboard.press("Escape")
    expect(page.locator("#step")).to_be_hidden()
    page.reload()
    expect(page.locator("#rows [role=row]").first).to_be_visible()
    assert not panel_is_shown(page)
    row(page, 2).click()
    expect(page.locator("#step .pane-head h2")).to_have_text("chat gpt-4o-mini")
    expect(page).not_to_have_url(re.compile("closed="))


@pytest.mark.parametrize("width", [1024, 390])
def test_on_a_narrow_screen_no_panel_is_open_until_a_step_is_chosen(
    page: Page, pipeline: Pipeline, width: int
) -> None:
    tool_loop().send(pipeline)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"/runs/{RUN}")

    expect(row(page, 2)).to_be_visible()
    assert not panel_is_shown(page)
    row(page, 2).locator(".tg-title").click()
    expect(page.locator("#step .pane-head h2")).to_have_text("chat gpt-4o-mini")


def test_a_loop_unfolds_by_click_and_its_errors_by_key(page: Page, pipeline: Pipeline) -> None:
    stock_loop(failed_turn=20).send(pipeline)
    page.goto(f"/runs/{RUN}")
    expect(page.locator("#rows [role=row]")).to_have_count(2)
    expect(page.locator(".tg-chip")).to_have_text(re.compile("loop: get_stock ×40"))

    page.keyboard.press("e")
    expect(row(page, 43)).to_be_focused()
    expect(row(page, 43)).to_be_in_viewport()
    page.goto(f"/runs/{RUN}")
    page.locator(".is-group .tg-toggle").click()
    expect(page.locator("#rows [role=row]")).to_have_count(82)
    page.locator(".is-group .tg-toggle").click()
    expect(page.locator("#rows [role=row]")).to_have_count(2)


def test_the_graph_is_read_by_key_and_leads_to_its_steps(page: Page, pipeline: Pipeline) -> None:
    hand_offs().send(pipeline)
    page.goto(f"/runs/{RUN}")

    page.keyboard.press("4")
    expect(page.locator(".graph-node").first).to_be_visible()
    page.locator("a.graph-node", has_text="fetch").click()
    expect(page.locator("#step .pane-head h2")).to_have_text("execute_tool fetch")


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_tree_loop_and_graph_pass_the_checker(
    browser: Browser, served: Served, pipeline: Pipeline, theme: str, width: int
) -> None:
    stock_loop().send(pipeline)
    context = browser.new_context(
        base_url=served.url,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if theme == "dark" else "light",
        bypass_csp=True,
    )
    page = context.new_page()

    for query in ("", f"?span={3:016x}", "?view=graph", "?group=1&closed=1"):
        page.goto(f"/runs/{RUN}{query}")
        assert violations(page) == [], query
    context.close()


@pytest.mark.parametrize("width", [1440, 1024])
def test_minimap_head_and_bars_end_at_one_margin_and_the_last_bar_is_whole(
    page: Page, pipeline: Pipeline, width: int
) -> None:
    tool_loop().send(pipeline)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"/runs/{RUN}?closed=1")
    expect(row(page, 1)).to_be_visible()

    minimap, bar, box = (
        page.evaluate("s => document.querySelector(s).getBoundingClientRect().toJSON()", one)
        for one in ("#minimap", "#rows .wf .total", "#scroller")
    )

    assert abs(minimap["right"] - bar["right"]) <= 2
    assert bar["right"] <= box["right"] - 8


def test_own_time_reaches_the_end_of_a_long_loop(page: Page, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.agent(1, duration_s=400)
    for number in range(400):
        trace.span(2 + number, 1, f"step {number}", number + 0.1, 0.8)
    trace.send(pipeline)
    page.goto(f"/runs/{RUN}?closed=1&first=0")

    ends = page.evaluate(
        "() => [...document.querySelectorAll('#rows > [role=row] .wf')][0]"
        ".querySelectorAll('.self').length"
    )
    last = page.evaluate(
        "() => { const bar = document.querySelector('#rows .wf');"
        " const parts = [...bar.querySelectorAll('.self')].map(one => one.getBoundingClientRect());"
        " const whole = bar.querySelector('.total').getBoundingClientRect();"
        " return (Math.max(...parts.map(one => one.right)) - whole.left) / whole.width; }"
    )

    assert ends > 100
    assert last > 0.97


def test_two_hundred_runs_that_came_later_are_no_news_of_a_finished_run(
    page: Page, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)
    for number in range(1, 230):
        other = Trace(f"{number:032x}")
        other.agent(1)
        other.send(pipeline)

    for view in ("conversation", "log"):
        page.goto(f"/runs/{RUN}?view={view}")
        expect(page.locator("#run-news")).to_be_attached()
        page.wait_for_function("() => document.querySelector('#live') !== null")
        page.wait_for_timeout(1_000)  # the stream says what it has to say at once
        expect(page.locator("#run-news")).to_be_hidden()
