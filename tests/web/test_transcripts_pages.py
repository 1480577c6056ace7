"""The pages of transcripts: everything or what the next call is given, a window at a time."""

from __future__ import annotations

from collections.abc import Callable

import apsw
import pytest
from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_compiler.transcripts.entry import NewMessage
from hansard_compiler.transcripts.ids import ConversationId
from hansard_store.database.readers import open_reader
from hansard_store.transcripts.service import SqliteTranscripts
from tests.instrumentation.transcript_maker import assistant, call, result, say, user
from tests.store.by_hand import triggers_dropped
from tests.web.conftest import MakeClient
from tests.web.html import Element, parse
from tests.web.makers import RunMaker
from tests.web.test_security import ALL, GUARDED, READER, bearer

Read = Callable[..., Element]


@pytest.fixture
def kept(runs: RunMaker) -> SqliteTranscripts:
    folder = runs.folder
    return SqliteTranscripts(folder, RetentionMode.REDACTED_PAYLOADS, Redactor(folder.key()))


@pytest.fixture
def talk(kept: SqliteTranscripts, runs: RunMaker) -> ConversationId:
    """A conversation with all there can be: a clip, a mark, a fold, a sub-agent, a run."""
    run_id = runs.run("fix", conversation="support-42")
    made = kept.ensure("support-42").id
    step = (bytes.fromhex(run_id), step_of(runs, run_id))
    kept.append(made, [NewMessage(user("I am Ada. Fix it."), trace_id=step[0], span_id=step[1])])
    say(kept, made, call("c1", "read_file"), result("c1", "row\n" * 20_000))
    branch = kept.spawn(made, "researcher").id
    say(kept, branch, user("look it up"))
    kept.end(branch)
    kept.mark(made, 0, "redacted", reason="a name", actor="noor")
    kept.fold(made, "The bug is to be fixed.", actor="clerk")
    say(kept, made, assistant("<script>alert(1)</script> done"))
    return made


def step_of(runs: RunMaker, run_id: str) -> bytes:
    connection = open_reader(runs.folder)
    sql = "SELECT span_id FROM span WHERE trace_id = ? ORDER BY id LIMIT 1"
    span_id = connection.execute(sql, (bytes.fromhex(run_id),)).get
    connection.close()
    assert isinstance(span_id, bytes)
    return span_id


@pytest.fixture
def read(client: TestClient) -> Read:
    def read(path: str, status: int = 200) -> Element:
        answer = client.get(path)
        assert answer.status_code == status, answer.text
        return parse(answer.text)

    return read


@pytest.mark.covers("UI-21")
def test_everything_is_shown_with_its_folds_clips_marks_and_sub_agents(
    read: Read, talk: ConversationId
) -> None:
    page = read(f"/transcripts/{talk}")

    entries = page.all("div", class_="script-entry")
    assert [entry["id"] for entry in entries] == ["m-0", "m-1", "m-2", "m-3"]
    assert "‹message removed: redacted›" in entries[0].text
    assert "a name, noor" in entries[0].text
    assert entries[0].one("a", class_="script-step")["href"].startswith("/steps/")
    whole = entries[2].one("div", class_="script-about").one("a")
    assert whole["href"].startswith("/v1/payloads/sha256:")
    fold = page.one("details", class_="script-fold")
    assert fold["id"] == "fold-2"
    assert "The bug is to be fixed." in fold.text
    assert "researcher" in page.one("div", class_="script-branch").text
    assert [("is-folded" in entry["class"]) for entry in entries] == [True, True, True, False]
    assert "Ada" not in page.one("main").text


@pytest.mark.covers("UI-21")
def test_what_the_next_call_is_given_is_another_address(read: Read, talk: ConversationId) -> None:
    everything = read(f"/transcripts/{talk}")
    link = everything.one("nav", class_="seg").all("a")[1]
    active = read(link["href"])

    assert link["href"] == f"/transcripts/{talk}?view=active"
    assert active.one("nav", class_="seg").all("a")[1]["aria-current"] == "true"
    first, second = active.all("div", class_="script-entry")
    assert "Summary of the first 3 messages" in first.text
    assert second["id"] == "m-3"
    assert active.all("details", class_="script-fold") == []


def test_what_was_said_is_never_markup(read: Read, talk: ConversationId) -> None:
    page = read(f"/transcripts/{talk}?view=active")

    assert "<script>alert(1)</script> done" in page.one("main").text
    assert page.one("main").all("script") == []


