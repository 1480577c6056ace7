"""Comparisons in a real browser; the `page` fixture fails on any word in its console."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

import hansard_web
from hansard_store.approvals.service import ApprovalService
from tests.web.approvals import ask
from tests.web.comparisons import LEFT, RIGHT, TALK, World, step
from tests.web.conftest import Served


@pytest.fixture(scope="module")
def served(world: World) -> Iterator[Served]:
    """This module's store on a real port, for the `page` fixture too."""
    with Served(world.app) as server:
        yield server


@pytest.mark.covers("UI-05", "UI-13")
def test_n_and_p_go_from_change_to_change(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/diff/{LEFT}/{RIGHT}")
    say = page.locator("[data-change-say]")
    expect(say).to_have_text("17 changes")

    page.keyboard.press("n")
    expect(say).to_have_text("change 1 of 17")
    expect(page.locator(".is-here")).to_contain_text("search_code")
    page.keyboard.press("n")
    expect(page.locator(".is-here")).to_contain_text("compile context")
    expect(page.locator(".is-here")).to_be_focused()
    page.keyboard.press("p")
    page.keyboard.press("p")
    expect(say).to_have_text("change 17 of 17")
    page.get_by_role("link", name="Next change").click()
    expect(say).to_have_text("change 1 of 17")


def test_every_state_is_in_the_address(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/diff/{LEFT}/{RIGHT}")
    page.get_by_role("link", name="Everything").click()
    expect(page).to_have_url(f"{served.url}/diff/{LEFT}/{RIGHT}?show=all")
    page.get_by_role("link", name="Swap sides").click()
    expect(page).to_have_url(f"{served.url}/diff/{RIGHT}/{LEFT}?show=all")
    page.get_by_role("button", name="Choose other runs").click()
    page.get_by_label("B Run or step").fill(RIGHT)
    page.get_by_role("button", name="Compare").click()
    expect(page).to_have_url(f"{served.url}/diff/{RIGHT}/{RIGHT}")
    expect(page.get_by_text("Nothing differs.", exact=False).first).to_be_visible()


@pytest.mark.covers("DF-01")
def test_a_step_is_compared_with_the_call_before_it_in_two_clicks(
    page: Page, served: Served
) -> None:
    page.goto(f"{served.url}/steps/{step(TALK, 4)}")
    page.get_by_text("Compare with…").click()
    page.get_by_role("link", name="previous call").click()
    expect(page.get_by_role("heading", name="Two steps of one run")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 768])
def test_nothing_is_wider_than_the_page(page: Page, served: Served, theme: str, width: int) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{served.url}/diff/{LEFT}/{RIGHT}?show=all")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    "path", [f"/v1/diff/saved/{LEFT}/{RIGHT}", f"/v1/runs/{RIGHT}/export?format=html"]
)
def test_a_saved_file_opens_offline_without_script(
    world: World, browser: Browser, tmp_path: Path, path: str
) -> None:
    """It is drawn as the page is: its styles hold, its icons stand in it, nothing is asked for."""
    file = tmp_path / "saved.html"
    file.write_bytes(world.http.get(path).content)
    context = browser.new_context(java_script_enabled=False, offline=True)
    try:
        page = context.new_page()
        asked: list[str] = []
        said: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.goto(file.as_uri())
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        masthead = page.locator(".masthead").bounding_box()
        assert masthead is not None
        assert masthead["height"] < 80  # unstyled, its sprite would fill the page
        assert [one for one in asked if not one.startswith("file:")] == []
        assert said == []
    finally:
        context.close()


LINED = """() => [...document.querySelectorAll('.wdiff :is(ins, del)')].map(one => {
  const style = getComputedStyle(one);
  return [one.tagName, style.textDecorationLine, style.borderTopStyle, style.borderLeftStyle];
})"""
FRAMED = {("INS", "none", "solid", "solid"), ("DEL", "none", "dashed", "dashed")}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_line_of_a_word_diff_hides_what_code_is_written_with(
    page: Page, served: Served, scheme: Literal["light", "dark"]
) -> None:
    store = ApprovalService(served.app.state.site.folder, source="api")
    asked = ask(store, arguments={"amount": "-0.0035", "name": scheme})
    store.revise(asked.approval_id, note="Once.", by="Noor")
    store.repropose(asked.approval_id, {"amount": "round_cents(x)", "name": scheme})
    page.emulate_media(color_scheme=scheme, media="print" if scheme == "light" else "screen")

    for address in (f"/approvals/{asked.approval_id}", f"/diff/{LEFT}/{RIGHT}"):
        page.goto(f"{served.url}{address}")
        found = {tuple(one) for one in page.evaluate(LINED)}
        assert found == FRAMED, address


def test_no_stylesheet_strikes_recorded_text_through() -> None:
    css = Path(hansard_web.__file__).with_name("static") / "css"
    assert [one.name for one in css.glob("*.css") if "line-through" in one.read_text()] == []
