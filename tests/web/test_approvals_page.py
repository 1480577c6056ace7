"""The inbox and one approval as pages; every decision by a plain form, without script."""

from __future__ import annotations

from contextlib import closing
from typing import cast

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from hansard_compiler.models.memory import WriteMemory
from hansard_store.approvals.records import (
    Action,
    Approval,
    Approver,
    Outcome,
    PolicyNote,
    Proposal,
    Status,
)
from hansard_store.approvals.service import ApprovalService
from hansard_store.memory.service import MemoryService
from hansard_store.policy.stored_policy import DENY, PolicyQuestion
from hansard_web.app.config import AccessToken, Scope, WebSettings
from tests.signing import session_of
from tests.web.approvals import DEAL, MINUTE, RUN, STEP, ask, read, redraft, send, store_of
from tests.web.conftest import MakeClient
from tests.web.makers import RunMaker


def test_what_waits_stands_first_by_its_deadline_then_what_was_decided(client: TestClient) -> None:
    store = store_of(client)
    later = ask(store, lifetime_ns=40 * MINUTE)
    sooner = ask(store, lifetime_ns=3 * MINUTE)
    sent_back = ask(store)
    store.revise(sent_back.approval_id, note="Ask Ines.")
    rejected = ask(store)
    store.reject(rejected.approval_id)

    page = read(client, "/approvals")

    items = [one["href"].rpartition("/")[2] for one in page.all("a", class_="inbox-item")]
    wanted = [sooner, later, sent_back, rejected]
    assert items == [one.approval_id for one in wanted]
    assert [one.text for one in page.all("h2", class_="inbox-group")] == [
        "Waiting for a decision 2",
        "Sent back, agent is redrafting 1",
        "Decided 1",
    ]
    [soon] = page.all("span", class_="is-soon")[:1]
    assert soon.one("time")["title"].startswith("expires 20")
    assert page.one("article", class_="ask").one("h2").text == sooner.description


@pytest.mark.covers("UI-18")
def test_one_action_shows_its_whole_chain_draft_by_draft_and_note_by_note(
    client: TestClient,
) -> None:
    store = store_of(client)
    first = ask(store)
    store.revise(first.approval_id, note="Use the net amount,\nnot gross.", by="Noor")
    second = redraft(store, first, amount=18400)
    store.revise(first.approval_id, note="Ines owns <this> account.", by="Noor")
    redraft(store, second, owner="Ines Okafor")

    page = read(client, f"/approvals/{first.approval_id}")

    story = page.one("ol", class_="drafts")
    assert [one.text for one in story.all("b")] == [
        "Draft 1", "Noor (claimed)", "Draft 2", "Noor (claimed)", "Draft 3",
    ]  # fmt: skip
    notes = ["Use the net amount, not gross.", "Ines owns <this> account."]
    assert [one.text for one in story.all("p", class_="drafts-note")] == notes
    assert [one.text for one in story.all("del")] == ["22632", "Noor Haddad"]
    assert [one.text for one in story.all("ins")] == ["18400", "Ines Okafor"]
    log = page.one("table", class_="ask-log")
    types = [one.text.partition(".")[2] for one in log.all("th", scope="row")]
    assert types == ["created", "revised", "reproposed", "revised", "reproposed"]
    links = {one["href"] for one in page.all("a")}
    assert {f"/runs/{RUN}", f"/steps/{STEP}", "/events/3"} <= links
    assert f"/events?approval={first.approval_id}" in links


@pytest.mark.covers("CG-08", "CG-29")
def test_every_argument_is_shown_and_what_to_look_at_is_marked(client: TestClient) -> None:
    asked = ask(
        store_of(client),
        arguments={**DEAL, "discount": 15},
        flags={"owner": "not_in_context"},
    )

    table = read(client, f"/approvals/{asked.approval_id}").one("table", class_="args")

    rows = {row.one("th").text: row for row in table.one("tbody").all("tr")}
    assert list(rows) == ["title", "amount", "owner", "discount"]
    assert "in no recorded input" in rows["owner"].text
    assert "the description leaves it out" in rows["discount"].text
    marked = [row.one("th").text for row in table.all("tr", class_="is-flagged")]
    assert marked == ["owner", "discount"]
    assert "2 arguments to check" in read(client, "/approvals").text
    store_of(client).approve(asked.approval_id, by="Noor")
    assert "to check" not in read(client, "/approvals").one("ul", class_="inbox-items").text


