"""The pages of replay: which acts there are, what a change would do, sending it, the result."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from starlette.testclient import TestClient

import hansard
from hansard_store.replays import ReplayRow, add_replay, change_replay
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings, parse_token
from tests.instrumentation.clients.asking import CHAT
from tests.instrumentation.clients.provider import json_reply
from tests.web.html import parse
from tests.web.replay.replay_pages import Pages, acts, chips, flips
from tests.web.replay.stage import ITEMS, MEMORY, NOW, SCRIPT, Stage, item, staging
from tests.web.replay.test_replay_forward import recorded_run, saying
from tests.web.replay.test_replay_refusals import FOREIGN, _with_secret, tell

Json = dict[str, Any]
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
def pages(stage: Stage) -> Pages:
    return Pages(stage)


@pytest.fixture(scope="module")
def scripted(stage: Stage) -> str:
    """A call of the scripted model; its compile left `almanac` out for want of room."""
    return stage.compiled_call(token_budget=160, response_reserve=60)


def changes_in(address: str) -> list[Json]:
    pairs = parse_qsl(urlsplit(address).query)
    return [json.loads(value) for name, value in pairs if name == "change"]


def at(step_id: str, *changes: Json, **more: str) -> str:
    query = [f"change={quote(json.dumps(one))}" for one in changes]
    return f"/replay/{step_id}?" + "&".join([*query, *(f"{k}={v}" for k, v in more.items())])


# ---- acts


def test_a_compile_that_no_call_used_says_that_no_request_is_made(
    pages: Pages, stage: Stage
) -> None:
    with stage.program():
        compiled = hansard.compile_step(
            inputs=ITEMS, model="scripted-1", provider=stage.adapter("scripted"),
            token_budget=600, response_reserve=100, now=NOW,
        )  # fmt: skip

    page = pages.get(f"/replay/{compiled.recorded.step_id}")

    assert "No request: only the compile is made again" in page.one(class_="replay-preview").text


def test_a_step_shows_what_can_be_done_with_it_and_what_is_true_of_that(
    pages: Pages, scripted: str
) -> None:
    page = pages.get(f"/replay/{scripted}")

    cards = acts(page)
    assert list(cards) == ["exact", "recorded", "mutated", "forward"]
    assert "the same bytes go out; the model may answer otherwise" in cards["exact"].text
    assert "Nothing is sent or paid" in cards["recorded"].text
    assert "From the stored compile request, 5 items" in cards["mutated"].text
    assert cards["exact"]["aria-current"] == "true"
    assert cards["forward"]["aria-disabled"] == "true"
    assert "No later call of the run holds this answer" in cards["forward"].text
    assert "the hash matches the record" in page.one(class_="replay-preview").text


def test_short_ids_lead_to_whole_ones_and_unknown_ones_are_404(pages: Pages, scripted: str) -> None:
    short = scripted[:40]
    answer = pages.stage.client.get(f"/replay/{short}?act=recorded", follow_redirects=False)

    assert answer.headers["location"] == f"/replay/{scripted}?act=recorded"
    pages.get("/replay/00000000000000000000000000000001-0000000000000001", status=404)
    pages.get("/replays/ffffffffff", status=404)


def test_what_cannot_be_replayed_stays_visible_with_its_typed_reason(
    pages: Pages, stage: Stage
) -> None:
    tool = tell(
        stage, "a1" * 8, name="execute_tool get",
        attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get"},
    )  # fmt: skip

    page = pages.get(f"/replay/{tool}")

    assert all(card["aria-disabled"] == "true" for card in acts(page).values())
    assert "a tool is never run again kind" in acts(page)["exact"].text
    assert page.all("button", class_="btn--primary") == []


def test_where_nothing_can_be_stored_the_page_says_who_can(stage: Stage, scripted: str) -> None:
    app = create_app(stage.folder, None, WebSettings())
    with TestClient(app, base_url="http://localhost") as client:
        page = parse(client.get(f"/replay/{scripted}").text)
        csrf = page.all("input", name="csrf")[0]["value"]
        sent = client.post(f"/replay/{scripted}", data={"csrf": csrf, "act": "exact"})

    assert all(card["aria-disabled"] == "true" for card in acts(page).values())
    assert "This process only shows what a collector stores" in page.text
    assert sent.status_code == 503


def test_of_a_request_with_secrets_cut_out_only_what_is_true_can_be_done(
    pages: Pages, stage: Stage
) -> None:
    step_id = stage.http_call(_with_secret())

    cards = acts(pages.get(f"/replay/{step_id}"))

    assert "secrets_cut" in cards["exact"].text
    assert "Secrets were cut out of the request before it was stored" in cards["exact"].text
    assert "aria-disabled" not in cards["mutated"].attributes


@pytest.mark.covers("RC-24")
def test_in_metadata_only_the_page_says_that_there_is_nothing_to_send(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staging(tmp_path / "data", monkeypatch) as bare:
        bare.serve(WebSettings(retention="metadata_only"))
        step_id = bare.http_call(CHAT)

        page = Pages(bare).get(f"/replay/{step_id}")

    for card in acts(page).values():
        assert card["aria-disabled"] == "true"
        assert "metadata_only" in card.text
    assert "Metadata_only keeps no content, so there is nothing to send" in page.text


# ---- changes


def test_fields_become_an_ordered_list_of_changes_in_the_address(
    pages: Pages, scripted: str
) -> None:
    first = pages.change(scripted, token_budget="1,200", **{"weight.freshness": "0.5"})
    then = pages.change(scripted, first, token_budget="1200", leave_out="orders", row="orders",
                        **{"weight.freshness": "0.5"})  # fmt: skip

    assert changes_in(then) == [
        {"op": "set_budget", "token_budget": 1200},
        {"op": "set_weights", "weights": {"freshness": 0.5}},
        {"op": "remove_item", "item_id": "orders"},
    ]
    page = pages.get(then)
    assert chips(page) == ["Budget 1,200 tokens", "Weights freshness 0.5", "Leave out item orders"]
    assert page.one("input", name="token_budget")["value"] == "1200"
    assert "160" in page.one("form", id="change-form").text  # as recorded, beside the field
    back = pages.change(scripted, then, token_budget="", row="orders",
                        **{"weight.freshness": "0.5"})  # fmt: skip
    assert [one["op"] for one in changes_in(back)] == ["set_weights"]


def test_every_kind_of_change_can_be_made_with_the_form(pages: Pages, stage: Stage) -> None:
    step_id = stage.compiled_call(memory=[MEMORY])
    told = {
        "provider": "openai", "model": "gpt-6-luna", "temperature": "0.2", "without_source": "file",
        "without_memory": "likes-short", "add_kind": "file", "add_id": "news",
        "add_content": "Lost.\r\nReally.", "edit_item": "orders", "content": "Order 7: lost.",
        "say_role": "user", "say_text": "Hurry.", "rules": '{"rules": []}',
        "raw": '{"op": "remove_tool", "name": "get"}',
    }  # fmt: skip

    found = changes_in(pages.change(step_id, **told))

    assert found == [
        {"op": "set_provider", "provider": "openai"},
        {"op": "set_model", "model": "gpt-6-luna"},
        {"op": "set_sampling", "temperature": 0.2},
        {"op": "remove_source", "source": "file"},
        {"op": "remove_memory", "memory_id": "likes-short"},
        {"op": "edit_item", "item_id": "orders", "content": "Order 7: lost."},
        {"op": "add_item", "item": {"kind": "file", "content": "Lost.\nReally.", "id": "news"}},
        {"op": "add_message", "role": "user", "text": "Hurry."},
        {"op": "set_policy", "rules": []},
        {"op": "remove_tool", "name": "get"},
    ]
    page = pages.get(at(step_id, *found, act="mutated"))
    assert flips(page)["news"] == "added"
    assert "openai gpt-6-luna" in page.one(class_="replay-preview").text


def test_content_that_was_opened_and_not_touched_is_no_change(pages: Pages, scripted: str) -> None:
    opened = pages.get(f"/replay/{scripted}?act=mutated&edit=orders").one("fieldset", id="edit")
    content = opened.one("textarea").children[0]
    assert isinstance(content, str)
    told = {one["name"]: one["value"] for one in opened.all("input")}

    same = pages.change(scripted, **told, content=content.strip("\n").replace("\n", "\r\n"))
    edited = pages.change(scripted, **told, content="Order 7: lost.")
    again = pages.change(scripted, edited, **told, content="Order 7: found.")

    assert changes_in(same) == []
    assert [one["content"] for one in changes_in(again)] == ["Order 7: found."]


def test_the_plain_address_with_fields_works_as_the_form_does(pages: Pages, scripted: str) -> None:
    path = f"/replay/{scripted}?token_budget=1200"
    answer = pages.stage.client.get(path, follow_redirects=False)

    assert changes_in(answer.headers["location"]) == [{"op": "set_budget", "token_budget": 1200}]


def test_changes_are_moved_and_taken_back(pages: Pages, scripted: str) -> None:
    changes = [{"op": "set_budget", "token_budget": 900}, {"op": "set_model", "model": "m"}]
    told = {"act": "mutated", "change": [json.dumps(one) for one in changes]}

    def after(**button: str) -> list[Json]:
        answer = pages.post(f"/replay/{scripted}/preview", **told, **button)
        return changes_in(answer.headers["location"])

    assert after(down="0") == changes[::-1]
    assert after(up="1") == changes[::-1]
    assert after(drop="0") == changes[1:]
    assert after(drop="7") == changes


def test_what_cannot_be_read_is_said_and_nothing_else_is_lost(pages: Pages, scripted: str) -> None:
    answer = pages.post(
        f"/replay/{scripted}/preview", act="mutated", token_budget="many", model="m",
        rules="{", raw="[]",
    )  # fmt: skip

    assert answer.status_code == 422
    for said in ("“many” is no number", "The rules: not JSON", "an object with an &#34;op&#34;"):
        assert said in answer.text
    assert "Model" in answer.text


def test_a_change_that_cannot_be_made_says_which_and_sends_nothing(
    pages: Pages, scripted: str
) -> None:
    page = pages.get(at(scripted, {"op": "remove_item", "item_id": "nobody"}))

    assert "The change names something that is not in the context" in page.text
    assert "item_unknown" in page.text
    assert "disabled" in page.one("fieldset", class_="run-fields").attributes


@pytest.mark.covers("RP-07")
def test_before_it_is_sent_it_shows_what_falls_in_and_out_and_why(
    pages: Pages, scripted: str
) -> None:
    change = {"op": "set_budget", "token_budget": 3000}

    page = pages.get(at(scripted, change))

    api = pages.stage.preview(scripted, change)
    differs = [one for one in api["compile"]["items"] if one["change"] not in ("same", "score")]
    assert flips(page) == {one["item_id"]: one["change"] for one in differs}
    assert flips(page)["almanac"] == "included"
    said = page.one(class_="would").text
    assert "almanac goes in" in said
    assert "budget, tokens 160 → 3,000" in said
    assert "nothing is paid" in page.one(class_="replay-preview").text
    assert page.one("table", class_="jsondiff").all("tr")[1:]


def test_what_is_left_out_is_its_own_cause_whatever_else_was_changed(
    pages: Pages, scripted: str
) -> None:
    changes = [
        {"op": "set_budget", "token_budget": 3000},
        {"op": "remove_item", "item_id": "orders"},
    ]

    shown = pages.stage.preview(scripted, *changes)
    page = pages.get(at(scripted, *changes))

    [orders] = [one for one in shown["compile"]["items"] if one["item_id"] == "orders"]
    assert orders["cause"] == {
        "kind": "input", "detail": "it is left out", "basis": "verified",
        "changes": ["left_out.orders"], "is_minimal": True,
    }  # fmt: skip
    row = next(one for one in page.all("li") if one.attributes.get("data-item") == "orders")
    assert "it is left out verified" in row.text


def test_a_long_change_is_carried_by_the_forms(pages: Pages, scripted: str) -> None:
    text = "word " * 3_000 + "almanac"
    answer = pages.post(
        f"/replay/{scripted}/preview", act="mutated", edit_item="orders", content=text
    )

    assert answer.status_code == 200
    forms = [one for one in parse(answer.text).all("form") if one.all("input", name="change")]
    assert len(forms) == 4  # of the acts, of the list, of the fields, of sending
    change = {"op": "edit_item", "item_id": "orders", "content": text}
    page = pages.send(
        scripted, act="mutated", change=[json.dumps(change)], script=json.dumps(SCRIPT)
    )
    assert chips(page) == ["Edit item orders"]


# ---- sending, and what became of it


@pytest.mark.covers("UI-16", "RP-01")
def test_an_exact_replay_says_that_the_same_bytes_went_out(pages: Pages, stage: Stage) -> None:
    step_id = stage.http_call(CHAT)
    stage.provider.received.clear()

    page = pages.send(step_id, act="exact")

    [request] = stage.provider.received
    assert request.body == stage.payload(stage.step(step_id)["attributes"]["hansard.request.ref"])
    assert "the same bytes went out" in page.text
    assert "the same answer" in page.text
    assert "the same request may have another answer" in page.one(class_="honest").text
    sources = [one["href"] for one in page.all("a") if f"/steps/{step_id}" == one["href"]]
    assert sources


@pytest.mark.covers("UI-16", "UI-17")
def test_a_replay_with_another_budget_shows_both_answers_and_the_flip(
    pages: Pages, scripted: str
) -> None:
    change = {"op": "set_budget", "token_budget": 3000}

    page = pages.send(
        scripted, act="mutated", change=json.dumps(change), script=json.dumps(SCRIPT),
        notes="more room",
    )  # fmt: skip

    left, right = page.one(class_="results").all("article")
    assert "another request than the recorded one" in page.text
    assert "byte for byte" not in page.text
    assert "the same bytes went out" not in page.text
    assert "In the post." in left.text
    assert "The almanac says: in the post." in right.text
    assert right.all("ins")
    items = [one["data-item"] for one in page.all("tr") if "data-item" in one.attributes]
    assert "almanac" in items
    assert chips(page) == ["Budget 3,000 tokens"]
    assert "more room" in page.one(class_="honest").text
    again = next(one for one in page.all("a") if one.text == "Replay it again with these changes")
    assert changes_in(again["href"]) == [change]
    assert chips(pages.get(again["href"])) == ["Budget 3,000 tokens"]


def test_a_source_that_is_left_out_is_gone_with_its_reason(pages: Pages, scripted: str) -> None:
    change = {"op": "remove_item", "item_id": "orders"}

    page = pages.send(scripted, act="mutated", change=json.dumps(change), offline="1")

    assert "nothing was asked" in page.text
    row = next(one for one in page.all("tr") if one.attributes.get("data-item") == "orders")
    assert "excluded" in row.text


@pytest.mark.covers("RP-21")
def test_an_answer_from_the_recording_is_labelled(pages: Pages, scripted: str) -> None:
    page = pages.send(scripted, act="recorded")

    assert "answered from the recording" in page.text
    assert "the recorded request, byte for byte" in page.text
    assert "went out" not in page.text
    listed = pages.get(f"/replay/{scripted}").all(class_="replays-row")
    assert any("recorded" in one.text for one in listed)


@pytest.mark.covers("RP-22")
def test_several_answers_are_grouped(pages: Pages, stage: Stage) -> None:
    step_id = stage.http_call(CHAT)
    answers = [saying("Seven."), saying("Eight."), saying("Seven.")]
    stage.provider.replies.extend(json_reply(one) for one in answers)

    page = pages.send(step_id, act="exact", n="3")

    spread = page.one("section", aria_labelledby="h-spread")
    assert "2 different answers" in spread.text
    rows = [row.text for row in spread.one("tbody").all("tr")]
    assert rows[0] == "2Seven.1 3"
    assert [one.text for one in page.one("nav", aria_label="Answer").all("a")] == ["1", "2", "3"]
    second = pages.get(page.one("nav", aria_label="Answer").all("a")[1]["href"])
    assert "Eight." in second.one("article", data_side="right").text


def test_a_fork_that_parted_says_where_and_who_may_go_on(pages: Pages, stage: Stage) -> None:
    steps = recorded_run(stage)
    other = saying(None, ("get", {"k": 9}))
    stage.provider.replies.append(json_reply(other))
    assert "aria-disabled" not in acts(pages.get(f"/replay/{steps[0]}"))["forward"].attributes

    page = pages.send(steps[0], act="forward")

    (made,) = [one for one in pages.get("/").all("span", class_="tag") if "forward" in one.text]
    assert made.text == f"forward replay of {steps[0][:8]}"
    assert page.one(id="replay-state").text == "diverged"
    parted = page.all("div", class_="note")[0].text
    assert parted.startswith("First difference at turn 1:")
    assert "get was asked for with another k" in parted
    assert "No tool is run from this page" in page.text


def test_one_that_is_being_made_asks_again_until_it_has_ended(
    pages: Pages, stage: Stage, scripted: str
) -> None:
    row = ReplayRow(
        replay_id=os.urandom(16).hex(), source_run_id=scripted[:32], source_step_id=scripted,
        run_id=None, mode="exact", is_recorded=False, repeats=1, state="running", reason=None,
        request_hash=None, steps=[], started_ns=time.time_ns(), ended_ns=None, holder="",
        report=None,
    )  # fmt: skip
    add_replay(stage.folder, row)

    page = pages.get(f"/replays/{row.replay_id[:12]}")
    poll = page.one(id="replay-result")["hx-get"]
    change_replay(stage.folder, row._replace(state="failed", reason="provider_failed", ended_ns=1))
    fragment = stage.client.get(poll, headers={"HX-Request": "true"})

    assert "It is being made" in page.text
    assert "hx-get" not in fragment.text
    assert "the provider gave no usable answer" in fragment.text
    plain = stage.client.get(poll, follow_redirects=False)
    assert plain.headers["location"] == f"/replays/{row.replay_id}"


def test_a_provider_that_fails_is_told(pages: Pages, stage: Stage) -> None:
    step_id = stage.http_call(CHAT)
    stage.provider.replies.append(json_reply({"error": {"message": "gone"}}, status=404))

    page = pages.send(step_id, act="exact")

    assert page.one(id="replay-state").text == "failed"
    assert page.one(class_="note", data_tone="error").text.startswith("It failed:")


# ---- a call without a compile


def test_messages_of_a_foreign_call_are_edited_and_removed(pages: Pages, stage: Stage) -> None:
    step_id = tell(stage, "b2" * 8, attributes=FOREIGN)
    page = pages.get(f"/replay/{step_id}")
    assert "not_recorded" in acts(page)["exact"].text
    assert "Rebuilt from telemetry" in acts(page)["mutated"].text

    opened = pages.get(f"/replay/{step_id}?act=mutated&edit=message:0")
    assert opened.one("input", name="edit_message")["value"] == "0"
    there = pages.change(step_id, edit_message="0", content="Only this?")
    assert changes_in(there) == [{"op": "edit_message", "position": 0, "text": "Only this?"}]

    shown = pages.get(there)
    rows = [one for one in shown.all("tr") if one.attributes.get("data-row") == "0"]
    assert "Only this?" in rows[0].text
    stage.provider.received.clear()
    made = pages.send(step_id, act="mutated", change=json.dumps(changes_in(there)[0]))
    assert "Only this?" in stage.provider.received[-1].body.decode()
    assert "rebuilt from telemetry" in made.text


# ---- from and to


@pytest.mark.covers("UI-08", "RP-18")
def test_a_step_leads_to_its_replay_and_what_it_made_leads_back(pages: Pages, stage: Stage) -> None:
    step_id = stage.compiled_call()
    page = pages.get(f"/steps/{step_id}")
    pane = pages.get(f"/runs/{step_id[:32]}?span={step_id[33:]}")
    for one in (page, pane):
        assert [a for a in one.all("a") if a["href"] == f"/replay/{step_id}"]

    told = stage.replay(step_id, script=SCRIPT)

    link = f"/replays/{told['replay_id']}"
    run = pages.get(f"/runs/{told['run_id']}")
    assert "Made by an exact replay; nothing of the recorded run was changed" in run.text
    assert f"/steps/{step_id}" in {a["href"] for a in run.all("a")}
    made = pages.get(f"/steps/{told['step_ids'][0]}")
    assert "Made by an exact replay" in made.text
    assert {link, f"/steps/{step_id}"} <= {a["href"] for a in made.all("a")}
    source = pages.get(f"/runs/{step_id[:32]}")
    assert "A step was replayed: 1 replay" in source.text
    tree = pages.get(f"/replay/{step_id}").one("ul", class_="replays")
    assert link in {a["href"] for a in tree.all("a")}


def test_replays_of_replays_stand_below_them(pages: Pages, stage: Stage) -> None:
    step_id = stage.compiled_call()
    first = stage.replay(step_id, script=SCRIPT)
    second = stage.replay(first["step_ids"][0], script=SCRIPT)

    outer = pages.get(f"/replay/{step_id}").all("ul", class_="replays")[0]
    assert second["replay_id"][-8:] in outer.one("ul", class_="replays").text
    below = pages.get(f"/replays/{first['replay_id']}").one("section", aria_labelledby="h-below")
    assert second["replay_id"][-8:] in below.text


# ---- who may, and what is hostile


def test_a_token_that_may_only_read_sees_it_and_cannot_send(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staging(tmp_path / "data", monkeypatch) as own:
        step_id = own.compiled_call()
        tokens = (parse_token("read:reader-token"), parse_token("read+decide:decider-token"))
        own.serve(WebSettings(tokens=tokens))
        csrf = _sign_in(own, "reader-token")
        there = f"/replay/{step_id}"

        page = Pages(own).get(f"{there}?act=recorded")
        sent = own.client.post(there, data={"csrf": csrf, "act": "recorded"})
        looked = own.client.post(
            f"{there}/preview", data={"csrf": csrf, "token_budget": "900"}, follow_redirects=False
        )

        assert "takes the scope decide" in page.text
        assert "disabled" in page.one("fieldset", class_="run-fields").attributes
        assert (sent.status_code, looked.status_code) == (403, 303)
        csrf = _sign_in(own, "decider-token")
        assert "takes the scope decide" not in Pages(own).get(there).text
        done = own.client.post(
            there, data={"csrf": csrf, "act": "recorded"}, follow_redirects=False
        )
        assert done.status_code == 303
        made = done.headers["location"].rpartition("/")[2]
        own.replays.wait(made, seconds=30)
        assert own.replays.row(made).state == "done"


def _sign_in(stage: Stage, token: str) -> str:
    """Sign in; returns the token of the forms."""
    stage.client.cookies.clear()
    page = parse(stage.client.get("/signin").text)
    csrf = page.one("form", action="/signin").one("input", name="csrf")["value"]
    answer = stage.client.post("/signin", data={"csrf": csrf, "token": token})
    return parse(answer.text).all("input", name="csrf")[0]["value"]


def test_a_form_of_another_page_begins_nothing(pages: Pages, scripted: str) -> None:
    before = pages.stage.get(f"/v1/replay?step={scripted}")["items"]

    answer = pages.stage.client.post(f"/replay/{scripted}", data={"act": "recorded"})

    assert answer.status_code == 403
    assert pages.stage.get(f"/v1/replay?step={scripted}")["items"] == before


def test_hostile_content_and_hostile_changes_are_text(pages: Pages, stage: Stage) -> None:
    items = [*ITEMS, item(HOSTILE, content=HOSTILE)]
    script = {**SCRIPT, "otherwise": {"say": HOSTILE}}
    step_id = stage.compiled_call(items=items, token_budget=2000)
    change = {"op": "edit_item", "item_id": HOSTILE, "content": HOSTILE + "!"}
    unknown = {"op": HOSTILE, "x": HOSTILE}

    texts = [
        stage.client.get(at(step_id, change, edit=quote(HOSTILE))).text,
        stage.client.get(at(step_id, unknown)).text,
        stage.client.get(f"/replay/{step_id}?change={quote(HOSTILE)}&act={quote(HOSTILE)}").text,
    ]
    told = stage.replay(step_id, mutations=[change], script=script, notes=HOSTILE)
    texts.append(stage.client.get(f"/replays/{told['replay_id']}").text)

    for text in texts:
        assert "<img" not in text
        assert "<script>" not in text
    assert "&lt;script&gt;" in texts[0]
    assert "&lt;script&gt;" in texts[3]


def test_a_script_that_cannot_be_read_is_kept_and_named(pages: Pages, scripted: str) -> None:
    for script, said in (
        ("{", "The script is not JSON"),
        ("[]", "The script is an object"),
        ('{"x": 1}', "a script is a mapping that begins with"),
    ):
        answer = pages.post(f"/replay/{scripted}", act="exact", script=script)
        assert answer.status_code == 422
        assert said in answer.text


def test_a_replay_without_its_script_is_refused_and_the_refusal_is_recorded(
    pages: Pages, scripted: str
) -> None:
    answer = pages.post(f"/replay/{scripted}", act="exact")

    assert answer.status_code == 409
    assert "the scripted model needs its script again" in answer.text
    newest = pages.stage.get(f"/v1/replay?step={scripted}")["items"][0]
    assert newest["state"] == "refused"
    assert f"/replays/{newest['replay_id']}" in answer.text
    refused = pages.get(f"/replays/{newest['replay_id']}")
    assert "Nothing was sent: the server has no address and key for it" in refused.text
