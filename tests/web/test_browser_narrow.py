"""Pages on a phone, and with names longer than any column: nothing overprints, nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals.service import ApprovalService
from hansard_store.transcripts.service import SqliteTranscripts
from tests.instrumentation.transcript_maker import assistant, say, user
from tests.signing import session_of
from tests.web.approvals import DEAL, ask
from tests.web.conftest import Served
from tests.web.makers import RunMaker
from tests.web.traces import Trace, said

PHONE = 390
RUN = "d" * 32
LONG = "orchestrator_of_" + "x" * 150

# Texts of the rows whose title runs into the next cell.
OVERPRINTED = """() => [...document.querySelectorAll('#rows > [role=row]')].flatMap(row => {
  const title = row.querySelector('.tg-title').getBoundingClientRect();
  const cells = [...row.children].slice(1).filter(one => one.getBoundingClientRect().width);
  return title.right > cells[0].getBoundingClientRect().left + 1 ? [row.innerText] : [];
})"""
# Boxes of several elements in one frame: a page that is still laid out moves between two questions.
BOXES = "all => all.map(one => document.querySelector(one).getBoundingClientRect().toJSON())"
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def phone(browser: Browser, served: Served) -> Iterator[Page]:
    """A signed-in tab of a phone: narrow, with fingers for a pointer."""
    context = browser.new_context(
        base_url=served.url,
        viewport={"width": PHONE, "height": 844},
        has_touch=True,
        is_mobile=True,
    )
    cookies = session_of(served.app.state.site.folder).items()
    context.add_cookies([{"name": n, "value": v, "url": served.url} for n, v in cookies])
    yield context.new_page()
    context.close()


def long_names(pipeline: Pipeline) -> None:
    """A run of one long agent name, one long word, and agents within agents."""
    trace = Trace(RUN)
    trace.agent(1, name=LONG, duration_s=40)
    trace.chat(2, 1, [said("user", "w" * 400)], said("assistant", "v" * 300), model="m" * 90)
    trace.tool(3, 1, "tool_" * 30, "c1", 4, result="r" * 200)
    for number in range(5, 24):
        parent = number - 1 if number > 5 else 1
        trace.agent(number, parent, name=f"nested level {number}", start_s=10, duration_s=20)
    trace.send(pipeline)


@pytest.mark.parametrize("width", [PHONE, 1440])
def test_a_long_name_is_cut_and_prints_over_nothing(
    page: Page, pipeline: Pipeline, width: int
) -> None:
    long_names(pipeline)
    page.set_viewport_size({"width": width, "height": 900})

    for address in (f"/runs/{RUN}", f"/steps/{RUN}-{3:016x}", "/"):
        page.goto(address)
        assert page.evaluate(SIDEWAYS) <= 1, address
    page.goto(f"/runs/{RUN}")

    expect(page.locator("#rows > [role=row]")).to_have_count(22)
    assert page.evaluate(OVERPRINTED) == []


def test_what_an_ellipsis_cuts_is_read_whole_under_the_pointer(page: Page, runs: RunMaker) -> None:
    runs.run("fix", agent=LONG)
    page.goto("/")

    cell = page.locator("#runs .c-agent").bounding_box()
    assert cell
    page.mouse.move(cell["x"] + 20, cell["y"] + 16)
    expect(page.locator("#runs .rowlink")).to_have_attribute("title", re.compile(LONG))
    page.locator("#runs .rowlink").hover()
    expect(page.locator("#runs .rowlink")).to_have_attribute("title", "fix")


def test_a_phone_opens_the_traces_of_a_prompt_and_marks_two_runs(
    phone: Page, runs: RunMaker
) -> None:
    for number in range(3):
        runs.run(f"round {number}", words="Fix it.", conversation="s", prompt="p")
    runs.runs(["one", "two"], words="Another.")
    phone.goto("/")

    phone.locator(".group-toggle").tap()
    expect(phone.locator("tr.member")).to_have_count(3)
    for box in phone.locator("tr:not(.member) .check").all():
        box.tap()
    expect(phone.locator(".compare-bar")).to_be_visible()


def test_the_table_follows_the_facets_of_a_phone(phone: Page, runs: RunMaker) -> None:
    for number in range(12):
        runs.run(f"run {number}", agent=f"agent-{number}")
    phone.goto("/")

    facets, table = phone.evaluate(BOXES, ["#facets", "table.runs"])

    assert facets["height"] < 180
    assert 0 <= table["y"] - facets["y"] - facets["height"] < 40
    agents = phone.locator("#facets a", has_text="agent-3")
    agents.scroll_into_view_if_needed()
    expect(agents).to_be_in_viewport()


def test_a_message_s_headings_stand_below_those_of_the_page(page: Page, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.agent(1)
    trace.chat(2, 1, [said("user", "What?")], said("assistant", "# Title\n\n## Part"))
    trace.chat(3, 1, [said("user", "And?")], said("assistant", "# Answer"))
    trace.send(pipeline)

    page.goto(f"/runs/{RUN}?view=conversation")

    headings = page.locator("main").get_by_role("heading")
    expect(headings.filter(has_text="Answer")).to_be_visible()
    levels = headings.evaluate_all("all => all.map(one => [one.textContent.trim(), one.tagName])")
    below = [tag for text, tag in levels if text in {"Title", "Part", "Answer"}]
    expect(page.locator("h1")).to_have_count(1)
    assert len(below) == 3, levels
    assert min(below) > "H1", levels


# Links to what a row is about that are too narrow to be read or hit.
THIN = """() => [...document.querySelectorAll('main .rowlink, main .hits-head a')].flatMap(link => {
  const box = (link.closest('td, th') ?? link).getBoundingClientRect();
  return box.width < 80 ? [`${link.innerText}: ${box.width}`] : [];
})"""
# Texts that nothing cuts and that stand out of the window.
RUN_OFF = """() => [...document.querySelectorAll('main :is(h2, p, b, a, span)')].flatMap(one => {
  const box = one.getBoundingClientRect();
  const clips = one.closest('.cut, h2') ?? document.body;
  const right = Math.min(box.right, clips.getBoundingClientRect().right);
  return box.width && right > innerWidth + 1 ? [one.innerText.slice(0, 60)] : [];
})"""


def fill(served: Served, pipeline: Pipeline) -> None:
    """One of everything that has a list: a failed run with long words, events, a transcript."""
    folder = served.app.state.site.folder
    long_names(pipeline)
    trace = Trace("e" * 32)
    trace.agent(1, name=LONG, failed=f"needle {'/very/long/path' * 20}")
    trace.chat(2, 1, [said("user", "needle")], None, failed="needle " + "z" * 300)
    trace.send(pipeline)
    store = ApprovalService(folder, source="api")
    ask(store)
    store.tool_called("get_quote", {"id": 1}, agent="mender")
    transcripts = SqliteTranscripts(folder, RetentionMode.REDACTED_PAYLOADS, Redactor(folder.key()))
    made = transcripts.ensure("support-42").id
    say(transcripts, made, user("I am Ada. Fix it."), assistant("Done."))


@pytest.mark.parametrize(
    "address",
    ["/", "/conversations", "/transcripts", "/events", "/receipts", "/tasks", "/memory",
     "/usage", "/health", "/search?q=needle"],
)  # fmt: skip
def test_every_list_of_a_phone_shows_what_its_rows_are_of(
    phone: Page, served: Served, pipeline: Pipeline, address: str
) -> None:
    fill(served, pipeline)
    phone.goto(address)

    assert phone.evaluate(SIDEWAYS) <= 1
    assert phone.evaluate(THIN) == []


@pytest.mark.parametrize("width", [PHONE, 1440])
def test_hits_of_long_words_stay_in_the_window(
    page: Page, served: Served, pipeline: Pipeline, width: int
) -> None:
    fill(served, pipeline)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/search?q=needle")

    expect(page.locator(".hit")).not_to_have_count(0)
    assert page.evaluate(SIDEWAYS) <= 1
    assert page.evaluate(RUN_OFF) == []


def test_an_approval_on_a_phone_shows_its_arguments_first(
    phone: Page, served: Served, pipeline: Pipeline
) -> None:
    store = ApprovalService(served.app.state.site.folder, source="api")
    for number in range(4):
        asked = ask(store, arguments={**DEAL, "amount": number}, description="Open a deal. " * 40)

    for address in (f"/approvals/{asked.approval_id}", "/approvals"):
        phone.goto(address)
        values = phone.locator(".arg-text")
        bar = phone.locator(".ask-bar").bounding_box()
        assert bar
        buttons = [one.bounding_box() for one in phone.locator(".ask-actions > *").all()]
        assert len({box["y"] for box in buttons if box}) == 1
        for at in (0, 1):
            value = values.nth(at).bounding_box()
            assert value
            assert value["y"] + value["height"] <= bar["y"]
        expect(phone.locator(".inbox-item").first).not_to_be_in_viewport()
        phone.get_by_role("link", name="All approvals").click()
        expect(phone.locator(".inbox-item").first).to_be_in_viewport()


def test_an_event_on_a_phone_says_what_it_is_and_breaks_no_word(
    phone: Page, served: Served, pipeline: Pipeline
) -> None:
    fill(served, pipeline)
    phone.goto("/events")

    row = phone.locator(".evs tbody tr", has_text="tool.called")
    expect(row.locator(".ev-say")).to_have_text("get_quote")
    expect(row.locator(".ev-say")).to_be_visible()
    row.get_by_role("link", name="tool.called").click()
    heading = phone.locator("h1")
    expect(heading).to_have_text("tool.called")
    box = heading.bounding_box()
    assert box
    assert box["height"] < 40
