"""A fork of compiled calls that goes on live: each turn is compiled again, with receipts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import hansard
from tests.instrumentation.clients.provider import json_reply
from tests.web.replay.stage import MODELS, NOW, TOOL, Stage, item
from tests.web.replay.test_replay_forward import forward, ran, saying
from tests.web.replay.test_replay_live import END, go_on

Json = dict[str, Any]
LONG = "the almanac tells of tides " * 30


def asking(turn: str, words: str | None, *calls: tuple[str, Json]) -> Json:
    """Return a chat completion whose calls have ids of their own."""
    told = saying(words, *calls)
    for call in told["choices"][0]["message"]["tool_calls"]:
        call["id"] = f"{call['id']}_{turn}"
    return told


TURNS = (
    asking("a", "Let me look.", ("get", {"k": 7})),
    asking("b", None, ("get", {"k": 8}), ("send_email", {"to": "ada"})),
    saying("Both are in the post."),
)
PARTED = asking("c", None, ("send_email", {"to": "ada"}), ("get", {"k": 9}))
GIVEN = [{"call_id": "call_get_1_c", "result": "order 9 is at sea"}]
SENDING: Json = {"name": "send_email", "description": "Write.", "parameters": {"type": "object"}}


def compiled_run(stage: Stage, **more: Any) -> str:
    """Let an agent of three compiled turns run; returns the step of its first call."""
    stage.provider.replies.extend(json_reply(turn) for turn in TURNS)
    items: list[Any] = [
        item("rules", "system", "You are a clerk."),
        *more.pop("files", [item("almanac", content=LONG, importance_score=0.1)]),
        {"role": "user", "content": "Where are orders 7 and 8?"},
    ]
    steps = []
    with stage.program("agent"):
        adapter = stage.adapter("openai_compatible")
        for _ in TURNS:
            compiled = hansard.compile_step(
                inputs=items,
                **{
                    "model": MODELS["openai_compatible"], "provider": adapter, "now": NOW,
                    "token_budget": 2_000, "response_reserve": 100, "tools": [TOOL, SENDING],
                    **more,
                },
            )  # fmt: skip
            answer = hansard.call_model(compiled, provider=adapter, temperature=0.5)
            steps.append(answer.recorded.step_id)
            results = [
                {"role": "tool", "tool_call_id": one.id, "content": f"result of {one.id}"}
                for one in answer.tool_calls
            ]
            items += [answer.message, *results]
        adapter.close()
    stage.provider.received.clear()
    return steps[0]


def live_steps(stage: Stage, told: Json) -> list[Json]:
    return [stage.step(one["step_id"]) for one in told["steps"] if one.get("is_live")]


def decisions(stage: Stage, step: Json) -> dict[str, str]:
    """Return what the compile of a call did with each item."""
    compiled = step["attributes"]["hansard.compilation.id"]
    found = stage.get(f"/v1/compilations/{compiled}")["receipts"]
    return {one["item_id"]: one["decision"] for one in found}


@pytest.mark.covers("RP-20")
def test_each_live_turn_of_compiled_calls_has_a_compile_with_its_receipts(stage: Stage) -> None:
    parted = forward(stage, compiled_run(stage), [TURNS[0], PARTED])
    sent = stage.provider.received[-1].json

    again = asking("d", None, ("get", {"k": 10}))
    waiting = go_on(stage, go_on(stage, parted), again, results=GIVEN)
    call_id = waiting["continuation"]["calls"][0]["call_id"]
    done = go_on(stage, waiting, END, results=[{"call_id": call_id, "result": "lost"}])

    steps = live_steps(stage, done)
    assert [done["state"], len(steps)] == ["done", 2]
    for step, number in zip(steps, (5, 7), strict=True):
        kept = decisions(stage, step)
        assert set(kept.values()) == {"include"}
        said = [one for one in kept if one.startswith(("assistant_msg", "tool_result"))]
        assert len(said) == number
        assert step["context"]["kind"] == "native"
    said = stage.provider.received[-1].json
    assert {**said, "messages": []} == {**sent, "messages": []}  # and all that is no context
    assert said["messages"][: len(sent["messages"])] == sent["messages"]
    assert [one["content"] for one in said["messages"] if one["role"] == "tool"][-2:] == [
        "order 9 is at sea", "lost",
    ]  # fmt: skip
    assert not [one for one in done["notes"] if "not compiled again" in one]
    assert ran == []


def test_what_has_no_room_any_more_falls_out_of_a_live_turn_and_says_why(stage: Stage) -> None:
    parted = forward(stage, compiled_run(stage, token_budget=520), [TURNS[0], PARTED])
    assert LONG.strip() in stage.provider.received[-1].body.decode()

    done = go_on(stage, parted, END, results=[{"call_id": "call_get_1_c", "result": "sea " * 90}])

    [step] = live_steps(stage, done)
    assert decisions(stage, step)["almanac"] != "include"
    assert LONG.strip() not in stage.provider.received[-1].body.decode()


def test_a_turn_that_cannot_be_compiled_goes_on_from_the_request_and_is_told(stage: Stage) -> None:
    parted = forward(stage, compiled_run(stage, token_budget=520), [TURNS[0], PARTED])
    before = stage.provider.received[-1].json["messages"]

    huge = "sea " * 2_000
    done = go_on(stage, parted, END, results=[{"call_id": "call_get_1_c", "result": huge}])

    assert done["state"] == "done"
    assert stage.provider.received[-1].json["messages"][: len(before)] == before
    [told] = [one for one in done["notes"] if "the context was not compiled again" in one]
    assert told.startswith("from turn 3 on")


def test_changes_of_what_is_no_context_stay_in_live_turns(stage: Stage) -> None:
    warmer = {"op": "set_sampling", "temperature": 0.9}
    changed = forward(stage, compiled_run(stage), [TURNS[0], PARTED], mutations=[warmer])

    done = go_on(stage, changed, END, results=GIVEN)

    [step] = live_steps(stage, done)
    assert stage.provider.received[-1].json["temperature"] == 0.9
    assert step["context"]["kind"] == "native"


def test_a_context_that_its_compile_does_not_account_for_is_left_as_it_was_sent(
    stage: Stage,
) -> None:
    def prefers_tides(_: str, texts: Sequence[str]) -> list[int]:
        return [1_000_000 if "tides" in text else 0 for text in texts]

    ledger = item("ledger", content="orders 7 and 8: where they are " * 24)
    files = [item("almanac", content=LONG), ledger]
    step_id = compiled_run(stage, files=files, relevance=prefers_tides, token_budget=520)
    parted = forward(stage, step_id, [TURNS[0], PARTED])
    sent = stage.provider.received[-1].json["messages"]

    done = go_on(stage, parted, END, results=GIVEN)

    [step] = live_steps(stage, done)
    assert ("tides" in str(sent), "where they are" in str(sent)) == (True, False)
    assert stage.provider.received[-1].json["messages"][: len(sent)] == sent
    assert (step["context"] or {}).get("kind") != "native"
