"""Exact replay: the very same bytes go out again, whoever recorded them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import openai
import pytest

from tests.instrumentation.clients.asking import CHAT, MESSAGES, RESPONSES, Api, openai_client
from tests.instrumentation.clients.provider import json_reply
from tests.web.replay.stage import SCRIPT, Stage

Json = dict[str, Any]
EMBEDDINGS = Api(
    "embeddings",
    openai_client,
    openai_client,
    "embeddings.create",
    {"model": "text-embedding-4", "input": "Grüße", "encoding_format": "float"},
)
NETWORKED = ["openai", "anthropic", "openai_compatible"]


@pytest.mark.covers("RP-02", "TS-12", "SC-14", "SC-15")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", NETWORKED)
def test_a_compiled_call_is_sent_again_byte_for_byte(
    provider: str, stream: bool, stage: Stage
) -> None:
    step_id = stage.compiled_call(provider, stream=stream)

    told = stage.replay(step_id)

    first, again = stage.provider.received
    assert again.body == first.body
    assert again.path == first.path
    assert told["request_hash"] == f"sha256:{hashlib.sha256(first.body).hexdigest()}"
    assert told["request_hash"] == told["recorded_request_hash"]
    assert (told["state"], told["same_request"], told["mode"]) == ("done", True, "exact")
    assert stage.get(f"/v1/replay/{told['short_id']}")["replay_id"] == told["replay_id"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", [RESPONSES, CHAT, MESSAGES], ids=lambda api: api.name)
def test_a_call_that_the_sdk_recorded_at_http_level_is_sent_again_byte_for_byte(
    api: Api, stream: bool, stage: Stage
) -> None:
    step_id = stage.http_call(api, **({"stream": True} if stream else {}))

    told = stage.replay(step_id)

    first, again = stage.provider.received
    assert again.body == first.body
    assert again.path == first.path
    assert (told["state"], told["same_request"]) == ("done", True)
    made = stage.step(told["step_ids"][0])
    assert json.dumps(made["call"]["output"]) == json.dumps(stage.step(step_id)["call"]["output"])


def test_a_scripted_call_is_asked_again_with_its_script(stage: Stage) -> None:
    step_id = stage.compiled_call()

    told = stage.replay(step_id, script=SCRIPT)

    made = stage.step(told["step_ids"][0])
    assert made["attributes"]["hansard.request.ref"] == told["recorded_request_hash"]
    assert made["call"]["output"][0]["parts"][0]["text"] == "The almanac says: in the post."


@pytest.mark.covers("RP-21")
@pytest.mark.parametrize("provider", [*NETWORKED, "scripted"])
def test_a_recorded_answer_is_given_without_key_or_network_and_labelled(
    provider: str, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    step_id = stage.compiled_call(provider)
    asked = len(stage.provider.received)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name)

    told = stage.replay(step_id, recorded=True)

    made, source = stage.step(told["step_ids"][0]), stage.step(step_id)
    assert len(stage.provider.received) == asked
    assert told["recorded"] is True
    assert any("nothing was sent" in label for label in told["labels"])
    assert made["call"]["output"] == source["call"]["output"]
    assert made["duplicate"] is True  # a second span of one call: nothing was spent
    assert stage.get(f"/v1/runs/{told['run_id']}")["model_calls"] == 0
    assert told["steps"][0]["latency_ms"] is None


def test_a_recorded_stream_is_read_as_it_came(stage: Stage) -> None:
    step_id = stage.compiled_call("anthropic", stream=True)

    told = stage.replay(step_id, recorded=True)

    made = stage.step(told["step_ids"][0])
    assert made["call"]["output"] == stage.step(step_id)["call"]["output"]


@pytest.mark.covers("RP-13", "RP-14", "RP-18", "RP-19")
def test_a_replay_is_a_run_of_its_own_linked_both_ways_and_the_source_is_not_touched(
    stage: Stage,
) -> None:
    step_id = stage.compiled_call("openai")
    run_id = step_id.partition("-")[0]
    before = stage.rows_of(run_id)

    told = stage.replay(step_id)

    made = stage.step(told["step_ids"][0])
    assert stage.rows_of(run_id) == before
    assert told["run_id"] not in (run_id, None)
    assert made["attributes"]["hansard.replay.of"] == step_id
    assert made["attributes"]["hansard.replay.mode"] == "exact"
    assert [one["step"]["step_id"] for one in made["links"]] == [step_id]
    source = stage.step(step_id)
    assert made["step_id"] in [one["step_id"] for one in source["linked_from"]]
    assert [one["replay_id"] for one in source["replays"]] == [told["replay_id"]]
    assert stage.get(f"/v1/replay?step={step_id}")["items"][0]["replay_id"] == told["replay_id"]


def test_a_replay_of_a_replay_hangs_below_it(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")
    first = stage.replay(step_id)

    second = stage.replay(first["step_ids"][0])

    assert second["request_hash"] == first["request_hash"]
    [branch] = stage.step(step_id)["replays"]
    assert [one["replay_id"] for one in branch["replays"]] == [second["replay_id"]]


@pytest.mark.covers("RP-22")
def test_repeats_show_how_far_the_answers_lie_apart(stage: Stage) -> None:
    step_id = stage.compiled_call("openai_compatible")
    for words in ("Yes.", "Yes.", "No."):
        stage.provider.replies.append(json_reply(_chat(words)))

    told = stage.replay(step_id, n=3)

    spread = told["spread"]
    assert len(told["step_ids"]) == 3
    assert [(one["count"], one["text"]) for one in spread["groups"]] == [(2, "Yes."), (1, "No.")]
    assert spread["output_tokens"] == {"min": 2, "median": 2, "max": 2}
    assert spread["latency_ms"]["min"] > 0


def _chat(words: str) -> Json:
    return {
        "id": "chat_1",
        "object": "chat.completion",
        "model": "local-7b",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": words},
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    }


def test_embeddings_are_sent_again_as_they_were(stage: Stage) -> None:
    step_id = stage.http_call(EMBEDDINGS)

    told = stage.replay(step_id)

    first, again = stage.provider.received
    assert (again.body, again.path) == (first.body, first.path)
    assert stage.step(told["step_ids"][0])["call"]["tokens"]["input"] == 5


def test_a_recorded_failure_is_told_as_the_failure_it_was(stage: Stage) -> None:
    error = {"error": {"message": "no such model", "code": "model_not_found"}}
    stage.provider.replies.append(json_reply(error, status=404))
    with pytest.raises(openai.NotFoundError):
        stage.http_call(CHAT)
    step_id = stage.newest_call()

    told = stage.replay(step_id, recorded=True)

    assert (told["state"], told["reason"]) == ("failed", "model_unknown")
    assert len(stage.provider.received) == 1
