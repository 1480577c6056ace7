"""The runs list: what a row says, how it is narrowed, paged and compared, with links alone."""

from __future__ import annotations

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from hansard_store.ingest.derived_rows import Usage
from hansard_web.runs.columns import COLUMNS
from tests.web.html import Element, parse
from tests.web.makers import RunMaker

HTMX = {"HX-Request": "true"}


def read(client: TestClient, path: str = "/", **headers: str) -> Element:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200, answer.text
    return parse(answer.text)


def names(page: Element) -> list[str]:
    return [link.text for link in page.all("a", class_="rowlink")]


@pytest.mark.covers("UI-09")
def test_a_row_says_everything_people_look_for(client: TestClient, runs: RunMaker) -> None:
    run_id = runs.run("fix", words="Make the test pass.", agent="mender", model="gpt-5", age_s=90)

    page = read(client, f"/?columns={','.join(COLUMNS)}")
    row = page.one("tr", id=f"run-{run_id}")

    assert row.one(class_="status")["data-status"] == "ok"
    assert row.one("th").text == "fix Make the test pass."
    assert row.one("td", class_="c-agent").text == "mender gpt-5"
    cells = [cell.text for cell in row.all("td")]
    assert "2" in cells  # steps
    assert {"1.3k", "1.2k", "80", "50%"} <= {*cells}
    assert "$0.00035" in cells
    assert "2.00 s" in cells
    assert "1 m ago" in cells
    assert row.one("td", class_="c-duration")["title"].startswith("ended 2")


def test_a_run_named_after_its_agent_is_known_by_what_was_said(
    client: TestClient, runs: RunMaker
) -> None:
    runs.run("invoke_agent mender", words="Make the test pass.", agent="mender")
    runs.run("invoke_agent clerk", words="", agent="clerk", service="hansard-replay")

    replayed, said = read(client).one("tbody", id="runs").all("tr")

    assert said.one("a", class_="rowlink").text == "Make the test pass."
    assert "Make the test pass." not in [one.text for one in said.all("span", class_="dim")]
    assert not said.all("span", title="a recorded call, made again")
    assert replayed.one("a", class_="rowlink").text == "clerk"
    assert replayed.one("span", title="a recorded call, made again").text == "replay"


def test_unknown_figures_are_called_unknown_with_the_reason(
    client: TestClient, runs: RunMaker
) -> None:
    runs.run(usage=Usage(), duration_s=None)

    row = read(client).one("tbody", id="runs").all("tr")[0]

    unknown = [one for one in row.all("span", class_="dim") if one.text == "–"]
    assert len(unknown) == 2
    assert all(one["title"] for one in unknown)
    assert row.one(class_="status")["data-status"] == "open"
    assert row.one("td", class_="c-duration").text.endswith("…")


@pytest.mark.covers("UI-22")
def test_recorded_text_is_shown_as_text(client: TestClient, runs: RunMaker) -> None:
    hostile = '<script>alert(1)</script><img src=x onerror=alert(1)>" onmouseover="x'
    runs.run(hostile, words=hostile, agent=hostile, model=hostile)

    html = client.get("/").text

    assert "<script>alert" not in html
    assert "<img src=x" not in html
    page = parse(html)
    assert hostile in [link.text for link in page.all("a", class_="rowlink")]
    for element in page.walk():
        assert not any(name.startswith("on") for name in element.attributes)


@pytest.mark.covers("TS-15")
def test_facets_count_runs_and_narrow_the_list(client: TestClient, runs: RunMaker) -> None:
    runs.run("one", agent="mender")
    runs.run("two", agent="mender", status=2)
    runs.run("three", agent="survey")
    facets = read(client).one("aside", class_="facets")

    mender = next(link for link in facets.all("a") if link.text.startswith("mender"))
    assert mender.text == "mender2"

    narrowed = read(client, mender["href"])
    assert names(narrowed) == ["two", "one"]
    chip = narrowed.one("form", class_="filter").one("span", class_="chip")
    assert chip.text == "agent mender"
    assert names(read(client, chip.one("a")["href"])) == ["three", "two", "one"]