@pytest.mark.covers("UI-19", "PO-22")
@pytest.mark.parametrize(
    ("decision", "note", "status", "event"),
    [
        ("approve", "", Status.APPROVED, "action.approved"),
        ("reject", "Too dear.", Status.REJECTED, "action.rejected"),
        ("revise", "Ask Ines.", Status.REVISED, "action.revised"),
    ],
)
def test_a_form_decides_and_the_log_has_it(
    client: TestClient, decision: str, note: str, status: Status, event: str
) -> None:
    store, address = store_of(client), ""
    asked = ask(store)
    address = f"/approvals/{asked.approval_id}"

    answer = send(client, address, decision, note=note, revision=1)

    assert answer.status_code == 303
    assert answer.headers["location"] == address
    decided = store.approval(asked.approval_id)
    assert (decided.status, decided.reason or decided.note or "") == (status, note)
    last = store.history(asked.approval_id)[-1]
    assert (last.type, last.actor, last.who, last.source) == (event, "me", "ana", "page")
    assert note in read(client, address).text


def test_a_decision_sent_twice_is_one_and_another_tab_is_told_the_first(
    client: TestClient,
) -> None:
    store = store_of(client)
    asked = ask(store)
    address = f"/approvals/{asked.approval_id}"

    codes = [send(client, address, "approve", revision=1).status_code for _ in range(2)]
    late = send(client, address, "reject", note="No!", revision=1)

    assert (codes, late.status_code) == ([303, 303], 409)
    assert "is approved already, by ana" in late.text
    assert "What was decided first stands" in late.text
    decisions = [one.type for one in store.history(asked.approval_id)]
    assert decisions == ["action.created", "action.approved"]


def test_a_draft_that_was_not_looked_at_is_not_approved(client: TestClient) -> None:
    store = store_of(client)
    asked = ask(store)
    store.revise(asked.approval_id, note="Cheaper.")
    redraft(store, asked, amount=1)
    address = f"/approvals/{asked.approval_id}"

    answer = send(client, address, "approve", note="my note", revision=1)

    assert answer.status_code == 409
    assert "draft 2 is there now" in answer.text
    assert 'value="my note"' in answer.text
    assert store.approval(asked.approval_id).status is Status.AWAITING


def test_sending_back_needs_a_note(client: TestClient) -> None:
    asked = ask(store_of(client))

    answer = send(client, f"/approvals/{asked.approval_id}", "revise", note=" ", revision=1)

    assert answer.status_code == 422
    assert "a note is needed" in answer.text


def test_a_token_that_may_read_sees_and_cannot_decide(make_client: MakeClient) -> None:
    tokens = (
        AccessToken("reader-123456789012", frozenset({Scope.READ})),
        AccessToken("decider-12345678901", frozenset({Scope.READ, Scope.DECIDE})),
    )
    client = make_client(WebSettings(tokens=tokens))
    asked = ask(store_of(client))
    address = f"/approvals/{asked.approval_id}"

    def signed_in(secret: str) -> None:
        client.cookies.clear()
        csrf = read(client, "/signin").one("form", action="/signin").one("input", name="csrf")
        assert client.post("/signin", data={"csrf": csrf["value"], "token": secret}).is_redirect

    signed_in("reader-123456789012")
    fields = read(client, address).one("fieldset", class_="ask-fields")
    assert "disabled" in fields.attributes
    assert "not decide" in read(client, address).one("p", id="may-not").text
    assert send(client, address, "approve", revision=1).status_code == 403
    signed_in("decider-12345678901")
    assert "disabled" not in read(client, address).one("fieldset").attributes
    assert send(client, address, "approve", revision=1).status_code == 303


def test_a_form_of_another_site_decides_nothing(client: TestClient) -> None:
    store = store_of(client)
    asked = ask(store)

    answer = client.post(f"/approvals/{asked.approval_id}", data={"decision": "approve"})

    assert answer.status_code == 403
    assert store.approval(asked.approval_id).is_pending


