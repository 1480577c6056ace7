"""A recorded request with one change: that value differs in its bytes, and nothing else."""

from __future__ import annotations

import json
from typing import Any, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.mutations import parse_mutations
from hansard_compiler.replay.provider_side_effects import provider_side_effects
from hansard_compiler.replay.request_edits import edit_request
from hansard_compiler.replay.request_fields import FIELDS
from tests.instrumentation.clients.provider import ANSWERS, json_reply
from tests.web.html import parse
from tests.web.replay.stage import Stage
from tests.web.replay.wire_requests import MODELS, PATHS, requests, send_raw

Json = dict[str, Any]
APIS = sorted(PATHS)
LIMITS = {"chat": "max_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}


def edited(api: str, data: bytes, *changes: Json) -> bytes:
    return edit_request(data, PATHS[api], parse_mutations(changes))[0]


def spelled(data: bytes, value: str) -> bytes:
    """Return a string as a request writes it: escaped where the request is."""
    is_escaped = data.isascii() and b"\\u" in data
    return json.dumps(value, ensure_ascii=is_escaped).encode()


# ---- every field survives


@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_another_model_changes_the_models_bytes_alone(api: str, data: st.DataObject) -> None:
    recorded = data.draw(requests(api))

    made = edited(api, recorded, {"op": "set_model", "model": "other-1"})

    assert made == recorded.replace(json.dumps(MODELS[api]).encode(), b'"other-1"', 1)


@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_what_changes_nothing_leaves_every_byte(api: str, data: st.DataObject) -> None:
    recorded = data.draw(requests(api))
    value = json.loads(recorded)
    same: list[Json] = [
        {"op": "set_model", "model": MODELS[api]},
        {"op": "set_sampling", "temperature": float(value["temperature"])},
        {"op": "set_provider", "provider": "anthropic" if api == "messages" else "openai"},
    ]
    if isinstance(value.get(LIMITS[api]), int):
        same.append({"op": "set_sampling", "max_output_tokens": value[LIMITS[api]]})

    assert edited(api, recorded, *same) == recorded


@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_sampling_changes_its_own_number_alone(api: str, data: st.DataObject) -> None:
    recorded = data.draw(requests(api))
    at = recorded.rindex(b'"temperature" : ') + len(b'"temperature" : ')
    end = recorded.index(b",", at)

    made = edited(api, recorded, {"op": "set_sampling", "temperature": 0.25})
    gone = json.loads(edited(api, recorded, {"op": "set_sampling", "temperature": None}))

    assert made == recorded[:at] + b"0.25" + recorded[end:]
    before = json.loads(recorded)
    assert gone == {name: one for name, one in before.items() if name != "temperature"}


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
@given(data=st.data(), words=st.text(st.characters(codec="utf-8"), min_size=1, max_size=9))
def test_other_words_in_the_last_message_change_its_text_alone(
    api: str, data: st.DataObject, words: str
) -> None:
    recorded = data.draw(requests(api))
    key = "input" if api == "responses" else "messages"
    before = json.loads(recorded)
    has_system = any(before.get(one) for one in ("instructions", "system"))
    position = len(before[key]) - 1 + has_system

    made = edited(api, recorded, {"op": "edit_message", "position": position, "text": words})

    after = json.loads(made)
    assert after[key][-1] == {**before[key][-1], "content": words}
    assert {**after, key: after[key][:-1]} == {**before, key: before[key][:-1]}
    head = next(n for n, (a, b) in enumerate(zip(made, recorded, strict=False)) if a != b) if (
        made != recorded
    ) else len(made)  # fmt: skip
    back = edited(
        api, made, {"op": "edit_message", "position": position, "text": before[key][-1]["content"]}
    )
    assert made[:head] == recorded[:head]
    assert json.loads(back) == before


@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_a_message_that_is_added_and_removed_again_leaves_every_byte(
    api: str, data: st.DataObject
) -> None:
    recorded = data.draw(requests(api))
    key = "input" if api == "responses" else "messages"
    value = json.loads(recorded)
    last = len(value[key]) + any(value.get(one) for one in ("instructions", "system"))
    add = {"op": "add_message", "role": "user", "text": "And order 8?"}

    made = edited(api, recorded, add)
    back = edited(api, recorded, add, {"op": "remove_message", "position": last})

    assert json.loads(made) == {
        **value, key: [*value[key], {"role": "user", "content": "And order 8?"}]
    }  # fmt: skip
    assert back == recorded


@pytest.mark.parametrize("api", APIS)
@settings(
    max_examples=8, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(data=st.data())
@pytest.mark.covers("RP-03")
def test_the_provider_gets_the_recorded_bytes_with_the_one_value_changed(
    api: str, data: st.DataObject, stage: Stage
) -> None:
    recorded = data.draw(requests(api))
    step_id = send_raw(stage, api, recorded)
    change = {"op": "set_model", "model": "other-1"}
    same = {"op": "set_model", "model": MODELS[api]}

    shown = stage.preview(step_id, change)
    told = stage.replay(step_id, mutations=[change])
    sent = stage.provider.received[-1].body
    again = stage.replay(step_id, mutations=[same])

    assert sent == recorded.replace(json.dumps(MODELS[api]).encode(), b'"other-1"', 1)
    assert (shown["basis"], shown["is_rebuilt"]) == ("edited", False)
    assert (told["same_request"], told["notes"]) == (False, [])
    assert (again["same_request"], stage.provider.received[-1].body) == (True, recorded)
    assert [one.partition(":")[0] for one in again["labels"]] == ["exact"]


@pytest.mark.parametrize(
    ("api", "hints"),
    [
        ("chat_completions", ("openai.types.chat.completion_create_params",
                              "CompletionCreateParamsBase")),
        ("responses", ("openai.types.responses.response_create_params",
                       "ResponseCreateParamsBase")),
        ("messages", ("anthropic.types.message_create_params", "MessageCreateParamsBase")),
        ("messages", ("anthropic.types.beta.message_create_params", "MessageCreateParamsBase")),
    ],
)  # fmt: skip
def test_the_lists_of_fields_are_those_of_the_official_packages(
    api: str, hints: tuple[str, str]
) -> None:
    from importlib import import_module

    found = get_type_hints(getattr(import_module(hints[0]), hints[1])).keys() - {"betas"}

    assert found <= FIELDS[api]


# ---- each kind of change, on the wire


CHAT_BODY = (
    b'{"messages": [{"role": "developer", "content": "Be k\\u00efnd."}, '
    b'{"role": "user", "content": [{"type": "text", "text": "Where is 7?", "own": 1.0}]}, '
    b'{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", '
    b'"function": {"name": "get", "arguments": "{\\"k\\": 7}"}}]}, '
    b'{"role": "tool", "tool_call_id": "c1", "content": "posted"}, '
    b'{"role": "user", "content": "And 8?"}], "model": "gpt-6-luna", "seed": 1e3, '
    b'"max_completion_tokens": 50, "tools": [{"type": "function", "function": {"name": "get", '
    b'"strict": true}}, {"type": "function", "function": {"name": "put"}}], "user": "u"}'
)
RESPONSES_BODY = (
    b'{"input":[{"role":"user","content":"Where is 7?"},'
    b'{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},'
    b'{"type":"function_call","id":"fc_1","call_id":"c1","name":"get","arguments":"{}"},'
    b'{"type":"function_call_output","call_id":"c1","output":"posted"},'
    b'{"role":"user","content":[{"type":"input_text","text":"And 8?"}]}],'
    b'"instructions":"Be kind.","model":"gpt-6-luna","store":false,'
    b'"tools":[{"type":"function","name":"get","strict":null}],"truncation":"auto"}'
)
MESSAGES_BODY = (
    b'{"max_tokens":50,"system":[{"type":"text","text":"Be kind.","cache_control":'
    b'{"type":"ephemeral"}}],"messages":[{"role":"user","content":"Where is 7?"},'
    b'{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},'
    b'{"type":"tool_use","id":"t1","name":"get","input":{"k":7}}]},'
    b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"posted",'
    b'"is_error":false},{"type":"text","text":"And 8?","cache_control":{"type":"ephemeral"}}]}],'
    b'"model":"claude-haiku-5-5","thinking":{"type":"adaptive"},'
    b'"tools":[{"name":"get","input_schema":{},"cache_control":{"type":"ephemeral"}}]}'
)
BODIES = {"chat": CHAT_BODY, "responses": RESPONSES_BODY, "messages": MESSAGES_BODY}


@pytest.mark.parametrize(
    ("api", "change", "old", "new"),
    [
        ("chat", {"op": "edit_message", "position": 0, "text": "Be brïef."},
         b"Be k\\u00efnd.", b"Be br\\u00efef."),
        ("chat", {"op": "edit_message", "position": 1, "text": "Where is 9?"},
         b"Where is 7?", b"Where is 9?"),
        ("chat", {"op": "edit_message", "position": 1, "text": "Where is 9?", "part": 0},
         b"Where is 7?", b"Where is 9?"),
        ("chat", {"op": "edit_message", "position": 2, "text": "Let me look."},
         b'"content": null', b'"content": "Let me look."'),
        ("chat", {"op": "set_sampling", "max_output_tokens": 70}, b": 50", b": 70"),
        ("chat", {"op": "set_sampling", "seed": 8}, b"1e3", b"8"),
        ("chat", {"op": "set_sampling", "seed": None}, b'"seed": 1e3, ', b""),
        ("chat", {"op": "set_sampling", "stop": ["x"]}, b'"u"}', b'"u", "stop": ["x"]}'),
        ("chat", {"op": "remove_tool", "name": "put"},
         b', {"type": "function", "function": {"name": "put"}}', b""),
        ("responses", {"op": "edit_message", "position": 0, "text": "Be brief."},
         b"Be kind.", b"Be brief."),
        ("responses", {"op": "edit_message", "position": 4, "text": "And 9?"},
         b"And 8?", b"And 9?"),
        ("responses", {"op": "set_sampling", "effort": "high"},
         b'"auto"}', b'"auto","reasoning":{"effort":"high"}}'),
        ("messages", {"op": "edit_message", "position": 0, "text": "Be brief."},
         b"Be kind.", b"Be brief."),
        ("messages", {"op": "edit_message", "position": 3, "text": "And 9?"}, b"And 8?", b"And 9?"),
        ("messages", {"op": "edit_message", "position": 2, "text": "Let me look."},
         b'{"type":"tool_use"', b'{"type":"text","text":"Let me look."},{"type":"tool_use"'),
        ("messages", {"op": "set_sampling", "effort": "low"},
         b'"ephemeral"}}]}', b'"ephemeral"}}],"output_config":{"effort":"low"}}'),
        ("messages", {"op": "add_message", "role": "system", "text": "Hurry.", "position": 1},
         b'"ephemeral"}}],"messages"',
         b'"ephemeral"}},{"type":"text","text":"Hurry."}],"messages"'),
        ("messages", {"op": "remove_message", "position": 0},
         b'"system":[{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}}],',
         b""),
    ],
)  # fmt: skip
def test_a_change_replaces_these_bytes(api: str, change: Json, old: bytes, new: bytes) -> None:
    recorded = BODIES[api]
    at = recorded.rindex(old)

    assert edited(api, recorded, change) == recorded[:at] + new + recorded[at + len(old) :]


@pytest.mark.parametrize(
    ("api", "position", "left", "notes"),
    [
        ("chat", 3, [0, 1, 4], ["tool calls it answers"]),
        ("chat", 2, [0, 1, 4], ["results of its tool calls"]),
        ("responses", 2, [0, 4], ["results of its tool calls", "reasoning that led to it"]),
        ("messages", 2, None, ["results of its tool calls"]),
        ("messages", 3, [0], ["tool calls it answers"]),
    ],
)
def test_a_call_and_its_result_are_removed_together_and_it_is_noted(
    api: str, position: int, left: list[int] | None, notes: list[str]
) -> None:
    key = "input" if api == "responses" else "messages"
    before = json.loads(BODIES[api])

    data, told = edit_request(
        BODIES[api], PATHS[api], parse_mutations([{"op": "remove_message", "position": position}])
    )

    after = json.loads(data)
    assert {**after, key: []} == {**before, key: []}
    if left is not None:
        assert after[key] == [before[key][at] for at in left]
    else:  # the words beside a result stay
        kept = {**before[key][2], "content": before[key][2]["content"][1:]}
        assert after[key] == [before[key][0], kept]
    assert [note in one for note, one in zip(notes, told, strict=True)] == [True] * len(notes)


def test_further_texts_of_a_message_go_and_it_is_noted_what_went_with_them() -> None:
    data = (
        b'{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},'
        b'{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}],"max_tokens":1}'
    )
    whole = {"op": "edit_message", "position": 0, "text": "c"}

    made, notes = edit_request(data, "/v1/messages", parse_mutations([whole]))
    part = edited("messages", data, {**whole, "part": 1})

    assert made == data.replace(b'"a"', b'"c"').replace(
        b',{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}', b""
    )
    assert "cache_control" in notes[0]
    assert part == data.replace(b'"b"', b'"c"')


def test_of_duplicate_keys_the_one_that_is_read_changes_and_a_removal_takes_all() -> None:
    data = b'{"model":"a","temperature":1,"model":"b","messages":[{"role":"user","content":"x"}],"temperature":2}'  # noqa: E501

    made, notes = edit_request(
        data, PATHS["chat"], parse_mutations([{"op": "set_model", "model": "c"}])
    )
    gone = edited("chat", data, {"op": "set_sampling", "temperature": None})

    assert made == data.replace(b'"b"', b'"c"')
    assert "'model' more than once" in notes[0]
    assert b"temperature" not in gone


def test_a_message_is_not_put_between_reasoning_and_the_call_that_it_led_to() -> None:
    add = {"op": "add_message", "role": "user", "text": "x", "position": 2}

    after = json.loads(edited("responses", RESPONSES_BODY, add))["input"]

    assert [one.get("type", one.get("content")) for one in after][:4] == [
        "Where is 7?", "x", "reasoning", "function_call",
    ]  # fmt: skip


def test_a_text_in_place_of_the_list_becomes_its_first_message_and_it_is_noted() -> None:
    data = b'{"input":"Wh\\u0065re?","model":"m","text":{"verbosity":"low"}}'

    made, notes = edit_request(
        data, PATHS["responses"],
        parse_mutations([{"op": "add_message", "role": "user", "text": "Now?"}]),
    )  # fmt: skip

    assert made == (
        b'{"input":[{"role":"user","content":"Wh\\u0065re?"},{"role":"user","content":"Now?"}],'
        b'"model":"m","text":{"verbosity":"low"}}'
    )
    assert "was a text and is now a list" in notes[0]


@pytest.mark.parametrize(
    ("api", "change", "reason"),
    [
        ("chat", {"op": "edit_message", "position": 5, "text": "x"}, ReplayReason.ITEM_UNKNOWN),
        ("chat", {"op": "edit_message", "position": 1, "text": "x", "part": 1},
         ReplayReason.ITEM_UNKNOWN),
        ("chat", {"op": "edit_message", "position": 3, "text": "x"}, ReplayReason.MUTATION_INVALID),
        ("responses", {"op": "edit_message", "position": 2, "text": "x"},
         ReplayReason.MUTATION_INVALID),
        ("responses", {"op": "edit_message", "position": 3, "text": "x"},
         ReplayReason.MUTATION_INVALID),
        ("chat", {"op": "remove_message", "position": 9}, ReplayReason.ITEM_UNKNOWN),
        ("chat", {"op": "add_message", "role": "user", "text": "x", "position": 6},
         ReplayReason.ITEM_UNKNOWN),
        ("chat", {"op": "add_message", "role": "user", "text": "x", "position": 3},
         ReplayReason.BROKEN_PAIRS),
        ("messages", {"op": "add_message", "role": "user", "text": "x", "position": 3},
         ReplayReason.BROKEN_PAIRS),
        ("responses", {"op": "add_message", "role": "user", "text": "x", "position": 3},
         ReplayReason.BROKEN_PAIRS),
        ("chat", {"op": "remove_tool", "name": "other"}, ReplayReason.ITEM_UNKNOWN),
        ("chat", {"op": "remove_tool", "name": "get"}, ReplayReason.BROKEN_PAIRS),
        ("chat", {"op": "set_sampling", "temperature": None}, ReplayReason.FIELD_ABSENT),
        ("messages", {"op": "set_sampling", "stop": None}, ReplayReason.FIELD_ABSENT),
        ("messages", {"op": "set_sampling", "max_output_tokens": None},
         ReplayReason.NOT_RENDERABLE),
        ("messages", {"op": "set_sampling", "seed": 1}, ReplayReason.NOT_RENDERABLE),
        ("responses", {"op": "set_sampling", "stop": ["x"]}, ReplayReason.NOT_RENDERABLE),
        ("chat", {"op": "set_budget", "token_budget": 9}, ReplayReason.NO_COMPILATION),
    ],
)  # fmt: skip
def test_a_change_that_does_not_apply_is_refused(
    api: str, change: Json, reason: ReplayReason
) -> None:
    with pytest.raises(NotReplayable) as refused:
        edited(api, BODIES[api], change)

    assert refused.value.reason is reason


def test_a_request_that_names_no_model_is_not_given_one() -> None:
    data = b'{"messages":[{"role":"user","content":"x"}]}'

    with pytest.raises(NotReplayable) as refused:
        edited("chat", data, {"op": "set_model", "model": "m"})

    assert refused.value.reason is ReplayReason.FIELD_ABSENT


def test_the_last_tool_takes_along_what_is_refused_without_one_and_it_is_noted() -> None:
    data = (
        b'{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function",'
        b'"function":{"name":"get"}}],"tool_choice":"auto","parallel_tool_calls":false,"user":"u"}'
    )

    made, notes = edit_request(
        data, PATHS["chat"], parse_mutations([{"op": "remove_tool", "name": "get"}])
    )

    assert made == b'{"model":"m","messages":[{"role":"user","content":"x"}],"user":"u"}'
    assert notes == [
        "no tool is left: tools, tool_choice, parallel_tool_calls went, which the API refuses "
        "without one"
    ]


# ---- through the server


@pytest.mark.parametrize("api", APIS)
def test_the_preview_shows_the_bytes_that_differ_in_the_api_the_page_and_the_span(
    api: str, stage: Stage
) -> None:
    step_id = send_raw(stage, api, BODIES[api])
    change = {"op": "edit_message", "position": 0, "text": "Be brief."}

    shown = stage.preview(step_id, change)
    page = parse(stage.client.get(f"/replay/{step_id}", params={"change": json.dumps(change)}).text)
    told = stage.replay(step_id, mutations=[change])

    diff = shown["request"]["diff"]["unified"]
    assert diff.startswith("@@ bytes -")
    lines = [one for one in diff.splitlines() if one[0] in "+-"]
    assert len(lines) == 2
    assert "Be brief." in lines[1]
    assert lines[1][1:] in page.text
    assert shown["is_rebuilt"] is False
    made = stage.step(told["step_ids"][0])
    assert made["call"]["input"][0]["parts"][0]["text"] == "Be brief."
    assert "hansard.replay.rebuilt" not in made["attributes"]


@pytest.mark.parametrize("api", APIS)
def test_a_streamed_call_stays_streamed_with_another_model(api: str, stage: Stage) -> None:
    recorded = BODIES[api].replace(b'"model"', b'"stream":true,"model"')
    step_id = send_raw(stage, api, recorded)

    told = stage.replay(step_id, mutations=[{"op": "set_model", "model": "other-1"}])

    assert told["state"] == "done", told
    sent = stage.provider.received[-1].body
    assert sent == recorded.replace(MODELS[api].encode(), b"other-1")


def test_the_positions_of_a_recorded_request_are_those_that_the_step_shows(stage: Stage) -> None:
    for api in APIS:
        step_id = send_raw(stage, api, BODIES[api])
        said = stage.step(step_id)["call"]["input"]
        last = len(said) - 1

        stage.replay(step_id, mutations=[{"op": "edit_message", "position": last, "text": "End."}])

        assert b'"End."' in stage.provider.received[-1].body, api


def test_another_model_of_an_embedding_is_asked_with_everything_else_as_it_was(
    stage: Stage,
) -> None:
    data = b'{"input": ["a"], "model": "embed-1", "encoding_format": "float", "dimensions": 3.0}'
    answer = {
        "object": "list", "model": "embed-2", "data": [], "usage": {"prompt_tokens": 1},
    }  # fmt: skip
    PATHS["embeddings"] = "/embeddings"
    ANSWERS.setdefault("/v1/embeddings", answer)
    from tests.web.replay import wire_requests

    wire_requests.BY_NAME["embeddings"] = wire_requests.CHAT
    step_id = send_raw(stage, "embeddings", data)

    told = stage.replay(step_id, mutations=[{"op": "set_model", "model": "embed-2"}])
    stage.provider.replies.append(json_reply(answer))
    refused = stage.refused(step_id, mutations=[{"op": "set_sampling", "temperature": 1}])

    assert told["state"] == "done"
    assert stage.provider.received[-1].body == data.replace(b"embed-1", b"embed-2")
    assert refused["reason"] == "not_renderable"


def test_a_number_that_python_cannot_read_is_a_refusal_and_no_failure() -> None:
    data = b'{"model": "a", "messages": [], "seed": ' + b"9" * 5_000 + b"}"

    with pytest.raises(NotReplayable) as refused:
        edited("chat", data, {"op": "set_sampling", "seed": 1})
    [effect] = provider_side_effects(data, PATHS["chat"])

    assert refused.value.reason is ReplayReason.NOT_RENDERABLE
    assert effect.name == "unreadable"
    assert "a number of more than 4,000 characters" in effect.text
