"""The native context in a real browser; the `page` fixture fails on any word in its console."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.web.compiles import RULES, RUN, compiled, quillbook, ref_of, tell
from tests.web.conftest import Served
from tests.web.traces import Trace, said

CALL = f"/steps/{RUN}-{3:016x}/context"


@pytest.fixture
def told(client: TestClient, pipeline: Pipeline) -> None:
    """A run with two compiles, their texts stored."""

    def put(data: bytes, media_type: str) -> None:
        answer = client.put(f"/v1/payloads/{ref_of(data)}", content=data)
        assert answer.is_success, media_type

    second = compiled(quillbook(4), step=12, rules=RULES, budget=2_900)
    tell(pipeline, put, compiled(rules=RULES, budget=2_600), second, cached=400)


@pytest.mark.covers("UI-03", "UI-04", "UI-12", "UI-24")
@pytest.mark.usefixtures("told")
def test_why_is_read_with_the_keyboard_alone(page: Page) -> None:
    page.goto(CALL)

    page.keyboard.press("j")
    expect(page.locator("#i0 .rowlink")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#i0 + .breakdown")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#insp-h")).to_have_text("instructions")
    page.keyboard.press("j")
    expect(page.locator("#insp-h")).to_have_text("tool:read_file")
    expect(page.locator("#i1")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#i1 .rowlink")).to_be_focused()
    expect(page).to_have_url(re.compile(r"item=tool%3Aread_file$"))
    page.keyboard.press("Escape")
    expect(page.locator(".inspect")).to_have_count(0)
    page.keyboard.press("/")
    page.keyboard.type("money")
    expect(page.locator(".receipt")).to_have_count(3)
    expect(page).to_have_url(re.compile(r"\?q=money$"))
    expect(page.locator("#qi")).to_be_focused()
    page.get_by_label("in groups by").select_option("decision")
    expect(page.locator(".group")).to_have_count(2)
    page.go_back()
    expect(page.locator(".inspect")).to_have_count(0)


@pytest.mark.usefixtures("told")
def test_a_place_is_kept_while_items_and_texts_are_chosen(page: Page) -> None:
    page.goto(CALL)
    page.locator("#i8 .rowlink").click()
    expect(page.locator("#insp-h")).to_have_text("decimal-rounding")
    expect(page.locator(".inspect del").first).to_be_visible()
    page.mouse.wheel(0, 300)

    page.locator(".inspect").get_by_role("link", name="Original").click()
    expect(page.locator(".inspect del")).to_have_count(0)
    expect(page).to_have_url(re.compile("item=decimal-rounding&text=original"))
    page.go_back()
    expect(page.locator(".inspect del").first).to_be_visible()
    page.locator(".budget-bar a").first.click()
    expect(page.locator("#insp-h")).to_have_text("instructions")
    expect(page.locator(".budget-bar .is-selected")).to_have_count(1)
    page.locator(".passes a", has_text="validate").click()
    expect(page.locator(".receipt")).to_have_count(2)
    page.get_by_role("link", name="Look at it").click()
    expect(page.locator("#request .jt-top").first).to_be_visible()


@pytest.mark.covers("UI-12")
@pytest.mark.usefixtures("told")
def test_why_is_read_without_script(browser: Browser, served: Served) -> None:
    context = browser.new_context(base_url=served.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"/runs/{RUN}?span={3:016x}&tab=context")

    page.get_by_role("link", name="Open with scores").click()
    page.get_by_role("link", name="Excluded 8").click()
    expect(page.locator(".receipt")).to_have_count(8)
    page.get_by_label("Order by").select_option("missed by")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".receipt .rowlink").first).to_have_text("quillbook/invoice.py")
    page.locator(".receipt details summary").first.click()
    expect(page.locator(".breakdown").first).to_contain_text("The terms add up")
    page.locator(".receipt .rowlink").first.click()
    expect(page.locator("#insp-h")).to_have_text("quillbook/invoice.py")
    page.get_by_role("link", name="Every run in which it was excluded").click()
    expect(page.locator(".receipts-found tbody tr")).to_have_count(2)
    page.locator(".receipts-found .rowlink").first.click()
    expect(page.locator("h1")).to_have_text("Context")
    context.close()


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 768, 390])
def test_nothing_is_wider_than_the_page_and_every_text_is_readable(
    browser: Browser, served: Served, theme: str, width: int
) -> None:
    context = browser.new_context(
        base_url=served.url,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",  # a colour on its way from one to the other is neither
    )
    page = context.new_page()
    for path in (f"{CALL}?item=decimal-rounding&show=request", f"{CALL}?group=reason", "/receipts"):
        page.goto(path)
        overflow = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 0, path
        assert page.evaluate(_FAINT) == [], path
        assert page.evaluate(_UNNAMED) == [], path
    context.close()


def test_unknown_is_not_cut_in_a_narrow_list(
    browser: Browser, served: Served, pipeline: Pipeline
) -> None:
    trace = Trace("b" * 32)
    trace.chat(1, None, [said("user", "hi")], said("assistant", "ho"), tokens=None)
    trace.send(pipeline)
    context = browser.new_context(base_url=served.url, viewport={"width": 768, "height": 900})
    page = context.new_page()
    page.goto("/")

    cell = page.locator(".runs tbody td", has_text="–").first
    expect(cell).to_be_visible()
    assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth")
    expect(page.locator("tbody .c-agent")).to_contain_text("gpt-4o-mini")
    expect(page.locator("tbody .c-agent .dim")).to_be_visible()
    context.close()


# Texts whose colour differs from what is behind them by less than 4.5 to 1.
_FAINT = """
() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((one) => one / 255)
    .map((one) => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = rgba(getComputedStyle(one).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("main *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const box = element.getBoundingClientRect();
    if (!own || element.closest("svg, .sr") || !box.width || !box.height) continue;
    const [front, back] = [light(rgba(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < 4.49) found.push(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
  }
  return [...new Set(found)];
}
"""
# Controls without a name, meaningful pictures without a label, ids that stand twice.
_UNNAMED = """
() => {
  const found = [];
  for (const one of document.querySelectorAll("main :is(a, button, input, select, summary)")) {
    if (one.type === "hidden" || one.closest("svg")) continue;
    const name = one.getAttribute("aria-label") || one.labels?.[0]?.textContent || one.textContent;
    if (!name.trim()) found.push(one.outerHTML.slice(0, 80));
  }
  for (const one of document.querySelectorAll("main svg"))
    if (!one.ariaHidden && !one.ariaLabel) found.push(one.outerHTML.slice(0, 80));
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  return [...found, ...ids.filter((id, at) => ids.indexOf(id) !== at)];
}
"""
