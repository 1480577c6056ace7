"""Messages as they were said: exactly, or as markdown where a reader wants that."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.web.conftest import Served
from tests.web.traces import Trace, said

RUN = "d" * 32
CODE = "    def f():\n        return -1"
PROMPT = f"\nRead __init__.py and *keep* it:\n\n{CODE}\n* not a list\n1) nor this"
RULES = "# Rules\nNever touch __main__.py"
ANSWER = "Done: **bold** and `code`.\n\n- one\n- two"


@pytest.fixture
def conversation(pipeline: Pipeline) -> str:
    """Return the address of a run's conversation of texts that markdown would change."""
    trace = Trace(RUN)
    trace.agent(1)
    trace.chat(2, 1, [said("system", RULES), said("user", PROMPT)], said("assistant", ANSWER))
    trace.send(pipeline)
    return f"/runs/{RUN}?view=conversation"


@pytest.fixture(autouse=True)
def clipboard(page: Page, served: Served) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served.url)


def message(page: Page, speaker: str) -> Locator:
    return page.locator(f".talk .msg[data-speaker={speaker}]")


def shown(page: Page, speaker: str) -> str:
    """Return the text of a message as a reader sees it, without a fold's first line."""
    return message(page, speaker).locator(".msg-body").inner_text().replace("\u00a0", " ")


def test_what_was_said_to_a_model_is_shown_exactly(page: Page, conversation: str) -> None:
    page.goto(conversation)

    assert shown(page, "user") == PROMPT
    message(page, "system").locator("summary").click()
    assert shown(page, "system") == RULES
    expect(message(page, "assistant").get_by_role("listitem")).to_have_text(["one", "two"])
    assert "**" not in shown(page, "assistant")


def test_each_message_can_be_read_both_ways(page: Page, conversation: str) -> None:
    page.goto(conversation)

    message(page, "assistant").get_by_label("Markdown").uncheck()
    assert shown(page, "assistant") == ANSWER
    message(page, "user").get_by_label("Markdown").check()
    assert "init.py" in shown(page, "user")
    assert "__init__" not in shown(page, "user")


def test_the_choice_of_a_page_is_remembered(page: Page, conversation: str) -> None:
    page.goto(conversation)
    plain = page.locator(".talk").get_by_role("button", name="Plain text")
    with page.expect_response(re.compile("/messages$")):
        plain.click()
    assert shown(page, "assistant") == ANSWER
    expect(plain).to_have_attribute("aria-pressed", "true")

    page.goto(f"/steps/{RUN}-{2:016x}?tab=conversation")
    step = page.locator("article.msg[data-speaker=assistant] .msg-body")
    expect(step).to_have_text(ANSWER, use_inner_text=True)
    with page.expect_response(re.compile("/messages$")):
        page.get_by_role("button", name="Markdown").click()
    page.goto(conversation)
    assert "**" not in shown(page, "assistant")


def test_the_choice_needs_no_script(page: Page, served: Served, conversation: str) -> None:
    browser = page.context.browser
    assert browser
    with browser.new_context(
        base_url=served.url, java_script_enabled=False, storage_state=page.context.storage_state()
    ) as context:
        plain = context.new_page()
        plain.goto(conversation)
        plain.locator(".talk").get_by_role("button", name="Plain text").click()
        expect(plain).to_have_url(re.compile(r"view=conversation"))
        assert shown(plain, "assistant") == ANSWER
        message(plain, "assistant").get_by_label("Markdown").check()
        assert "**" not in shown(plain, "assistant")


@pytest.mark.parametrize(("speaker", "text"), [("assistant", ANSWER), ("user", PROMPT)])
def test_copying_a_message_copies_what_was_said(
    page: Page, conversation: str, speaker: str, text: str
) -> None:
    page.goto(conversation)

    message(page, speaker).get_by_role("button", name="Copy the exact text").click()

    expect(message(page, speaker).locator("use[href='#i-check']")).to_have_count(1)
    assert page.evaluate("navigator.clipboard.readText()") == text


def test_a_failed_call_says_why_in_the_conversation(page: Page, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.agent(1)
    trace.chat(2, 1, [said("user", "hello")], None, failed="Error code: 400 - no such model")
    trace.send(pipeline)

    page.goto(f"/runs/{RUN}?view=conversation")

    expect(page.locator(".talk .note")).to_contain_text("Error code: 400 - no such model")