@pytest.mark.covers("TR-25")
def test_what_was_redacted_is_for_administrators(
    make_client: MakeClient, talk: ConversationId
) -> None:
    client = make_client(GUARDED)
    path = f"/transcripts/{talk}?raw=1"

    assert client.get(path, headers=bearer(READER)).status_code == 403
    assert "I am Ada" in client.get(path, headers=bearer(ALL)).text
    text = f"/transcripts/{talk}/messages/0"
    assert "Ada" not in client.get(text, headers=bearer(READER)).text
    assert client.get(f"{text}?raw=1", headers=bearer(READER)).status_code == 403
    assert "I am Ada" in client.get(f"{text}?raw=1", headers=bearer(ALL)).text


def test_a_long_transcript_is_read_a_window_at_a_time(read: Read, kept: SqliteTranscripts) -> None:
    long = kept.ensure("long").id
    say(kept, long, *(user(f"message {n}") for n in range(150)))
    page, seen = read(f"/transcripts/{long}"), []
    while True:
        seen += [entry["id"] for entry in page.all("div", class_="script-entry")]
        later = [one["href"] for one in page.all("a", class_="more") if one["rel"] == "next"]
        if not later:
            break
        page = read(later[0])

    assert seen == [f"m-{n}" for n in range(150)]
    assert "121 to 150 of 150 messages" in page.text
    newest = read(f"/transcripts/{long}").one("div", class_="script-bar").one("a", class_="btn")
    assert read(newest["href"]).all("div", class_="script-entry")[-1]["id"] == "m-149"
    assert read(f"/transcripts/{long}?at=9999").all("div", class_="script-entry")


@pytest.mark.covers("TR-24")
def test_the_cost_of_going_on_stands_in_the_head(read: Read, kept: SqliteTranscripts) -> None:
    large = kept.ensure("large").id
    say(kept, large, *(user("word " * 50_000) for _ in range(3)))

    page = read(f"/transcripts/{large}")

    assert "tokens to go on" in page.one("dl", class_="figures").text
    assert "Fold now." in page.one("main").one(class_="note").text


def test_a_row_that_does_not_decode_is_shown_as_such(
    read: Read, runs: RunMaker, talk: ConversationId
) -> None:
    damaged = apsw.Connection(str(runs.folder.database))
    with triggers_dropped(damaged):
        damaged.execute("UPDATE transcript_message SET content = '{}' WHERE position = 1")
    damaged.close()

    page = read(f"/transcripts/{talk}")

    assert "This row does not decode as a message." in page.one("div", id="m-1").text
    assert "parts" in page.one("div", id="m-1").text


@pytest.mark.covers("TR-21")
def test_conversation_transcript_and_step_lead_to_each_other(
    read: Read, talk: ConversationId, kept: SqliteTranscripts
) -> None:
    conversation = read("/conversations?id=support-42")
    transcript = read(f"/transcripts/{talk}")
    row = read("/transcripts").one("tbody").one("tr")

    inside = conversation.one("div", class_="script")
    assert [one["id"] for one in inside.all("div", class_="script-entry")][:2] == ["m-0", "m-1"]
    assert conversation.one("span", role="status").one("a")["href"] == f"/transcripts/{talk}"
    back = transcript.one("div", class_="page-head").one("a", class_="btn")
    assert back["href"] == "/conversations?id=support-42"
    assert row.one("a")["href"] == f"/transcripts/{talk}"
    branch = transcript.one("div", class_="script-branch").one("a")["href"]
    [step] = transcript.all("a", class_="script-step")
    run_id, _, span_id = step["href"].removeprefix("/steps/").partition("-")
    appended_in = kept.messages(talk, limit=1)[0]
    assert (run_id, span_id) == (appended_in.trace_id, appended_in.span_id)
    assert read(step["href"]).one("main").one("h1")
    crumbs = [one["href"] for one in read(branch).one("ol", class_="crumbs").all("a")]
    assert crumbs[:2] == ["/conversations", "/transcripts"]
    assert f"/transcripts/{talk}" in crumbs[2]


def test_empty_and_unknown_transcripts_say_so(read: Read, kept: SqliteTranscripts) -> None:
    assert "No stored transcripts yet" in read("/transcripts").text
    empty = kept.ensure("empty").id

    assert "No messages yet" in read(f"/transcripts/{empty}").text
    assert "(no user message)" in read("/transcripts").text
    read(f"/transcripts/conv_{'0' * 32}", status=404)
    read("/transcripts/4bf92f3577b34da6a3ce929d0e0e4736", status=400)
    read(f"/transcripts/{empty}/messages/0", status=404)


def test_a_fold_opens_by_keyboard_and_the_toggle_stays_in_the_address(
    page: Page, talk: ConversationId
) -> None:
    page.goto("/transcripts")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#messages")).to_be_visible()
    summary = page.locator("details.script-fold summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator("details.script-fold pre")).to_be_visible()
    page.get_by_role("link", name="Input of the next call").click()
    expect(page).to_have_url(f"{page.url.split('/transcripts')[0]}/transcripts/{talk}?view=active")