def test_the_other_values_of_a_chosen_facet_stay_in_reach(
    client: TestClient, runs: RunMaker
) -> None:
    runs.run("one", agent="mender")
    runs.run("two", agent="survey")

    facets = read(client, "/?agent=mender").one("aside", class_="facets")

    agents = [link for link in facets.all("a") if link.text.startswith(("mender", "survey"))]
    assert [link.attributes.get("aria-current") for link in agents] == ["true", None]
    assert names(read(client, agents[1]["href"])) == ["two", "one"]


@pytest.mark.covers("TS-15")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status:error", ["bad"]),
        ("agent:mender duration>5s", ["slow"]),
        ("cost>0.5", ["dear"]),
        ("marmalade", ["bad"]),
        ('"orange marmalade"', ["bad"]),
        ("env.name:staging", ["slow"]),
        ("tool:search", ["dear"]),
        ("conversation:c1", ["slow"]),
        ("since:1h", ["dear", "slow"]),
        ("marmalade status:ok", []),
    ],
)
def test_the_filter_box_understands_its_grammar(
    client: TestClient, runs: RunMaker, query: str, found: list[str]
) -> None:
    runs.run("bad", status=2, words="orange marmalade", age_s=90_000, agent="cook")
    runs.run(
        "slow", agent="mender", duration_s=9, conversation="c1", attributes={"env.name": "staging"}
    )
    runs.run("dear", agent="cook", usage=Usage(9, 9, None, None, None, 10**9), tool="search")

    page = parse(client.get("/", params={"q": query}).text)

    assert names(page) == found


def test_what_cannot_be_meant_is_told_beside_the_results(
    client: TestClient, runs: RunMaker
) -> None:
    runs.run("one")

    page = read(client, "/?status=broken&since=soon").one("main")

    assert "broken" in page.one(class_="note").text
    assert names(page) == ["one"]


def test_an_empty_result_offers_a_way_out(client: TestClient, runs: RunMaker) -> None:
    runs.run("one")

    page = read(client, "/?agent=nobody")

    empty = page.one("div", class_="empty")
    assert empty.one("h2").text == "No runs match"
    assert names(read(client, empty.one("span", class_="chip").one("a")["href"])) == ["one"]


def test_all_pages_joined_are_the_whole_list(client: TestClient, runs: RunMaker) -> None:
    made = [runs.run(f"run {number}") for number in range(112)]

    seen, address = [], "/"
    while address:
        page = read(client, address)
        rows = page.one("tbody", id="runs").all("tr")
        seen += [row["id"].removeprefix("run-") for row in rows if "id" in row.attributes]
        more = page.all("a", class_="more")
        address = more[0]["href"] if more else ""

    assert seen == made[::-1]


def test_the_next_rows_come_alone_for_htmx(client: TestClient, runs: RunMaker) -> None:
    for number in range(51):
        runs.run(f"run {number}")
    more = read(client).one("a", class_="more")
    assert "intersect once" in more["hx-trigger"]

    fragment = client.get(more["hx-get"], headers=HTMX)

    assert names(parse(fragment.text)) == ["run 0"]
    assert "<html" not in fragment.text
    assert fragment.headers["cache-control"] == "no-store"


def test_pages_stop_loading_by_themselves_after_ten(client: TestClient, runs: RunMaker) -> None:
    for number in range(51):
        runs.run(f"run {number}")

    rows = parse(client.get("/fragments/runs/more?depth=10", headers=HTMX).text)

    assert rows.one("a", class_="more")["hx-trigger"] == "click"


def test_a_fragment_asked_for_as_a_page_leads_to_the_page(client: TestClient) -> None:
    answer = client.get("/fragments/runs?agent=a&q=b")

    assert (answer.status_code, answer.headers["location"]) == (303, "/?q=b&agent=a")


def test_typing_answers_the_results_and_their_canonical_address(
    client: TestClient, runs: RunMaker
) -> None:
    runs.run("one", agent="mender")
    runs.run("two", agent="survey")

    answer = client.get("/fragments/runs?q=agent:mender", headers=HTMX)

    assert answer.headers["hx-replace-url"] == "/?agent=mender"
    page = parse(answer.text)
    assert names(page) == ["one"]
    assert page.one("hx-partial").text == "1 run"


