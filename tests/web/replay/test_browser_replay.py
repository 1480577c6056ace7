"""A scripted call replayed in a real browser: exactly, then with one thing changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_compiler.redaction.redactor import Redactor
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from tests.web.conftest import Served
from tests.web.replay.stage import SCRIPT, Stage


@pytest.fixture
def served(stage: Stage) -> Iterator[Served]:
    """The stage's store behind a real port, with what makes replays."""
    retention = RetentionPolicy("redacted_payloads", Redactor(stage.folder.key()))
    pipeline = Pipeline(stage.folder, retention)
    pipeline.start()
    try:
        with Served(create_app(stage.folder, pipeline, WebSettings())) as server:
            yield server
    finally:
        pipeline.close()


@pytest.mark.covers("UI-08", "UI-16", "UI-17", "UI-23")
def test_an_exact_and_a_changed_replay_of_a_scripted_call(page: Page, stage: Stage) -> None:
    step_id = stage.compiled_call(token_budget=160, response_reserve=60)
    script = json.dumps(SCRIPT)

    page.goto(f"/steps/{step_id}")
    page.get_by_role("link", name="Replay", exact=True).click()
    expect(page.locator('[data-act="exact"]')).to_have_attribute("aria-current", "true")
    page.get_by_label("Script of the scripted model").fill(script)
    page.get_by_role("button", name="Send again").click()
    expect(page).to_have_url(re.compile(r"/replays/[0-9a-f]{32}$"))
    # Where it was still being made, the page asks again by itself.
    expect(page.locator("#replay-state")).to_have_text("done", timeout=15_000)
    expect(page.locator(".act-exact")).to_contain_text("the same bytes went out")
    expect(page.get_by_text("the same answer", exact=True)).to_be_visible()

    page.get_by_role("link", name="replays", exact=True).click()
    expect(page.locator(".replays-row")).to_have_count(1)
    page.locator('[data-act="mutated"]').click()
    page.get_by_label("Budget, tokens").fill("3,000")
    page.get_by_label("Leave out rules").check()
    page.get_by_label("Budget, tokens").press("Enter")
    expect(page).to_have_url(re.compile("token_budget.*remove_item"))
    expect(page.locator('.would [data-item="almanac"]')).to_contain_text("goes in")
    expect(page.locator('.would [data-item="rules"]')).to_contain_text("is left out")
    page.get_by_role("button", name="Take change 2 back").click()
    expect(page.locator(".mut")).to_have_count(1)
    expect(page.get_by_label("Leave out rules")).not_to_be_checked()
    page.get_by_label("Script of the scripted model").fill(script)
    page.get_by_role("button", name="Send with 1 change").click()
    expect(page.locator("#replay-state")).to_have_text("done", timeout=15_000)
    expect(page.locator('article[data-side="right"] ins').first).to_be_visible()
    expect(page.locator('tr[data-item="almanac"]')).to_contain_text("included")
    page.get_by_role("link", name="Replay it again with these changes").click()
    expect(page.get_by_label("Budget, tokens")).to_have_value("3000")


def test_the_items_to_leave_out_are_read_on_a_phone(page: Page, stage: Stage) -> None:
    step_id = stage.compiled_call(token_budget=160, response_reserve=60)
    page.set_viewport_size({"width": 390, "height": 844})

    page.goto(f"/replay/{step_id}?act=mutated")

    name = page.locator(".replay-items .it-text", has_text="almanac").bounding_box()
    assert name
    assert name["width"] > 100
    assert name["height"] < 60