@pytest.mark.covers("CG-27")
def test_a_batch_is_one_screen_from_which_single_actions_are_taken_out(
    client: TestClient,
) -> None:
    store = store_of(client)
    names = ("Ben", "Cleo", "Dov", "Eve", "Fay")
    made = store.propose_batch(
        [Proposal("create_contact", {"name": one}, f"Create contact {one}") for one in names]
    )
    ids = [one.approval.approval_id for one in made]
    address = f"/approvals/{ids[0]}"
    batch = read(client, address).one("ol", class_="batch")
    assert [one.one("dd").text for one in batch.all("li")] == list(names)

    out = send(client, f"/approvals/{ids[2]}", "reject", note="taken out", revision=1, back=address)
    assert out.headers["location"] == address
    together = read(client, address).one("form", hx_post=address, class_="row")
    seen = [one["value"] for one in together.all("input", name="seen")]
    assert len(seen) == 4
    store.revise(ids[4], note="Who?")
    store.repropose(ids[4], {"name": "Mallory"})

    # Fay has become Mallory since this page was read: nothing is approved.
    assert send(client, address, "approve_batch", seen=seen).status_code == 409
    assert {store.approval(one).status for one in ids if one != ids[2]} == {Status.AWAITING}
    assert send(client, address, "approve_batch", seen=seen[:3]).status_code == 303
    statuses = [str(store.approval(one).status) for one in ids]
    assert statuses == ["approved", "approved", "rejected", "approved", "awaiting"]


@pytest.mark.covers("CG-28")
def test_what_ran_can_be_asked_to_be_undone(client: TestClient) -> None:
    store = store_of(client)
    asked = ask(store, undo=Action("delete_deal", {"id": 7}))
    store.approve(asked.approval_id)
    store.finish(store.claim(asked.approval_id), ok=True)
    address = f"/approvals/{asked.approval_id}"
    assert "returned" in read(client, address).one("ol", class_="states").text

    answer = send(client, address, "undo")

    undoing = read(client, answer.headers["location"])
    assert "delete_deal" in undoing.one("p", class_="ask-who").text
    assert undoing.one("p", class_="ask-who").all("a", href=address)
    assert send(client, address, "undo").status_code == 409


@pytest.mark.covers("CG-17")
def test_an_outcome_that_nobody_knows_is_listed_for_review(client: TestClient) -> None:
    store = store_of(client)
    asked = ask(store)
    store.approve(asked.approval_id)
    store.claim(asked.approval_id, lease_s=-1.0, holder="http")
    store.recover()

    page = read(client, "/approvals")

    assert page.one("h2", id="g-unknown").text == "Needs a look 1"
    assert page.one("a", class_="inbox-item").one("span", data_status="unknown").text == (
        "outcome unknown"
    )
    assert "The outcome is unknown" in page.one("article", class_="ask").text


def lost(store: ApprovalService, **changes: str) -> Approval:
    """Return an action whose outcome nobody knows."""
    asked = ask(store, **changes)
    store.approve(asked.approval_id)
    store.claim(asked.approval_id, lease_s=-1.0, holder="http")
    store.recover()
    return asked


@pytest.mark.covers("CG-17")
def test_a_person_settles_an_outcome_that_nobody_knew(client: TestClient) -> None:
    store = store_of(client)
    address = f"/approvals/{lost(store).approval_id}"
    form = read(client, address).one("form", id="settle")
    assert [one["value"] for one in form.all("button")] == ["ran", "did_not_run"]

    silent = send(client, address, "did_not_run", note=" ")
    taken = send(client, address, "did_not_run", note="the deal is not in the list")
    second = send(client, address, "ran", note="I see it", by="eve")

    assert (silent.status_code, taken.status_code, second.status_code) == (422, 303, 409)
    page = read(client, address)
    assert page.all("form", id="settle") == []
    way = [one.text for one in page.one("ol", class_="states").all("li")]
    assert way == ["requested", "approved by me (claimed)", "began", "did not run, as ana found"]
    shown = page.one("article", class_="ask").text
    assert "It did not run, as ana found at" in shown
    assert "the deal is not in the list" in shown
    assert "ana set the outcome: it did not run" in page.one("ol", class_="drafts").text
    assert read(client, "/approvals").all("h2", id="g-unknown") == []