def test_words_that_are_typed_stand_once_in_the_box(client: TestClient, runs: RunMaker) -> None:
    runs.run("one", agent="mender")

    box = read(client, "/?q=nothing&agent=mender").one("div", class_="filter-box")

    assert box.one("input", id="q")["value"] == "nothing"
    assert [chip.one("b").text for chip in box.all("span", class_="chip")] == ["agent"]


def test_what_is_counted_comes_alone_for_a_list_that_stands_open(
    client: TestClient, runs: RunMaker
) -> None:
    runs.run("fix", agent="mender", status=2)
    runs.run("reply", agent="clerk")

    page = read(client, "/fragments/runs/counts?agent=mender", **HTMX)

    targets = [one["hx-target"] for one in page.all("hx-partial")]
    assert targets == ["#run-count", "#pills", "#facets"]
    assert page.all("hx-partial")[0].text == "1 run"
    choices = {one.text for one in page.one("aside").all("a")}
    assert {"mender1", "clerk1"} <= choices  # what else could be chosen is there as well
    assert (
        read(client, "/fragments/runs/counts?q=%2D", **HTMX).all("hx-partial")[0].text == "0 runs"
    )
    assert client.get("/fragments/runs/counts", follow_redirects=False).status_code == 303


def test_an_unbalanced_search_is_told_and_not_an_error(client: TestClient, runs: RunMaker) -> None:
    runs.run("one")

    page = read(client, "/fragments/runs?q=%2D", **HTMX)

    assert page.one(class_="note").text


@pytest.mark.parametrize(
    ("column", "orders"),
    [
        ("Duration", [["long", "mid", "short"], ["short", "mid", "long"]]),
        ("Started", [["short", "mid", "long"], ["long", "mid", "short"]]),
    ],
)
def test_a_column_head_sorts_one_way_then_the_other_then_not(
    client: TestClient, runs: RunMaker, column: str, orders: list[list[str]]
) -> None:
    runs.run("mid", duration_s=5, age_s=500)
    runs.run("long", duration_s=9, age_s=900)
    runs.run("short", duration_s=1, age_s=100)
    arrival = ["short", "long", "mid"]

    address, seen = "/", []
    for _ in range(3):
        page = read(client, address)
        heads = page.one("table", class_="runs").one("thead").all("th")
        head = next(head for head in heads if head.text == column)
        seen.append(names(page))
        address = head.one("a")["href"]

    assert seen == [arrival, *orders]
    assert names(read(client, address)) == arrival


def test_a_broken_cursor_is_told(client: TestClient, runs: RunMaker) -> None:
    runs.run("one")

    assert "cursor" in read(client, "/?cursor=nonsense").one("main").one(class_="note").text


def test_two_selected_runs_are_set_side_by_side(client: TestClient, runs: RunMaker) -> None:
    left = runs.run("first", duration_s=2)
    right = runs.run("second", duration_s=9, usage=Usage(2200, 80, 0, None, None, 700_000))

    page = read(client, f"/?compare={left}&compare={right}&agent=clerk")

    bar = page.one("aside", class_="compare-bar")
    assert [side["data-side"] for side in bar.all("span", class_="side")] == ["left", "right"]
    assert bar.one("span", class_="compare-say").text == (
        "B: 7.00 s longer, 1.0k tokens more, $0.00035 more"
    )
    assert bar["data-clear"] == "/?agent=clerk"
    boxes = page.one("table", class_="runs").all("input")
    checked = [box["value"] for box in boxes if "checked" in box.attributes]
    assert sorted(checked) == sorted([left, right])


def test_a_selected_run_that_is_gone_is_left_out(client: TestClient, runs: RunMaker) -> None:
    runs.run("one")

    page = read(client, f"/?compare={'9' * 32}")

    assert page.all("aside", class_="compare-bar") == []


