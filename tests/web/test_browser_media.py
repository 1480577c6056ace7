"""Recorded images and sound in a real browser: they load, open, and fetch nothing else."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.web.recorded_media import SVG, b64, message, png, shapes, url, wav
from tests.web.traces import Trace, said

pytestmark = pytest.mark.slow
RUN = "c" * 32


@pytest.fixture
def conversation(pipeline: Pipeline) -> str:
    sound = {"type": "input_audio", "input_audio": {"format": "wav", "data": b64(wav())}}
    parts = [
        *shapes(png(500, 300)).values(),
        sound,
        {"type": "image_url", "image_url": {"url": url("image/svg+xml", SVG * 3)}},
        {"type": "image_url", "image_url": {"url": "https://elsewhere.example/a.png"}},
    ]
    trace = Trace(RUN)
    trace.agent(1)
    trace.chat(2, 1, [message(*parts)], said("assistant", "I see."))
    trace.send(pipeline)
    return f"/runs/{RUN}?view=conversation"


@pytest.mark.parametrize("width", [1440, 390])
def test_images_load_small_and_open_in_full(page: Page, conversation: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(conversation)
    images = page.locator(".talk .media img")
    expect(images).to_have_count(len(shapes(b"")))
    for image in images.all():
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("complete", value=True)
        assert image.evaluate("one => one.naturalWidth") == 500
        assert image.evaluate("one => one.getBoundingClientRect().width") <= 320
    sound = page.locator(".talk audio")
    sound.scroll_into_view_if_needed()
    expect(sound).to_have_js_property("readyState", 4)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    images.first.scroll_into_view_if_needed()
    page.locator("[data-media]").first.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Recorded image")
    expect(dialog.locator("img")).to_have_js_property("naturalWidth", 500)
    expect(dialog).to_contain_text("image/png")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("[data-media]").first).to_be_focused()