@pytest.mark.covers("ME-13", "ME-20")
def test_an_approval_and_what_was_written_under_it_lead_to_each_other(client: TestClient) -> None:
    store = store_of(client)
    book: MemoryService = client.app.state.memory  # type: ignore[attr-defined]
    asked = ask(store, tool="remember", arguments={"content": "Deals over 20,000 need two people"})
    store.approve(asked.approval_id)
    written = book.write(
        WriteMemory(
            writer="human_approved_summary",
            content="Deals over 20,000 need two people",
            subject="deals",
            namespace={"project": "shop"},
            memory_type="constraint",
            approval_id=asked.approval_id[-8:],
            by="ana",
        )
    ).memory
    address, record = f"/approvals/{asked.approval_id}", f"/memory/{written.memory_id}"

    page = read(client, address)

    assert page.one("ul", class_="remembered").one("a", href=record).text
    assert "wrote to memory under it" in page.one("ol", class_="drafts").text
    assert read(client, record).all("a", href=address)
    explorer = read(client, f"/memory?approval={asked.approval_id}&state=all")
    assert explorer.all("a", href=f"{record}?state=all&approval={asked.approval_id}")
    assert client.get(f"/v1{address}").json()["memories"] == [written.memory_id]
    [listed] = client.get("/v1/memory", params={"approval": asked.approval_id[-8:]}).json()["items"]
    assert listed["approval_id"] == asked.approval_id


def test_edited_arguments_are_shown_as_a_difference_and_then_approved(client: TestClient) -> None:
    store = store_of(client)
    asked = ask(store)
    address = f"/approvals/{asked.approval_id}"
    text = read(client, f"{address}?edit=1").one("textarea").text
    edited = text.replace("22632", "18400")

    looked = send(client, address, "preview", arguments=edited, revision=1)
    assert looked.status_code == 200
    assert "<del>22632</del><ins>18400</ins>" in looked.text
    assert "Approve as edited" in looked.text
    assert "Approve this draft" not in looked.text  # nobody takes one for the other
    assert store.approval(asked.approval_id).status is Status.AWAITING
    assert send(client, address, "approve", arguments=edited, revision=1).status_code == 303
    decided = store.approval(asked.approval_id)
    assert (decided.status, decided.revision) == (Status.APPROVED, 2)
    assert decided.arguments == {**DEAL, "amount": 18400}


def test_an_edit_that_is_no_json_or_that_policy_denies_is_refused_with_its_text(
    client: TestClient,
) -> None:
    store, app = store_of(client), cast(FastAPI, client.app)
    asked = ask(store)
    address = f"/approvals/{asked.approval_id}"
    broken = send(client, address, "preview", arguments='{"amount": 1, "amount": 2', revision=1)
    assert broken.status_code == 422
    assert "&#34;amount&#34;: 2" in broken.text

    def deny(asked: PolicyQuestion) -> PolicyNote:
        return PolicyNote(effect=DENY, rule_ids=("no-gifts",), reason="not for nothing")

    app.state.accounts.store._policy = deny
    denied = send(client, address, "approve", arguments='{"amount": 0}', revision=1)
    assert denied.status_code == 403
    assert "not for nothing" in denied.text
    assert store.approval(asked.approval_id).status is Status.AWAITING


def test_arguments_with_a_secret_are_not_offered_for_editing(client: TestClient) -> None:
    asked = ask(store_of(client), arguments={"key": "sk-proj-" + "a1B2c3D4" * 6})
    address = f"/approvals/{asked.approval_id}"

    assert not asked.is_exact
    assert read(client, f"{address}?edit=1").all("textarea") == []
    assert read(client, address).all("a", class_="ask-edit") == []


@pytest.mark.covers("UI-22")
def test_hostile_text_is_text_and_nothing_in_it_is_invisible(client: TestClient) -> None:
    store = store_of(client)
    hostile = "<script>alert(1)</script>\u202egnp.exe\u200b\x07"
    asked = ask(
        store,
        tool="send",
        description=f"<img src=x onerror=alert(1)> {hostile}",
        arguments={"body": hostile, "big": "y" * 1_000_000, "a\u202eb": 1},
    )
    store.revise(asked.approval_id, note=hostile)

    for address in (f"/approvals/{asked.approval_id}", "/events", "/events/1", "/events/2"):
        answer = client.get(address)
        page = parse_main(answer.text)
        assert len(answer.text) < 200_000
        assert "alert(1)" in page and "‹U+202E›" in page  # noqa: PT018
        assert not {"\u202e", "\u200b", "\x07"} & set(answer.text)
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text


