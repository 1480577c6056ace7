"""An approval decided in a real browser, by keyboard, while the agent answers beside it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from hansard_store.approvals.records import Status
from hansard_store.approvals.service import ApprovalService
from tests.web.approvals import ask, redraft
from tests.web.conftest import Served


@pytest.fixture
def store(served: Served) -> ApprovalService:
    """Return the store of the app that is served, as a program with its folder has it."""
    return ApprovalService(served.app.state.site.folder, source="api")


def is_live(page: Page) -> None:
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")


@pytest.mark.covers("UI-19", "UI-23", "UI-24", "PO-22")
def test_two_revisions_and_an_approval_by_keyboard(page: Page, store: ApprovalService) -> None:
    page.goto("/")
    expect(page.locator("#waiting")).to_be_hidden()
    asked = ask(store)
    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(page.locator("#waiting")).to_have_text("1 waits for a decision")
    is_live(page)

    for number, (note, change) in enumerate(
        (("Use the net amount.", {"amount": 18400}), ("Ines owns it.", {"owner": "Ines Okafor"})), 1
    ):
        page.keyboard.press("r")
        page.keyboard.type(note)
        page.keyboard.press("Enter")
        expect(page.locator(".ask-done")).to_contain_text("The agent is redrafting")
        expect(page.locator("#h-ask")).to_be_focused()
        is_live(page)
        redraft(store, store.approval(asked.approval_id), **change)
        # Nobody reads a form now, so the new draft comes by itself.
        expect(page.locator(".ask-head .dim").first).to_have_text(f"draft {number + 1}")
        expect(page.locator(".drafts-note")).to_have_count(number)

    expect(page.locator(".drafts ins")).to_have_text(["18400", "Ines Okafor"])
    page.keyboard.press("a")
    expect(page.locator(".ask-approve")).to_be_focused()
    assert store.approval(asked.approval_id).status is Status.AWAITING  # one key decides nothing
    page.keyboard.press("Enter")
    expect(page.locator(".ask-done")).to_contain_text("Approved by ana")
    expect(page).to_have_url(re.compile(rf"/approvals/{asked.approval_id}$"))
    expect(page.locator("#waiting")).to_be_hidden()
    decided = store.approval(asked.approval_id)
    assert (decided.status, decided.revision, decided.decided_by) == (Status.APPROVED, 3, "ana")

    is_live(page)
    store.finish(store.claim(asked.approval_id), ok=True)
    expect(page.locator(".ask-head .status")).to_have_text("ran")


def test_what_is_being_decided_on_is_not_taken_from_under_the_hands(
    page: Page, store: ApprovalService
) -> None:
    asked = ask(store)
    page.goto(f"/approvals/{asked.approval_id}")
    is_live(page)
    page.locator("#note").fill("I am not done wri")

    store.approve(asked.approval_id, by="Iris")

    expect(page.locator("#ask-news")).to_contain_text("decided by Iris")
    expect(page.locator("#note")).to_have_value("I am not done wri")
    page.get_by_role("link", name="Show it as it is").click()
    expect(page.locator(".ask-done")).to_contain_text("Approved by Iris")


def test_new_actions_come_into_the_list_and_the_count(page: Page, store: ApprovalService) -> None:
    page.goto("/approvals")
    is_live(page)
    asked = ask(store)

    expect(page.locator(".inbox-item")).to_have_count(1)
    expect(page.locator("#h-ask")).to_have_text(asked.description)
    expect(page.locator("#waiting")).to_have_text("1 waits for a decision", timeout=10_000)
