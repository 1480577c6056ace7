"""Going on live from the page of a replay and from the command line: asked for, told, and paid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.instrumentation.clients.provider import json_reply
from tests.web.html import Element, parse
from tests.web.replay.replay_pages import Pages
from tests.web.replay.stage import Stage
from tests.web.replay.test_replay_command import run
from tests.web.replay.test_replay_forward import TURNS, recorded_run, saying
from tests.web.replay.test_replay_live import END, PARTED, go_on, parted_fork

Json = dict[str, Any]


@pytest.fixture
def pages(stage: Stage) -> Pages:
    return Pages(stage)


def send(pages: Pages, told: Json, **fields: Any) -> Element:
    """Submit the form that goes on, and return the page it comes to."""
    answer = pages.post(f"/replays/{told['replay_id']}/continue", **fields)
    assert answer.status_code == 303, answer.text
    pages.stage.replays.wait(told["replay_id"], seconds=30)
    return pages.get(str(answer.headers["location"]))


def calls(page: Element) -> list[tuple[str | None, str]]:
    rows = page.one("table", class_="live-calls").one("tbody").all("tr")
    return [(one["data-origin"], one.one("b").text) for one in rows]


@pytest.mark.covers("UI-16")
def test_the_page_of_a_parted_fork_says_what_going_on_costs_and_needs(
    stage: Stage, pages: Pages
) -> None:
    told = parted_fork(stage)

    page = pages.get(f"/replays/{told['replay_id']}")

    form = page.one("form", class_="go-on")
    assert "From here on nothing is a replay" in form.text
    assert "by the price list" in form.text
    assert [one["name"] for one in form.all("textarea")] == ["result.1"]
    assert "from the record" in form.text


def test_a_result_given_on_the_page_brings_the_fork_to_its_end(stage: Stage, pages: Pages) -> None:
    told = parted_fork(stage)
    stage.provider.replies.append(json_reply(END))

    page = send(pages, told, turns="5", usd="1", **{"result.1": '{"at": "sea"}'})

    assert page.one(id="replay-result")["data-state"] == "done"
    assert calls(page) == [("recorded", "send_email"), ("hand", "get")]
    assert not page.all("form", class_="go-on")


def test_a_form_with_mistakes_keeps_what_was_typed(stage: Stage, pages: Pages) -> None:
    told = parted_fork(stage)
    path = f"/replays/{told['replay_id']}/continue"

    wrong = pages.post(path, turns="many", usd="1e999", **{"result.1": "lost"})

    page = parse(wrong.text)
    assert wrong.status_code == 422
    assert "Turns: a whole number" in page.text
    assert "Dollars: a number" in page.text
    assert page.one("textarea", name="result.1").text.strip() == "lost"


def test_what_was_done_in_the_meantime_is_said_and_nothing_is_sent(
    stage: Stage, pages: Pages
) -> None:
    told = go_on(stage, parted_fork(stage))
    go_on(stage, told, END, results=[{"call_id": "call_get_1", "result": "lost"}])
    sent = len(stage.provider.received)

    late = pages.post(f"/replays/{told['replay_id']}/continue", turns="5", usd="1")

    assert late.status_code == 409
    assert "cannot go on" in late.text or "not one that can go on" in late.text
    assert len(stage.provider.received) == sent


def test_what_was_typed_for_one_turn_is_not_told_as_results_of_another(
    stage: Stage, pages: Pages
) -> None:
    told = go_on(stage, parted_fork(stage))
    form = pages.get(f"/replays/{told['replay_id']}").one("form", class_="go-on")
    typed = {"after": form.one("input", name="after")["value"], "result.1": "it is at sea"}
    other = saying(None, ("send_email", {"to": "ada"}), ("get", {"k": 77}))
    go_on(stage, told, other, results=[{"call_id": "call_get_1", "result": "lost"}])
    sent = len(stage.provider.received)

    late = pages.post(f"/replays/{told['replay_id']}/continue", turns="5", usd="1", **typed)

    assert late.status_code == 409
    assert "it went on since that was asked" in late.text
    assert not parse(late.text).one("textarea", name="result.1").text.strip()
    assert len(stage.provider.received) == sent


def test_the_command_waits_with_exit_3_and_goes_on_with_a_result(stage: Stage) -> None:
    steps = recorded_run(stage)
    stage.provider.replies.extend(json_reply(one) for one in (TURNS[0], PARTED))

    waiting = run(stage, steps[0], "--live", "--yes")
    told = stage.get("/v1/replay?limit=1")["items"][0]
    stage.provider.replies.append(json_reply(END))
    done = run(
        stage, told["replay_id"], "--continue", "--result", "call_get_1=lost", "--yes", "--json"
    )

    assert waiting.exit_code == 3
    assert "call_get_1 get: needed" in waiting.stdout
    assert "--continue --result call_get_1=…" in waiting.stdout
    body = json.loads(done.stdout)
    assert (done.exit_code, body["state"]) == (0, "done")
    assert body["live"]["calls"][1]["result"] == "lost"


def test_the_command_asks_before_it_goes_on_and_refuses_what_does_not_go_together(
    stage: Stage,
) -> None:
    told = parted_fork(stage)
    sent = len(stage.provider.received)

    unasked = run(stage, told["replay_id"], "--continue")
    mixed = run(stage, told["replay_id"], "--continue", "--recorded", "--yes")
    stray = run(stage, told["source"]["step_id"], "--result", "a=b", "--yes")

    assert [one.exit_code for one in (unasked, mixed, stray)] == [2, 2, 2]
    assert "--yes" in unasked.stderr
    assert len(stage.provider.received) == sent