def parse_main(html: str) -> str:
    return html[html.index("<main") : html.index("</main>")]


def test_filters_stand_in_the_address_and_are_kept_beside_an_approval(client: TestClient) -> None:
    store = store_of(client)
    mine = ask(store, channel="sales")
    ask(store, agent="mender")

    page = read(client, "/approvals?channel=sales&agent=front-desk")

    [item] = page.all("a", class_="inbox-item")
    assert item["href"] == f"/approvals/{mine.approval_id}?channel=sales&agent=front-desk"
    assert [one["href"] for one in page.all("a", aria_label="Remove filter agent")] == [
        "/approvals?channel=sales"
    ]
    assert "Nothing meets this" in read(client, "/approvals?tool=nothing").text
    assert read(client, "/approvals?status=rejected").all("a", class_="inbox-item") == []


def test_decided_ones_are_paged(client: TestClient) -> None:
    store = store_of(client)
    for _ in range(52):
        store.reject(ask(store).approval_id)

    first = read(client, "/approvals?status=decided")
    [older] = [one["href"] for one in first.all("a", class_="link") if one.text == "Older ones"]
    second = read(client, older)

    seen = [one["href"][:43] for page in (first, second) for one in page.all("a", class_="rowlink")]
    assert len(set(seen)) == len(seen) == 52


def test_the_list_that_is_shown_is_the_one_that_is_marked(client: TestClient) -> None:
    store = store_of(client)
    decided = ask(store)
    store.approve(decided.approval_id)

    def shown(address: str) -> tuple[list[str], int]:
        page = read(client, address)
        marked = page.one("nav", aria_label="Show").all("a", aria_current="true")
        return [one.text for one in marked], len(page.all("a", class_="inbox-item"))

    assert shown("/approvals") == (["All"], 1)
    assert shown("/approvals?status=open") == (["Open 0"], 0)
    assert shown("/approvals?status=decided") == (["Decided"], 1)
    assert "Nothing waits for anybody" in read(client, "/approvals?status=open").text
    ask(store)
    assert shown("/approvals?status=open") == (["Open 1"], 1)


def test_an_empty_inbox_teaches_how_a_tool_is_gated(client: TestClient) -> None:
    page = read(client, "/approvals").one("main")

    assert '@hansard.tool(effect="write"' in page.one("pre").text
    assert len(page.one("pre").text.split("def ")) == 2
    assert read(client, "/approvals/deadbeefdeadbeef", status=404)


def test_whoever_is_asked_decides_under_their_name(client: TestClient) -> None:
    store = store_of(client)
    asked = ask(store, approvers=(Approver("noor", MINUTE), Approver("iris")))
    address = f"/approvals/{asked.approval_id}"
    client.cookies.clear()
    client.cookies.update(session_of(store.folder, "iris"))
    assert "as iris" in read(client, address).one("form", class_="ask-bar").text

    # What the form says does not count: who is signed in does.
    assert send(client, address, "approve", revision=1, by="noor").status_code == 403
    client.cookies.clear()
    client.cookies.update(session_of(store.folder, "noor"))
    assert send(client, address, "approve", revision=1).status_code == 303
    assert store.approval(asked.approval_id).decided_by == "noor"


def test_the_head_of_every_page_counts_what_waits(client: TestClient) -> None:
    assert "hidden" in read(client, "/health").one("span", id="waiting").attributes
    asked = ask(store_of(client))

    badge = read(client, "/health").one("span", id="waiting")

    assert "hidden" not in badge.attributes
    assert badge.text == "1"
    assert "waits for a decision" in badge.one("span", class_="sr").text
    fragment = {"HX-Request": "true"}
    assert client.get("/fragments/waiting?shown=1", headers=fragment).status_code == 204
    store_of(client).approve(asked.approval_id)
    assert "hidden" in client.get("/fragments/waiting?shown=1", headers=fragment).text