def test_the_navigation_leads_only_to_pages_that_exist(client: TestClient, runs: RunMaker) -> None:
    runs.run("one")

    for link in read(client).one("nav", class_="nav").all("a"):
        page = read(client, link["href"])
        here = [other for other in page.one("nav", class_="nav").all("a")
                if other.attributes.get("aria-current") == "page"]  # fmt: skip
        assert [other["href"] for other in here] == [link["href"]]


def test_the_list_is_a_table_that_can_be_heard(client: TestClient, runs: RunMaker) -> None:
    runs.run("one", status=2)

    page = read(client, "/?sort=-cost_usd")

    table = page.one("table", class_="runs")
    assert table.one("caption")
    assert all(head["scope"] == "col" for head in table.one("thead").all("th"))
    assert [head["aria-sort"] for head in table.all("th") if "aria-sort" in head.attributes] == [
        "descending"
    ]
    status = table.one("tbody").one(class_="status")
    assert status.text == "error"  # the colour and the icon only repeat the word
    assert page.one("html")["lang"] == "en"
    inside = [box for label in page.all("label") for box in label.all("input")]
    labelled = [box for box in page.all("input") if box.attributes.get("type") != "hidden"]
    known = {label.attributes.get("for") for label in page.all("label")}
    assert all(
        "aria-label" in box.attributes or box in inside or box["id"] in known for box in labelled
    )
    assert page.one(id="say")["aria-live"] == "polite"


TOO_MANY = " list of runs takes at most 100 filters; 101 are given"


PAGES = ["/", "/fragments/runs", "/fragments/runs/more"]  # where typed words may be filters


@pytest.mark.parametrize(
    ("path", "typed"),
    [(path, typed) for path in PAGES for typed in (False, True)] + [("/v1/runs", False)],
)
def test_a_list_takes_a_hundred_filters_and_refuses_more_by_name(
    client: TestClient, runs: RunMaker, path: str, typed: bool
) -> None:
    def answer(count: int) -> Response:
        names = [f"m{number}" for number in range(count)]
        words = " ".join(f"model:{name}" for name in names)
        return client.get(path, params={"q": words} if typed else {"model": names}, headers=HTMX)

    runs.run("fix", model="m7")

    taken, refused = answer(100), answer(101)

    assert taken.status_code == 200, taken.text
    assert "fix" in taken.text
    assert refused.status_code == 400
    assert TOO_MANY in refused.text


def test_filters_of_several_kinds_count_together(client: TestClient, runs: RunMaker) -> None:
    runs.run("fix", model="m7")
    same = client.get("/", params={"model": ["m7"] * 500, "compare": ["a"] * 500})
    mixed = {"model": [f"m{n}" for n in range(60)], "tool": [f"t{n}" for n in range(41)]}

    assert same.status_code == 200
    for path in ("/", "/v1/runs"):
        refused = client.get(path, params=mixed)
        assert refused.status_code == 400
        assert TOO_MANY in refused.text


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/facets"])
def test_the_openapi_document_states_how_many_filters_a_list_takes(
    client: TestClient, path: str
) -> None:
    document = client.get("/v1/openapi.json").json()
    schemas = {one["name"]: one["schema"] for one in document["paths"][path]["get"]["parameters"]}

    lists = {name: one["maxItems"] for name, one in schemas.items() if one.get("type") == "array"}

    assert lists == {
        "status": 100, "agent": 100, "model": 100, "tool": 100, "service": 100, "attribute": 100,
        "tag": 8, "score": 8,
    }  # fmt: skip


def test_facets_beyond_the_first_eight_are_folded_and_not_left_out(
    client: TestClient, runs: RunMaker
) -> None:
    for number in range(14):
        runs.run(f"run {number}", agent=f"agent-{number:02}")

    facets = parse(client.get("/").text).one("aside", id="facets")

    [more] = facets.all("button", class_="facet-more")
    assert more.text == "6 more…"
    values = parse(client.get(more["hx-get"], headers=HTMX).text)
    assert [link.one(class_="cut").text for link in values.all("a")] == [
        f"agent-{number:02}" for number in range(14)
    ]
    found = parse(client.get(f"{more['hx-get']}&like=T-13", headers=HTMX).text)
    [link] = found.all("a")
    assert names(read(client, link["href"])) == ["run 13"]
