"""From a step on: recorded results for recorded calls, until the first answer that parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

import hansard
from hansard import instrument_client
from tests.instrumentation.clients.asking import openai_client
from tests.instrumentation.clients.provider import json_reply
from tests.web.replay.stage import ITEMS, SCRIPT, Stage

Json = dict[str, Any]


def saying(words: str | None, *calls: tuple[str, Json]) -> Json:
    """Return a chat completion."""
    message: Json = {"role": "assistant", "content": words}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{name}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(calls)
        ]
    return {
        "id": "chatcmpl_1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-6-luna",
        "choices": [
            {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    }


TURNS = (
    saying("Let me look.", ("get", {"k": 7})),
    saying(None, ("get", {"k": 8}), ("send_email", {"to": "ada"})),
    saying("Both are in the post."),
)
ran: list[Json] = []  # what the tool was run with


def look(call: Json) -> Json:
    """Run a tool for real: a replay must never come here."""
    ran.append(call)
    return {"role": "tool", "tool_call_id": call["id"], "content": f"result of {call['id']}"}


def recorded_run(stage: Stage) -> list[str]:
    """Let an agent of three turns run; returns the steps of its calls."""
    stage.provider.replies.extend(json_reply(turn) for turn in TURNS)
    messages: list[Any] = [{"role": "user", "content": "Where are orders 7 and 8?"}]
    with stage.program("agent"), instrument_client(openai_client(stage.provider)) as client:
        for _ in TURNS:
            said = client.chat.completions.create(model="gpt-6-luna", messages=messages)
            message = said.choices[0].message.model_dump(exclude_none=True)
            messages.append(message)
            messages += [look(call) for call in message.get("tool_calls", ())]
    run = stage.get("/v1/runs")["items"][0]["run_id"]
    steps = stage.get(f"/v1/runs/{run}/steps")["items"]
    ran.clear()
    stage.provider.received.clear()
    return [one["step_id"] for one in steps if one["role"] == "llm"]


def forward(stage: Stage, step_id: str, answers: Sequence[Json], **more: Any) -> Json:
    stage.provider.replies.extend(json_reply(one) for one in answers)
    return stage.replay(step_id, mode="forward", **more)


@pytest.mark.covers("RP-20", "RP-23")
def test_as_long_as_the_same_is_asked_every_turn_goes_out_byte_for_byte(stage: Stage) -> None:
    steps = recorded_run(stage)

    told = forward(stage, steps[0], TURNS)

    assert told["state"] == "done"
    assert [one["source_step_id"] for one in told["steps"]] == steps
    assert all(one["is_exact"] for one in told["steps"])
    for request, step_id in zip(stage.provider.received, steps, strict=True):
        ref = stage.step(step_id)["attributes"]["hansard.request.ref"]
        assert request.body == stage.payload(ref)
    assert ran == []


def test_offline_a_whole_run_is_gone_through_from_its_recording(stage: Stage) -> None:
    steps = recorded_run(stage)

    told = stage.replay(steps[1], mode="forward", recorded=True)

    assert [one["source_step_id"] for one in told["steps"]] == steps[1:]
    assert (told["state"], stage.provider.received) == ("done", [])


@pytest.mark.parametrize(
    ("second", "kind", "words"),
    [
        (saying(None, ("get", {"k": 9})), "other_arguments", "get was asked for with another k"),
        (saying(None, ("drop", {"k": 8})), "other_tool", "drop was asked for, recorded was get"),
        (saying(None, ("get", {"k": 8})), "missing_call", "send_email was not asked for any more"),
        (saying("Done."), "missing_call", "get was not asked for any more"),
        (
            saying(None, ("get", {"k": 8}), ("send_email", {"to": "ada"}), ("get", {"k": 1})),
            "extra_call",
            "get was asked for, and was not when it was recorded",
        ),
    ],
)
def test_the_first_tool_call_that_differs_is_named_and_nothing_is_run(
    second: Json, kind: str, words: str, stage: Stage
) -> None:
    steps = recorded_run(stage)

    told = forward(stage, steps[0], [TURNS[0], second])

    parted = told["divergence"]
    assert told["state"] == "diverged"
    assert (parted["turn"], parted["kind"]) == (2, kind)
    assert words in parted["sentence"]
    assert parted["source_step_id"] == steps[1]
    assert len(stage.provider.received) == 2
    assert ran == []
    asked = second["choices"][0]["message"].get("tool_calls", [])
    assert [one["name"] for one in told["continuation"]["calls"]] == [
        one["function"]["name"] for one in asked
    ]
    states = [one["state"] for one in told["continuation"]["calls"]]
    assert told["continuation"]["needs"] == ("results" if "needed" in states else "nothing")


def test_other_words_with_the_same_calls_go_on_in_the_later_turns(stage: Stage) -> None:
    steps = recorded_run(stage)
    chattier = saying("Of course! Looking now.", ("get", {"k": 7}))

    told = forward(stage, steps[0], [chattier, *TURNS[1:]])

    second = stage.provider.received[1].json["messages"]
    assert told["state"] == "done"
    assert second[1]["content"] == "Of course! Looking now."
    assert second[1]["tool_calls"][0]["id"] == second[2]["tool_call_id"] == "call_get_0"
    assert stage.provider.received[2].json["messages"][:3] == second
    assert [one["is_exact"] for one in told["steps"]] == [True, False, False]
    assert [one["is_rebuilt"] for one in told["steps"]] == [False, False, False]


def test_a_change_goes_with_every_later_turn(stage: Stage) -> None:
    steps = recorded_run(stage)

    told = forward(
        stage,
        steps[0],
        TURNS,
        mutations=[
            {"op": "set_model", "model": "gpt-6-mini"},
            {"op": "edit_message", "position": 0, "text": "Where are 7 and 8, please?"},
        ],
    )

    assert told["state"] == "done"
    for request in stage.provider.received:
        assert request.json["model"] == "gpt-6-mini"
        assert request.json["messages"][0]["content"] == "Where are 7 and 8, please?"


def test_compiled_turns_are_compiled_again_with_the_new_words(stage: Stage) -> None:
    script = {**SCRIPT, "answers": [], "otherwise": {"say": "In the post."}}
    talk: list[Any] = [*ITEMS]
    step_ids = []
    with stage.program("compiled"):
        for question in (None, "And order 8?"):
            if question is not None:
                talk.append({"role": "user", "content": question})
            compiled = hansard.compile_step(
                inputs=talk, model="scripted-1", provider=stage.adapter("scripted"),
                token_budget=900,
            )  # fmt: skip
            adapter = stage.adapter("scripted", script=script)
            answer = hansard.call_model(compiled, provider=adapter)
            step_ids.append(answer.recorded.step_id)
            talk.append(answer.message)

    same = stage.replay(step_ids[0], mode="forward", script=script)
    parted = stage.replay(
        step_ids[0], mode="forward", script={**script, "otherwise": {"say": "It is lost."}}
    )

    assert (same["state"], len(same["steps"])) == ("done", 2)
    assert (parted["state"], parted["divergence"]["kind"]) == ("diverged", "other_answer")


def test_the_last_turn_has_nothing_to_follow_and_a_fork_goes_one_way(stage: Stage) -> None:
    steps = recorded_run(stage)

    told = forward(stage, steps[-1], TURNS[-1:])
    refused = stage.refused(steps[0], mode="forward", n=2)

    assert (told["state"], len(told["steps"])) == ("done", 1)
    assert refused["reason"] == "mutation_invalid"
