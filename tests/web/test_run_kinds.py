"""Page `/` hides runs without an agent, model, tool or gate step, and says how many."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from tests.web.conftest import Served
from tests.web.html import Element
from tests.web.makers import RunMaker
from tests.web.test_live import partials, stream
from tests.web.test_runs_page import HTMX, names, read


def kind_filter(page: Element) -> Element:
    return page.one("span", class_="kind-filter")


def test_other_runs_are_hidden_by_a_filter_that_can_be_removed(
    client: TestClient, runs: RunMaker
) -> None:
    runs.run("fix")
    runs.request()
    runs.request("GET /ready")

    page = read(client)

    assert names(page) == ["fix"]
    assert page.one(id="run-count").text == "1 run"
    assert kind_filter(page).one("span", class_="chip").text == "Agent runs only"
    note = kind_filter(page).one("a", class_="link")
    assert note.text == "2 other runs hidden"
    assert kind_filter(page).one("span", class_="chip").one("a")["href"] == note["href"]
    everything = read(client, note["href"])
    assert names(everything) == ["GET /ready", "GET /health", "fix"]
    assert everything.one(id="run-count").text == "3 runs"
    back = kind_filter(everything).one("a")
    assert (back.text, back["href"]) == ("Show agent runs only", "/")


def test_the_number_hidden_respects_the_other_conditions(
    client: TestClient, runs: RunMaker
) -> None:
    runs.run("fix", service="desk")
    runs.request(service="desk")
    runs.request(service="shop")

    page = read(client, "/?service=desk")

    assert names(page) == ["fix"]
    note = kind_filter(page).one("a", class_="link")
    assert (note.text, note["href"]) == ("1 other run hidden", "/?service=desk&kind=any")
    found = read(client, "/?q=health")
    assert names(found) == []
    assert kind_filter(found).one("a", class_="link").text == "2 other runs hidden"
    assert "Show 2 other runs" in found.one(class_="empty").text
    shop = read(client, "/?service=shop")
    assert kind_filter(shop).one("a", class_="link").text == "1 other run hidden"


def test_counts_and_chart_are_of_what_is_shown(client: TestClient, runs: RunMaker) -> None:
    runs.run("fix", age_s=90)
    runs.run("answer", age_s=50)
    for _ in range(3):
        runs.request(service="shop")

    page = read(client)

    assert "shop" not in page.one("aside", class_="facets").text
    assert page.one("figcaption").text.startswith("Duration of 2 runs")
    everything = read(client, "/?kind=any")
    assert "shop3" in page_facets(everything)
    assert everything.one("figcaption").text.startswith("Duration of 5 runs")


def page_facets(page: Element) -> list[str]:
    return [link.text for link in page.one("aside", class_="facets").all("a")]


def test_without_an_agents_run_everything_is_shown_without_a_filter(
    client: TestClient, runs: RunMaker
) -> None:
    runs.request()

    page = read(client)

    assert names(page) == ["GET /health"]
    assert "hidden" in kind_filter(page).attributes
    assert "kind=" not in page.one(id="live")["hx-sse:connect"]


def test_a_list_of_agents_runs_alone_has_no_filter_to_remove(
    client: TestClient, runs: RunMaker
) -> None:
    runs.run("fix")

    assert "hidden" in kind_filter(read(client)).attributes
    assert kind_filter(read(client, "/?kind=agent")).text == "Agent runs only"


def test_a_kind_may_be_given_in_the_address_and_in_the_box(
    client: TestClient, runs: RunMaker
) -> None:
    runs.run("fix")
    runs.request()

    assert names(read(client, "/?kind=other")) == ["GET /health"]
    assert names(read(client, "/?q=kind:any")) == ["GET /health", "fix"]
    told = read(client, "/?kind=best")
    assert names(told) == ["GET /health", "fix"]
    assert "No run is of kind “best”; there are agent, other, any." in told.text


def test_all_pages_joined_are_all_agents_runs(client: TestClient, runs: RunMaker) -> None:
    made = []
    for number in range(60):
        made.append(f"run {number}")
        runs.run(made[-1])
        runs.request()

    page = read(client)
    first = names(page)
    rest = names(read(client, page.one("a", class_="more")["href"]))
    fragment = read(client, page.one("a", class_="more")["hx-get"], **HTMX)

    assert first + rest == made[::-1]
    assert names(fragment) == rest
    dearest = names(read(client, "/?sort=-cost_usd"))
    assert len(dearest) == 50
    assert set(dearest) <= set(made)


def test_a_live_list_shows_what_its_filter_lets_through(served: Served, runs: RunMaker) -> None:
    runs.run("fix")
    runs.request()
    with stream(served, "kind=agent&after=2&newest=1") as messages:
        late = runs.request("POST /chat")
        unseen = next(messages)
        runs.run("chat", trace=late)
        shown = next(messages)

    assert partials(unseen)[0]["hx-swap"] == "outerMorph"  # of a row that is nowhere
    assert (partials(shown)[0]["hx-target"], partials(shown)[0]["data-new"]) == ("#runs", "1")


def test_the_number_hidden_follows_a_live_list(page: Page, runs: RunMaker) -> None:
    runs.run("fix")
    page.goto("/")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
    expect(page.locator("#kind-filter")).to_be_hidden()

    runs.request()

    expect(page.locator("#kind-filter")).to_contain_text("1 other run hidden")
    expect(page.locator("#runs .rowlink")).to_have_text(["fix"])
    page.locator("#kind-filter").get_by_label("Remove filter Agent runs only").click()
    expect(page.locator("#runs .rowlink")).to_have_text(["GET /health", "fix"])
    runs.request("GET /ready")
    expect(page.locator("#runs .rowlink")).to_have_text(["GET /ready", "GET /health", "fix"])


def test_a_list_of_other_runs_goes_on_as_it_was_read(page: Page, runs: RunMaker) -> None:
    runs.request()
    page.goto("/")
    expect(page.locator("#live-state")).to_have_attribute("data-state", "live")

    runs.run("fix")

    expect(page.locator("#runs .rowlink")).to_have_text(["fix", "GET /health"])
    expect(page.locator("#run-count")).to_have_text("2 runs")
    page.reload()
    expect(page.locator("#runs .rowlink")).to_have_text(["fix"])


def test_typing_keeps_the_filter_and_what_it_hides(page: Page, runs: RunMaker) -> None:
    runs.run("fix", service="desk")
    runs.request(service="desk")
    runs.request(service="shop")
    page.goto("/")
    expect(page.locator("#kind-filter")).to_contain_text("2 other runs hidden")

    page.get_by_label("Filter", exact=True).press_sequentially("service:desk")

    expect(page.locator("#kind-filter")).to_contain_text("1 other run hidden")
    expect(page.locator("#runs .rowlink")).to_have_text(["fix"])
