"""Links that sign in, as the demo, `serve` and `open` print them, in a real browser."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.journeys.processes import Serving, demonstrating, hosting
from tests.journeys.processes import hansard as run_command
from tests.web.conftest import browser

__all__ = ["browser"]  # the fixture

WIRE = {"tool": "wire_money", "arguments": {"to": "acme"}, "agent": "bot"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    with hosting(tmp_path / "data") as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A browser that nobody is signed in with; nothing but local pages."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


def ask(address: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    given = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{address}{path}", data=given, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        told: dict[str, Any] = json.load(answer)
    return told


def propose(address: str) -> str:
    return str(ask(address, "/v1/approvals", WIRE)["approval_id"])


def test_the_link_of_the_demo_signs_in_as_rosa_who_approves(page: Page, tmp_path: Path) -> None:
    with demonstrating(tmp_path / "data") as demo:
        links = set(re.findall(r"http\S+/signin/link/\S+", demo.printed))
        approval_id = propose(demo.address)
        [link] = links

        page.goto(link)
        landed = page.url
        page.goto(f"{demo.address}/approvals/{approval_id}")
        expect(page.locator(".ask-by")).to_have_text("as rosa")
        page.locator("button.ask-approve").click()
        expect(page.locator(".ask-done")).to_contain_text("Approved by rosa")

        again = page.context.browser
        assert again is not None
        other = again.new_context()
        second = other.new_page()
        second.goto(link)  # as often as it is opened, until the server stops
        assert second.locator("text=Sign out").count() == 1
        other.close()
        told = ask(demo.address, f"/v1/approvals/{approval_id}")

    assert landed == f"{demo.address}/"
    assert (told["decided_by"], told["decided_method"]) == ("rosa", "session")
    assert "as rosa, who decides" in demo.printed
    assert demo.printed.rstrip().endswith("signed in as rosa (Ctrl+C ends the demo)")


def test_who_is_not_signed_in_sees_the_action_and_the_command_in_place_of_the_buttons(
    server: Serving, page: Page
) -> None:
    approval_id = propose(server.http)
    page.goto(f"{server.http}/approvals/{approval_id}")

    bar = page.locator(".ask-bar")
    expect(page.locator(".args")).to_contain_text("acme")
    expect(bar).to_contain_text("hansard open")
    expect(bar).to_contain_text("hansard tokens add NAME --scope decide")
    assert page.locator("button[name=decision]").count() == 0
    why = page.locator("section[aria-labelledby=h-why]")
    expect(why).to_contain_text("an agent that has the API or an HTTP tool cannot approve")
    expect(why).to_contain_text("a program with a shell under the same user can", ignore_case=True)


def test_the_links_of_serve_and_open_sign_in_and_the_second_click_decides(
    server: Serving, page: Page, browser: Browser
) -> None:
    approval_id = propose(server.http)
    opened = run_command("open", "--print", "--data", str(server.data))
    assert opened.returncode == 0, opened.stderr
    for link in (f"{server.http}{server.endpoints['link']}", opened.stdout.strip()):
        context = browser.new_context()
        one = context.new_page()
        one.goto(link)
        assert one.url == f"{server.http}/"
        assert "/signin/link/" not in one.content()
        assert one.evaluate("document.referrer") == ""
        one.goto(f"{server.http}/approvals/{approval_id}")
        assert one.locator("button[value=approve]").count() == 1
        context.close()

    page.goto(opened.stdout.strip())
    page.goto(f"{server.http}/approvals/{approval_id}")
    page.locator("button.ask-approve").click()
    expect(page.locator(".ask-done")).to_contain_text("Approved by")
    assert ask(server.http, f"/v1/approvals/{approval_id}")["decided_method"] == "session"
