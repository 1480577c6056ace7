"""Names are found: pages, runs, steps, users, conversations, settings; by page, API and command."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_web.app.config import WebSettings, load_config
from hansard_web.palette.cli import find
from hansard_web.ui.navigation import PLACES
from tests.signing import session_of
from tests.web.conftest import MakeClient
from tests.web.makers import RunMaker
from tests.web.traces import Trace, said

RUN = "ab" * 16
HOSTILE = "refund %_\\ <b>x</b>\u202e " + "w" * 400


@pytest.fixture
def named(pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.agent(1, name="clerk", gen_ai__conversation__id="talk-77", user__id="ada@example.org")
    trace.chat(2, 1, [said("user", "hello")], said("assistant", "hi"), model="m")
    trace.tool(3, 1, "refund_order", "c1", 4, result="ok")
    trace.span(5, 1, HOSTILE)
    trace.send(pipeline)


def found(client: TestClient, query: str, **more: str) -> list[tuple[str, str]]:
    answer = client.get("/v1/find", params={"q": query, **more})
    assert answer.status_code == 200, answer.text
    return [(one["kind"], one["href"]) for one in answer.json()["items"]]


@pytest.mark.covers("UI-26")
@pytest.mark.parametrize(
    ("query", "kind", "href"),
    [
        ("health", "page", "/health"),
        ("abababab", "run", f"/runs/{RUN}"),
        ("clerk", "run", f"/runs/{RUN}"),
        ("refund_or", "step", f"/runs/{RUN}?step={3:016x}"),
        ("ada@", "user", "/users/ada@example.org"),
        ("talk-7", "conversation", "/conversations?id=talk-77"),
        ("HANSARD_RETENTION", "setting", "/health#setting-retention"),
    ],
)
def test_each_kind_is_found_by_name(
    client: TestClient, named: None, query: str, kind: str, href: str
) -> None:
    from urllib.parse import unquote

    hits = [(one, unquote(at)) for one, at in found(client, query)]

    assert (kind, href) in hits
    assert client.get(href.partition("#")[0]).status_code == 200


def test_signs_of_patterns_are_letters_and_markup_stays_text(
    client: TestClient, named: None
) -> None:
    assert [kind for kind, _ in found(client, "%_\\ <b>")] == ["step"]
    assert [kind for kind, _ in found(client, "%%%")] == []

    answer = client.get("/palette?q=refund", headers={"HX-Request": "true"})
    assert "<b>x" not in answer.text


def test_steps_of_the_open_run_are_looked_through(client: TestClient, named: None) -> None:
    other = "cd" * 16

    assert ("step", f"/runs/{RUN}?step={3:016x}") in found(client, "refund_order", run=RUN)
    assert client.get("/v1/find", params={"q": "x", "run": other}).status_code == 404


def test_without_a_query_all_pages_are_offered(client: TestClient, runs: RunMaker) -> None:
    assert found(client, "") == [("page", place.href) for place in PLACES]
    assert client.get("/palette?q=a b").headers["location"] == "/search?q=a+b"


def test_saved_views_are_found_by_their_name_and_by_their_filters(
    client: TestClient, runs: RunMaker
) -> None:
    name = "Failures / of <b>ours</b>"
    answer = client.post("/v1/views", json={"name": name, "query": "status=error"})
    assert answer.status_code == 201, answer.text

    for query in ("failures /", "status=err", ""):
        [href] = [at for kind, at in found(client, query) if kind == "view"]
        led_to = client.get(href)
        assert led_to.status_code == 303
        assert led_to.headers["location"].startswith("/?status=error&view=Failures")


def test_a_setting_says_its_value_and_a_secret_only_that_it_is_set(
    make_client: MakeClient, runs: RunMaker
) -> None:
    secret = "s" * 40
    config = load_config(
        {"data": str(runs.folder.path), "keep": "30d", "token": (secret,)},
        {"HANSARD_NOTIFY": "https://chat.example.com/hooks/1"},
    )
    client = make_client(WebSettings(values=config.values()))
    client.cookies.update(session_of(runs.folder))

    def details(query: str) -> dict[str, str]:
        items = client.get("/v1/find", params={"q": query}).json()["items"]
        return {one["label"]: one["detail"] for one in items if one["kind"] == "setting"}

    assert details("keep")["keep"].startswith("30 d")
    assert details("retention")["retention"].startswith("redacted_payloads (default")
    assert details("token")["token"].startswith("set (")
    assert details("notify")["notify"].startswith("set (")
    assert secret not in str(config.values())


def test_the_command_finds_the_same(client: TestClient, named: None, runs: RunMaker) -> None:
    ran = CliRunner().invoke(find, ["refund", "--json", "--data", str(runs.folder.path)])

    assert ran.exit_code == 0, ran.output
    hits = [(one["kind"], one["href"]) for one in json.loads(ran.output)["items"]]
    assert hits == found(client, "refund")


def test_a_step_is_reached_by_keys_alone(page: Page, named: None) -> None:
    page.goto("/usage")

    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Find by name")
    expect(field).to_be_focused()
    expect(page.get_by_role("option")).to_have_count(len(PLACES))
    field.fill("refund_order")
    expect(page.get_by_role("option", name="refund_order").first).to_be_visible()
    expect(field).to_have_attribute("aria-activedescendant", "po-0")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#po-0")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")

    page.wait_for_url(f"**/runs/{RUN}?step={3:016x}")
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).not_to_be_visible()
