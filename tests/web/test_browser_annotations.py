"""Notes, scores and tags in a real browser, by keyboard, with the page staying where it is."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.axe import violations
from tests.store.maker import span_id
from tests.web.makers import RunMaker


@pytest.mark.covers("UI-24")
def test_a_step_is_judged_by_keyboard_and_the_list_shows_it(page: Page, runs: RunMaker) -> None:
    run = runs.run()
    address = f"/runs/{run}?span={span_id('chat gpt-4o-mini').hex()}"
    page.goto(address)
    panel = page.locator("#annotations-step")
    panel.locator("> summary").focus()
    page.keyboard.press("Enter")

    panel.get_by_label("Tag", exact=True).focus()
    page.keyboard.type("Golden")
    page.keyboard.press("Enter")
    expect(panel.locator(".ann-tags .chip")).to_have_text(["golden"])
    panel.get_by_role("combobox", name="Score").focus()
    page.keyboard.type("correctness")
    page.keyboard.press("Tab")
    page.keyboard.type("0.9")
    page.keyboard.press("Enter")
    expect(panel.locator(".ann-main")).to_contain_text(["correctness 0.9"])
    panel.get_by_label("Note", exact=True).fill("It asks twice.")
    panel.get_by_role("button", name="Add note").press("Enter")
    expect(panel.locator(".ann-text")).to_have_text(["It asks twice."])

    page.locator("#annotations-run > summary").click()
    assert violations(page) == []
    # Nothing was loaded anew: the step is still chosen, its panel open.
    expect(page).to_have_url(re.compile(re.escape(address) + "$"))
    expect(page.locator("#run-facts .run-marks")).to_contain_text("golden")
    panel.get_by_role("button", name="Remove tag golden").click()
    expect(panel.locator(".ann-tags")).to_have_count(0)
    panel.locator(".ann-more > summary").last.click()
    expect(panel.locator(".is-gone")).to_contain_text("withdrawn by ana")

    # In a reading that is not moved, nobody is told of new steps where there are none.
    page.goto(f"/runs/{run}?view=log")
    page.evaluate(
        "() => { window.told = new Promise((done) =>"
        " document.addEventListener('run-marks', () => done(true), { once: true })); }"
    )
    page.locator("#annotations-run > summary").click()
    page.locator("#annotations-run").get_by_label("Tag", exact=True).fill("odd")
    page.keyboard.press("Enter")
    assert page.evaluate("window.told")
    expect(page.locator("#run-news")).to_be_hidden()

    page.goto("/?score=correctness%3E0.5")
    expect(page.locator(f"#run-{run} .ann-chip")).to_have_text("correctness 0.9")