@pytest.mark.covers("UI-07")
def test_a_run_and_its_tool_step_lead_to_what_waits_and_say_what_became_of_it(
    client: TestClient, runs: RunMaker
) -> None:
    store = store_of(client)
    run = runs.run("front-desk", tool="create_deal")
    [step] = [
        one["step_id"]
        for one in client.get(f"/v1/runs/{run}/steps").json()["items"]
        if one["role"] == "tool"
    ]
    asked = ask(store, run_id=run, step_id=step)
    waiting = read(client, f"/runs/{run}")
    assert waiting.one("main").all("a", href=f"/approvals/{asked.approval_id}")
    assert "blocked" in {one["data-status"] for one in waiting.all("span", class_="status")}
    assert states(client, step) == ["requested", "waiting for a decision", "ran", "returned"]

    store.approve(asked.approval_id, by="Noor")
    store.finish(store.claim(asked.approval_id), ok=True)

    assert states(client, step) == ["requested", "approved by Noor (claimed)", "ran", "returned"]
    assert read(client, f"/steps/{step}").all("a", href=f"/approvals/{asked.approval_id}")
    assert read(client, f"/runs/{run}").all("a", href=f"/approvals?run={run}")


def test_every_page_says_one_thing_of_what_nobody_decided_yet(
    client: TestClient, runs: RunMaker
) -> None:
    store = store_of(client)
    run = runs.run("front-desk", tool="create_deal")
    asked = ask(store, run_id=run, step_id=None)

    said = {
        page: {
            one.text
            for one in read(client, page).all("span", class_="status")
            if one["data-status"] in ("awaiting", "blocked")
        }
        for page in (f"/runs/{run}", "/approvals", f"/approvals/{asked.approval_id}")
    }
    listed = read(client, "/").one("tr", id=f"run-{run}").one("span", class_="status")

    assert list(said.values()) == [{"waiting for a decision"}] * 3
    assert (listed.text, listed["title"]) == ("waiting for a decision", "waiting for a decision")
    assert "Waiting for a decision: Open Shop fit-out" in read(client, f"/runs/{run}").text
    told = client.get(f"/v1/runs/{run}").json(), store.approval(asked.approval_id)
    assert (told[0]["status"], told[1].status) == ("blocked", "awaiting")  # programs read these


@pytest.mark.parametrize(("outcome", "last"), [("ran", "ran"), ("did_not_run", "did not run")])
def test_the_tool_step_says_who_found_how_it_ended(
    client: TestClient, runs: RunMaker, outcome: Outcome, last: str
) -> None:
    store = store_of(client)
    run = runs.run("front-desk", tool="create_deal")
    steps = client.get(f"/v1/runs/{run}/steps").json()["items"]
    [step] = [one["step_id"] for one in steps if one["role"] == "tool"]
    asked = lost(store, run_id=run, step_id=step)
    assert states(client, step) == [
        "requested",
        "approved by me (claimed)",
        "began",
        "outcome unknown",
    ]

    store.settle_outcome(asked.approval_id, outcome, by="bea", note="I looked")

    told = ["requested", "approved by me (claimed)", "began", f"{last}, as bea (claimed) found"]
    assert states(client, step) == told


def states(client: TestClient, step: str) -> list[str]:
    gate = read(client, f"/steps/{step}").one("div", class_="gated")
    return [one.text for one in gate.one("ol").all("li")]


@pytest.mark.parametrize("name", ["аna", "𝐚na"])
def test_a_name_that_passes_for_another_is_marked_wherever_the_page_has_it(
    client: TestClient, name: str
) -> None:
    with closing(store_of(client)) as store:
        made = ask(store, agent=name.replace("na", "gent-na"), approvers=[Approver(name)])
        store.approve(made.approval_id, by=name)
    mark = f"{name} (looks like ana, and is not)"

    page = read(client, f"/approvals/{made.approval_id}").text
    events = read(client, "/events").text

    assert f"Approved by {mark} (claimed)" in page
    assert page.count(mark) >= 3  # who decides, who decided, the story
    assert "gent-na (looks like agent-na, and is not)" in page
    assert mark in events
