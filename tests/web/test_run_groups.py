"""The traces of one prompt are one row of page `/` that opens to them."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from hansard_web.api.values import SCHEMA_VERSION
from tests.web.conftest import Served
from tests.web.html import Element
from tests.web.makers import RunMaker
from tests.web.test_live import partials, stream
from tests.web.test_run_kinds import kind_filter
from tests.web.test_runs_page import HTMX, names, read


def rounds(runs: RunMaker, count: int = 3, *, prompt: str = "p", **options: object) -> list[str]:
    """Store so many traces of one prompt."""
    return [
        runs.run(
            f"round {number}",
            words="Fix the test.",
            answer=f"Answer {number}.",
            conversation="s",
            prompt=prompt,
            **options,  # type: ignore[arg-type]
        )
        for number in range(count)
    ]


def group_row(page: Element) -> Element:
    return page.one("tr", class_="group")


def test_traces_of_one_prompt_are_one_row_with_their_sums(
    client: TestClient, runs: RunMaker
) -> None:
    made = rounds(runs)
    runs.run("another", conversation="s", prompt="q")

    page = read(client, "/?columns=steps,tokens,cached,cost")

    assert names(page) == ["another", "Fix the test."]
    row = group_row(page)
    assert row.one("th").text == "Fix the test. 3 traces Answer 2."
    cells = [cell.text.replace(" ", "") for cell in row.all("td")]
    assert "6" in cells  # steps
    assert {"3.8k", "50%"} <= {*cells}
    assert "$0.0010" in cells or "$0.00105" in cells
    assert row.one(class_="status")["data-status"] == "ok"
    assert not row.all("input")
    assert page.one(id="run-count").text == "4 runs"
    listed = read(client, row.one("a", class_="rowlink")["href"])
    assert names(listed) == ["round 2", "round 1", "round 0"]
    assert listed.one("span", class_="chip").text.startswith("group ")
    opened = read(client, f"/fragments/groups/{row['id'].removeprefix('group-')}", **HTMX)
    assert [one["id"] for one in opened.all("tr")] == [f"run-{run_id}" for run_id in made]


def test_each_trace_keeps_its_address_and_tells_its_group(
    client: TestClient, runs: RunMaker
) -> None:
    made = rounds(runs)
    group = group_row(read(client))["id"].removeprefix("group-")

    listed = client.get("/v1/runs", params={"group": group}).json()

    assert listed["schema_version"] == SCHEMA_VERSION
    assert [item["run_id"] for item in listed["items"]] == made[::-1]
    assert {item["group_id"] for item in listed["items"]} == {group}
    assert client.get(f"/v1/runs/{made[0]}").json()["group_id"] == group
    assert client.get(f"/runs/{made[0]}").status_code == 200
    assert len(client.get("/v1/runs").json()["items"]) == 3
    refused = client.get("/v1/runs", params={"group": "x"})
    assert (refused.status_code, refused.json()["error"]["details"]["parameter"]) == (400, "group")


def test_a_group_that_straddles_pages_is_one_row_once(client: TestClient, runs: RunMaker) -> None:
    rounds(runs, 20)
    single = runs.runs([f"run {number}" for number in range(49)])
    rounds(runs, 20)
    runs.run("last")

    page = read(client)
    rest = read(client, page.one("a", class_="more")["href"])

    assert len(names(page)) == 50
    assert names(page)[:2] == ["last", "Fix the test."]
    assert names(rest) == ["run 0"]
    assert len(names(page) + names(rest)) == len(single) + 2


def test_a_group_that_is_gone_or_none_opens_to_nothing(client: TestClient, runs: RunMaker) -> None:
    runs.run("one", conversation="s", prompt="p")

    assert not read(client, f"/fragments/groups/{'0' * 32}", **HTMX).all("tr")
    assert client.get("/fragments/groups/x", headers=HTMX).status_code == 400
    plain = client.get(f"/fragments/groups/{'0' * 32}")
    assert (plain.status_code, plain.headers["location"]) == (303, f"/?group={'0' * 32}")
    assert "has 32 hex digits" in read(client, "/?group=x").text


def test_other_runs_inside_a_shown_group_are_not_counted_as_hidden(
    client: TestClient, runs: RunMaker
) -> None:
    rounds(runs, 1)
    runs.request("get_model_info", conversation="s", prompt="p")
    runs.request()

    page = read(client)

    assert names(page) == ["Fix the test."]
    assert "2 traces" in group_row(page).text
    assert kind_filter(page).one("a", class_="link").text == "1 other run hidden"
    every = read(client, group_row(page).one("a", class_="rowlink")["href"])
    assert names(every) == ["get_model_info", "round 0"]


def test_a_live_list_has_one_row_for_a_prompts_traces(served: Served, runs: RunMaker) -> None:
    first = rounds(runs, 1)[0]
    with stream(served, "after=1&newest=1") as messages:
        rounds(runs, 1)
        second = next(messages)
        runs.run("round 0", trace=first, conversation="s", prompt="p", status=2)
        changed = next(messages)

    [added] = partials(second)
    assert (added["hx-target"], added["data-new"]) == ("#runs", "1")
    assert added.one("tr")["class"] == "group"
    group = added.one("tr")["id"]
    assert [one["hx-target"] for one in partials(changed)] == [
        f"#{group}", f"#run-{first}[data-of]", f"#run-{first}:not([data-of])",
    ]  # fmt: skip


def test_a_row_opens_to_its_traces_and_closes(page: Page, runs: RunMaker) -> None:
    rounds(runs)
    runs.run("another")
    page.goto("/")
    toggle = page.get_by_role("button", name="Traces of Fix the test.")
    expect(toggle).to_have_attribute("aria-expanded", "false")

    toggle.focus()
    page.keyboard.press("Space")

    titles = page.locator("#runs .rowlink")
    expect(titles).to_have_text(["another", "Fix the test.", "round 0", "round 1", "round 2"])
    expect(toggle).to_have_attribute("aria-expanded", "true")
    toggle.click()
    expect(titles).to_have_text(["another", "Fix the test."])
    toggle.press("Enter")
    titles.filter(has_text="round 1").click()
    expect(page).to_have_url(re.compile("/runs/"))


def test_traces_that_come_while_the_list_is_read_stay_one_row(page: Page, runs: RunMaker) -> None:
    first = rounds(runs, 1)[0]
    runs.run("another")
    page.goto("/")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
    titles = page.locator("#runs .rowlink")
    expect(titles).to_have_text(["another", "round 0"])

    rounds(runs, 1)
    expect(titles).to_have_text(["Fix the test.", "another"])
    expect(page.locator("tr.group")).to_contain_text("2 traces")

    page.locator(".group-toggle").click()
    expect(titles).to_have_count(4)
    again = {"conversation": "s", "prompt": "p", "words": "Fix the test."}
    runs.run("round 0", trace=first, status=2, **again)  # type: ignore[arg-type]
    expect(page.locator(f"#run-{first} .status")).to_have_attribute("data-status", "error")
    expect(titles).to_have_count(4)
    expect(page.locator(".group-toggle")).to_have_attribute("aria-expanded", "true")

    page.evaluate("document.activeElement.blur()")
    rounds(runs, 1)
    expect(page.locator("tr.group")).to_contain_text("3 traces")
    expect(page.locator("tr.group")).to_have_count(1)
    expect(titles).to_have_text(["Fix the test.", "another"])


def test_a_run_of_the_page_that_changes_is_not_shown_twice(page: Page, runs: RunMaker) -> None:
    first = runs.run("first", duration_s=None)
    runs.run("second")
    page.goto("/")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")

    runs.run("first", trace=first, status=2)

    expect(page.locator(f"#run-{first} .status")).to_have_attribute("data-status", "error")
    expect(page.locator("#runs .rowlink")).to_have_text(["second", "first"])
