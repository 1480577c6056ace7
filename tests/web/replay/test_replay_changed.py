"""Replay with changes: what falls out and why, what the request becomes, what is said instead."""

from __future__ import annotations

import json
from typing import Any

import pytest

import hansard
from tests.web.html import parse
from tests.web.replay.stage import ITEMS, MEMORY, MODELS, SCRIPT, Stage, item

Json = dict[str, Any]


def decisions(preview: Json) -> dict[str, str]:
    """Return what a previewed compile does otherwise, by item."""
    items = preview["compile"]["items"]
    return {one["item_id"]: one["change"] for one in items if one["change"] != "same"}


def right_side(preview: Json, item_id: str) -> Json:
    [found] = [one for one in preview["compile"]["items"] if one["item_id"] == item_id]
    side: Json = found["right"]
    return side


def sent_messages(preview: Json, stage: Stage, step_id: str, *mutations: Json) -> str:
    """Replay as previewed and return the body that the provider got."""
    stage.provider.received.clear()
    told = stage.replay(step_id, mutations=list(mutations))
    [request] = stage.provider.received
    assert told["request_hash"] == preview["request"]["hash"]
    return request.body.decode()


@pytest.mark.covers("RP-05", "RP-12", "TS-10")
def test_another_model_is_asked_and_stands_in_recipe_and_comparison(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")

    told = stage.replay(step_id, mutations=[{"op": "set_model", "model": "gpt-6-mini"}])

    assert stage.provider.received[-1].json["model"] == "gpt-6-mini"
    assert told["mode"] == "mutated"
    assert told["recipe"]["model_override"] == "gpt-6-mini"
    assert told["recipe"]["context_mutations"] == [{"op": "set_model", "model": "gpt-6-mini"}]
    assert told["same_request"] is False
    assert "gpt-6-mini" in json.dumps(told["comparison"])


@pytest.mark.covers("RP-06")
@pytest.mark.parametrize(
    ("source", "target", "model"),
    [
        ("openai", "anthropic", "claude-haiku-5-5"),
        ("anthropic", "openai", "gpt-6-luna"),
        ("scripted", "openai_compatible", "local-7b"),
    ],
)
def test_a_step_is_replayed_through_the_adapter_of_another_provider(
    source: str, target: str, model: str, stage: Stage
) -> None:
    step_id = stage.compiled_call(source)

    told = stage.replay(
        step_id,
        mutations=[
            {"op": "set_provider", "provider": target},
            {"op": "set_model", "model": model},
        ],
    )

    request = stage.provider.received[-1]
    made = stage.step(told["step_ids"][0])
    assert request.path.rpartition("/")[2] in ("messages", "responses", "completions")
    assert request.json["model"] == model
    assert made["call"]["provider"] == target
    assert "Where is order 7?" in request.body.decode()
    assert told["recipe"]["provider_override"] == target


@pytest.mark.covers("RP-07", "RP-16")
def test_a_smaller_budget_shows_what_falls_out_before_anything_is_sent(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")
    asked = len(stage.provider.received)

    shown = stage.preview(step_id, {"op": "set_budget", "token_budget": 190})

    assert len(stage.provider.received) == asked
    assert "almanac" in decisions(shown)
    assert shown["request"]["same"] is False
    assert shown["refusal"] is None
    assert shown["tokens"]["estimated_input"] > 0
    assert shown["compile"]["budget"]
    body = sent_messages(shown, stage, step_id, {"op": "set_budget", "token_budget": 190})
    assert body.count("tides") < 20


@pytest.mark.covers("RP-17")
def test_what_was_changed_is_said_in_words_beside_the_users_own_note(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")
    mutations = [
        {"op": "set_budget", "token_budget": 500},
        {"op": "remove_item", "item_id": "almanac"},
        {"op": "add_message", "role": "user", "text": "Be quick."},
    ]

    told = stage.replay(step_id, mutations=mutations, notes="does the almanac matter?")

    assert told["changes"] == [
        "Budget: 500 tokens",
        "Leave out item: almanac",
        "Add message: as user",
    ]
    assert told["user_notes"] == "does the almanac matter?"


@pytest.mark.covers("RP-08", "RP-11")
@pytest.mark.parametrize(
    ("mutation", "gone", "words"),
    [
        ({"op": "remove_memory", "memory_id": "likes-short"}, "likes-short", "short answers"),
        ({"op": "remove_memory"}, "likes-short", "short answers"),
        ({"op": "remove_source", "source": "docs/almanac.md"}, "almanac", "tides"),
        ({"op": "remove_source", "source": "file docs/almanac.md"}, "almanac", "tides"),
        ({"op": "remove_item", "item_id": "almanac"}, "almanac", "tides"),
        ({"op": "remove_tool", "name": "get"}, "tool:get", "Get an order"),
        ({"op": "remove_item", "item_id": "tool:get"}, "tool:get", "Get an order"),
    ],
)
def test_what_is_removed_is_gone_and_says_why(
    mutation: Json, gone: str, words: str, stage: Stage
) -> None:
    step_id = stage.compiled_call("openai", memory=[MEMORY])
    assert words in stage.provider.received[-1].body.decode()

    shown = stage.preview(step_id, mutation)

    assert right_side(shown, gone)["reason"] == "removed_by_replay"
    assert words not in sent_messages(shown, stage, step_id, mutation)
    made = stage.get(f"/v1/replay?step={step_id}")["items"][0]
    compiled = stage.step(made["step_ids"][0])["receipts"]
    assert {one["item_id"]: one["reason"] for one in compiled}[gone] == "removed_by_replay"


@pytest.mark.covers("RP-09")
def test_other_weights_give_other_scores_and_other_choices(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")

    shown = stage.preview(step_id, {"op": "set_weights", "weights": {"importance": 9.0}})

    scores = {
        one["item_id"]: (one["left"]["score"], one["right"]["score"])
        for one in shown["compile"]["items"]
        if one["left"]["score"] is not None
    }
    assert scores["orders"][0] != scores["orders"][1]


@pytest.mark.covers("RP-10")
def test_another_policy_denies_what_the_first_one_allowed(stage: Stage) -> None:
    rule = {
        "id": "no-almanac",
        "effect": "deny",
        "conditions": {"item.source_uri": "docs/almanac.md"},
    }
    step_id = stage.compiled_call("openai")

    shown = stage.preview(step_id, {"op": "set_policy", "rules": [rule]})

    assert right_side(shown, "almanac")["reason"] == "policy_denied"
    assert shown["compile"]["policy"]
    assert "tides" not in sent_messages(
        shown, stage, step_id, {"op": "set_policy", "rules": [rule]}
    )


def test_items_are_added_edited_and_messages_said_in_the_order_given(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")
    mutations = [
        {"op": "add_item", "item": item("note", content="Order 7 was lost.")},
        {"op": "edit_item", "item_id": "note", "content": "Order 7 was found."},
        {"op": "edit_item", "item_id": "orders", "content": "Order 7: delivered."},
        {"op": "add_message", "role": "user", "text": "And order 8?"},
    ]

    shown = stage.preview(step_id, *mutations)
    body = sent_messages(shown, stage, step_id, *mutations)

    assert "Order 7 was found." in body
    assert "was lost" not in body
    assert "delivered" in body
    assert "in the post" not in body
    assert "And order 8?" in body


def test_a_message_of_a_compiled_call_is_edited_through_its_item(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")
    messages = stage.step(step_id)["call"]["input"]
    position = len([one for one in messages if one["role"] != "system"]) - 1
    change = {"op": "edit_message", "position": position, "text": "Where is order 9?"}

    shown = stage.preview(step_id, change)
    body = sent_messages(shown, stage, step_id, change)

    assert "Where is order 9?" in body
    assert "Where is order 7?" not in body


def test_sampling_is_changed_and_the_rest_of_the_request_stays(stage: Stage) -> None:
    step_id = stage.compiled_call("openai", temperature=0.5)
    first = stage.provider.received[-1].json

    stage.replay(step_id, mutations=[{"op": "set_sampling", "temperature": 0.25}])

    again = stage.provider.received[-1].json
    assert (first["temperature"], again["temperature"]) == (0.5, 0.25)
    assert {**again, "temperature": 0.5} == first


def test_offline_a_change_is_compiled_and_nothing_is_claimed_to_be_answered(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    step_id = stage.compiled_call("openai")
    asked = len(stage.provider.received)
    monkeypatch.delenv("OPENAI_API_KEY")

    told = stage.replay(
        step_id, recorded=True, mutations=[{"op": "remove_item", "item_id": "almanac"}]
    )

    assert told["state"] == "done"
    assert len(stage.provider.received) == asked
    assert told["step_ids"] == []
    assert any("nothing was sent" in note for note in told["notes"])
    compiled = stage.step(told["steps"][0]["compile_step_id"])
    assert {one["item_id"]: one["reason"] for one in compiled["receipts"]}["almanac"] == (
        "removed_by_replay"
    )
    assert told["comparison"]["compile"]["items"]


def test_a_preview_estimates_tokens_and_money_for_every_repeat(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")

    one = stage.preview(step_id, {"op": "set_model", "model": "gpt-5"})
    five = stage.preview(step_id, {"op": "set_model", "model": "gpt-5"}, n=5)

    assert one["cost"]["usd"] > 0
    assert five["cost"]["usd"] == pytest.approx(5 * one["cost"]["usd"])
    assert one["cost"]["source"].startswith("genai-prices")
    assert stage.preview(step_id, recorded=True)["cost"]["usd"] == 0


def test_what_only_the_first_provider_understands_is_left_out_and_said(stage: Stage) -> None:
    with stage.program():
        adapter = stage.adapter("openai")
        compiled = hansard.compile_step(
            inputs=ITEMS, model="gpt-6-luna", provider=adapter, token_budget=600
        )
        answer = hansard.call_model(
            compiled, provider=adapter, reasoning={"effort": "low"}, extra={"store": False}
        )
        adapter.close()

    told = stage.replay(
        answer.recorded.step_id,
        mutations=[
            {"op": "set_provider", "provider": "anthropic"},
            {"op": "set_model", "model": "claude-haiku-5-5"},
        ],
    )

    assert [note for note in told["notes"] if "left out" in note] == [
        "reasoning is the first provider's own and was left out",
        "extra is the first provider's own and was left out",
    ]


@pytest.mark.covers("RP-03")
def test_every_model_step_and_compile_of_a_run_replays(stage: Stage) -> None:
    with stage.program():
        for question in ("Where is order 7?", "And order 8?"):
            adapter = stage.adapter("scripted")
            compiled = hansard.compile_step(
                inputs=[*ITEMS[:-1], {"role": "user", "content": question}],
                model="scripted-1",
                provider=adapter,
                token_budget=600,
            )
            hansard.call_model(compiled, provider=adapter)
    run_id = stage.get("/v1/runs")["items"][0]["run_id"]
    steps = stage.get(f"/v1/runs/{run_id}/steps")["items"]
    replayed = [one for one in steps if one["role"] in ("llm", "compile")]

    for step in replayed:
        told = stage.replay(step["step_id"], script=SCRIPT)
        assert (told["state"], told["same_request"]) == ("done", True)

    assert len(replayed) == 4


def test_a_compile_that_no_call_used_is_made_again_by_itself(stage: Stage) -> None:
    with stage.program():
        hansard.compile_step(inputs=ITEMS, model="gpt-6-luna", provider="openai", token_budget=600)
    run_id = stage.get("/v1/runs")["items"][0]["run_id"]
    steps = stage.get(f"/v1/runs/{run_id}/steps")["items"]
    [step_id] = [one["step_id"] for one in steps if one["role"] == "compile"]

    assert stage.preview(step_id)["request"]["hash"] is None
    same = stage.replay(step_id)
    other = stage.replay(step_id, mutations=[{"op": "remove_item", "item_id": "almanac"}])

    assert "it came out the same, by its hash" in same["notes"]
    assert (same["step_ids"], same["same_request"], same["request_hash"]) == ([], None, None)
    assert same["comparison"]["compile"]["is_empty"] is True
    assert other["comparison"]["compile"]["is_empty"] is False
    assert stage.provider.received == []


def test_a_preview_calls_results_and_messages_by_what_they_are(stage: Stage) -> None:
    call = {"id": "call_7", "type": "function", "function": {"name": "get", "arguments": "{}"}}
    said: list[Any] = [
        {"role": "user", "content": "Where is order 7?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_7", "content": "in the post " * 30},
        {"role": "user", "content": "And order 8?"},
    ]
    step_id = stage.compiled_call("openai", items=said)

    shown = stage.preview(step_id, {"op": "set_budget", "token_budget": 180})

    names = {one["name"] for one in shown["compile"]["items"]}
    assert "user message “And order 8?”" in names
    assert any(one.startswith("result of get call_7 “in the post") for one in names)
    page = parse(stage.client.get(f"/replay/{step_id}?act=mutated").text)
    assert "result of get call_7 “in the post" in page.text


ORDERED = {
    "name": "get",
    "description": "Get an order.",
    "parameters": {
        "type": "object",
        "required": ["z"],
        "properties": {"z": {"type": "integer"}, "a": {"type": "string", "description": "why"}},
    },
}


@pytest.mark.parametrize("provider", sorted(MODELS))
def test_a_change_that_changes_nothing_is_the_recorded_request_and_says_so(
    stage: Stage, provider: str
) -> None:
    step_id = stage.compiled_call(provider, tools=[ORDERED])
    unchanged = {"op": "set_model", "model": MODELS[provider]}

    shown = stage.preview(step_id, unchanged)
    told = stage.replay(step_id, mutations=[unchanged], script=SCRIPT)

    assert shown["request"]["same"]
    assert (told["mode"], told["same_request"]) == ("mutated", True)
    assert "the changes change nothing of the request: it is the recorded one" in told["notes"]
    assert [one.partition(":")[0] for one in told["labels"]] == ["exact"]


def test_a_changed_request_differs_from_the_recorded_one_where_it_was_changed_alone(
    stage: Stage,
) -> None:
    step_id = stage.compiled_call("openai", tools=[ORDERED])
    recorded = stage.provider.received[-1].body

    stage.replay(step_id, mutations=[{"op": "set_model", "model": "gpt-6-mini"}])

    changed = stage.provider.received[-1].body
    assert changed == recorded.replace(MODELS["openai"].encode(), b"gpt-6-mini")
