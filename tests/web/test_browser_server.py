"""Journeys against the whole server: doors, pipeline and pages in one process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from hansard_web.app.config import Config, parse_token
from hansard_web.app.server import running

# Sends blindly, as any page may, then tries to read the answer.
_ASK = """
async ([address, body]) => {
  const sent = { method: body === null ? "GET" : "POST", body };
  await fetch(address, { ...sent, mode: "no-cors" }).catch(() => null);
  const read = await fetch(address, sent).then((answer) => answer.text(), () => "refused");
  window.answers.push(read);
}
"""


@pytest.mark.slow
def test_the_snippet_of_the_greeting_works_as_it_stands(browser: Browser, tmp_path: Path) -> None:
    shell, curl = shutil.which("bash"), shutil.which("curl")
    assert shell, "this journey pastes the snippet into bash"
    assert curl, "the snippet uses curl"
    with running(Config(data=tmp_path, http_port=0, grpc_port=0)) as server:
        page = browser.new_page()
        page.goto(server.endpoints.http)
        snippet = page.locator("pre", has_text="curl").inner_text()

        sent = subprocess.run([shell, "-c", snippet], capture_output=True, check=True, timeout=20)

        assert sent.stdout.decode() == "{}"
        expect(page.locator("#runs .rowlink")).to_have_text(["first words"])
        page.close()


def test_a_browser_signs_in_once_where_a_token_is_wanted(browser: Browser, tmp_path: Path) -> None:
    config = Config(
        data=tmp_path, http_port=0, grpc_port=0, token=(parse_token("open-sesame-1234"),)
    )
    with running(config) as server:
        page = browser.new_page()
        page.goto(f"{server.endpoints.http}/usage?since=7d")
        expect(page.locator("h1")).to_have_text("Sign in")
        page.get_by_label("Token").fill("wrong-guess")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("main")).to_contain_text("not a token of this server")

        page.get_by_label("Token").fill("open-sesame-1234")
        page.get_by_role("button", name="Sign in").click()

        expect(page).to_have_url(re.compile(r"/usage\?since=7d$"))
        page.get_by_role("button", name="Settings").click()
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("h1")).to_have_text("Sign in")
        page.goto(server.endpoints.http)
        expect(page).to_have_url(re.compile("/signin"))
        page.close()


@pytest.mark.slow
def test_the_command_beside_an_action_opens_it_signed_in_and_sign_out_ends_that(
    browser: Browser, tmp_path: Path
) -> None:
    data = tmp_path / "a folder"
    with running(Config(data=data, http_port=0, grpc_port=0)) as server:
        action = {"tool": "refund", "arguments": {"order": 7}, "agent": "clerk"}
        asked = httpx2.post(f"{server.endpoints.http}/v1/approvals", json=action).json()
        there = f"{server.endpoints.http}/approvals/{asked['approval_id']}"
        stranger = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        page = stranger.new_page()
        page.goto(there)
        expect(page.get_by_role("heading", name="refund")).to_be_visible()
        expect(page.get_by_role("button", name="Approve this draft")).to_have_count(0)
        page.locator(".sign-in-first").get_by_role("button", name="Copy").click()
        expect(page.locator("#say")).to_have_text("Copied")
        command = page.evaluate("navigator.clipboard.readText()")

        address = pasted(f"{command} --print")
        page = browser.new_context().new_page()
        page.goto(address)
        expect(page).to_have_url(there)
        expect(page.get_by_role("button", name="Approve this draft")).to_be_visible()
        page.get_by_role("button", name="Settings").click()
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("h1")).to_have_text("Sign in")
        page.go_back()
        expect(page.get_by_role("link", name="Sign in", exact=True).first).to_be_visible()
        expect(page.get_by_role("button", name="Approve this draft")).to_have_count(0)
        for context in browser.contexts:
            context.close()


def pasted(command: str) -> str:
    """Return what a command prints in a shell that finds this environment's programs."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=240,
        env={**os.environ, "PATH": path}, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_copying_works_where_the_browser_has_no_clipboard(browser: Browser, tmp_path: Path) -> None:
    with running(Config(data=tmp_path, http_port=0, grpc_port=0)) as server:
        context = browser.new_context()
        context.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
        page = context.new_page()
        page.goto(server.endpoints.http)
        page.evaluate(
            "document.addEventListener('copy', () => "
            "window.copied = document.getSelection().toString() || "
            "document.activeElement.value)"
        )
        snippet = page.locator(".codebox", has_text="curl")

        snippet.get_by_role("button", name="Copy").click()

        expect(page.locator("#say")).to_have_text("Copied")
        assert page.evaluate("window.copied") == snippet.locator("pre").inner_text()
        context.close()


REFUSALS = {
    "no way to copy": "document.execCommand = () => false;"
    "Object.defineProperty(navigator, 'clipboard', {value: undefined})",
    "neither way": "document.execCommand = () => false;"
    "navigator.clipboard.writeText = () => Promise.reject(new DOMException('no'))",
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_copying_that_the_browser_refuses_is_not_called_done(
    browser: Browser, tmp_path: Path, refusal: str
) -> None:
    with running(Config(data=tmp_path, http_port=0, grpc_port=0)) as server:
        context = browser.new_context()
        context.add_init_script(REFUSALS[refusal])
        page = context.new_page()
        page.goto(server.endpoints.http)

        page.locator(".codebox", has_text="curl").get_by_role("button", name="Copy").click()

        expect(page.locator("#toast")).to_contain_text("Not copied")
        expect(page.locator("#say")).to_have_text("")
        context.close()


@pytest.mark.covers("SC-23")
def test_a_page_of_another_site_reads_and_changes_nothing(browser: Browser, tmp_path: Path) -> None:
    """The other site is our own server under another port, as any program of this machine is."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with (
        running(Config(data=tmp_path / "a", http_port=0, grpc_port=0)) as target,
        running(Config(data=tmp_path / "b", http_port=0, grpc_port=0)) as other,
    ):
        context = browser.new_context(bypass_csp=True)
        page = context.new_page()
        page.goto(other.endpoints.http)
        page.evaluate("window.answers = []")

        for path, body in (("/v1/runs", None), ("/v1/traces", "{}"), ("/theme", "theme=dark")):
            page.evaluate(_ASK, [target.endpoints.http + path, body])

        assert page.evaluate("window.answers") == ["refused"] * 3
        mine = context.new_page()
        mine.goto(f"{target.endpoints.http}/health")
        expect(mine.locator("table.refusals tbody tr").first).to_contain_text("the origin")
        expect(mine.locator("html")).not_to_have_attribute("data-theme", "dark")
        context.close()


def test_the_server_stops_while_a_page_follows_it(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    with running(Config(data=tmp_path, http_port=0, grpc_port=0)) as server:
        page.goto(server.endpoints.http)
        expect(page.locator("#live-state")).to_have_text("Listening")

    expect(page.locator("#live-state")).to_have_text("Reconnecting", timeout=20_000)
    page.close()
