"""Requests of the three APIs, generated from their fields, and written in many ways."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tests.instrumentation.clients.asking import CHAT, MESSAGES, RESPONSES, Api
from tests.web.replay.stage import Stage

Json = dict[str, Any]
PATHS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/v1/messages"}
BY_NAME: dict[str, Api] = {one.name: one for one in (CHAT, RESPONSES, MESSAGES)}
MODELS = {"chat": "gpt-6-luna", "responses": "gpt-6-luna", "messages": "claude-haiku-5-5"}

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
SCHEMA: Json = {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]}
MARK = {"type": "ephemeral", "ttl": "1h"}


def _optional(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional=fields)


_METADATA = st.dictionaries(TEXT, TEXT, max_size=2)
_UNKNOWN = st.dictionaries(
    st.text("abcxyz_", min_size=5, max_size=9).map("own_".__add__),
    st.one_of(st.none(), st.booleans(), st.floats(0, 1e9), TEXT, st.lists(TEXT, max_size=2)),
    max_size=2,
)


def _chat_message() -> st.SearchStrategy[Json]:
    text = st.one_of(TEXT, TEXT.map(lambda one: [{"type": "text", "text": one, "own": 1.0}]))
    return st.one_of(
        st.builds(lambda c: {"role": "user", "content": c, "name": "u"}, text),
        st.builds(lambda c: {"role": "developer", "content": c}, text),
        st.builds(lambda c: {"content": c, "role": "system"}, TEXT),
        st.builds(lambda c: {"role": "assistant", "content": c, "refusal": None}, TEXT),
    )


_CHAT_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "response_format": st.sampled_from(
        [{"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}},
         {"type": "json_object"}]
    ),
    "tools": st.just([{"type": "function", "function": {
        "name": "get", "description": "x", "parameters": SCHEMA, "strict": True}}]),
    "tool_choice": st.sampled_from(["auto", "required", {"type": "allowed_tools", "mode": "auto"}]),
    "parallel_tool_calls": st.booleans(),
    "logit_bias": st.just({"50256": -100, "11": 1.5}),
    "frequency_penalty": st.floats(-2, 2),
    "presence_penalty": st.floats(-2, 2),
    "logprobs": st.booleans(),
    "top_logprobs": st.integers(0, 20),
    "n": st.integers(1, 3),
    "user": TEXT,
    "safety_identifier": TEXT,
    "metadata": _METADATA,
    "service_tier": st.sampled_from(["auto", "flex"]),
    "store": st.just(False),
    "max_completion_tokens": st.integers(1, 500),
    "reasoning_effort": st.sampled_from(["low", "high"]),
    "verbosity": st.just("low"),
    "prediction": st.just({"type": "content", "content": "x"}),
    "modalities": st.just(["text"]),
    "seed": st.integers(0, 1 << 62),
    "stop": st.one_of(TEXT, st.lists(TEXT, min_size=1, max_size=2)),
    "top_p": st.floats(0, 1),
    "prompt_cache_key": TEXT,
    "prompt_cache_options": st.just({"mode": "explicit", "ttl": "30m"}),
    "stream_options": st.just({"include_usage": True}),
}  # fmt: skip


def _item() -> st.SearchStrategy[Json]:
    return st.one_of(
        st.builds(lambda c: {"role": "user", "content": c}, TEXT),
        st.builds(
            lambda c: {"type": "message", "role": "developer",
                       "content": [{"type": "input_text", "text": c}]}, TEXT,
        ),
        st.builds(
            lambda c: {"type": "message", "id": "msg_0", "role": "assistant", "phase": "commentary",
                       "content": [{"type": "output_text", "text": c, "annotations": []}]}, TEXT,
        ),
        st.builds(
            lambda c: {"role": "user", "content": [
                {"type": "input_text", "text": c,
                 "prompt_cache_breakpoint": {"mode": "explicit"}},
                {"type": "input_image", "image_url": "data:,", "detail": "auto"}]}, TEXT,
        ),
    )  # fmt: skip


_RESPONSES_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "instructions": TEXT,
    "text": st.just({"format": {"type": "json_schema", "name": "a", "schema": SCHEMA,
                                "strict": True}, "verbosity": "low"}),
    "tools": st.just([{"type": "function", "name": "get", "parameters": SCHEMA, "strict": None},
                      {"type": "custom", "name": "free"}]),
    "tool_choice": st.sampled_from(["auto", {"type": "function", "name": "get"}]),
    "parallel_tool_calls": st.booleans(),
    "truncation": st.sampled_from(["auto", "disabled"]),
    "reasoning": st.sampled_from([{"effort": "low", "summary": "auto"}, {"summary": "auto"}]),
    "include": st.just(["reasoning.encrypted_content"]),
    "max_output_tokens": st.integers(1, 500),
    "max_tool_calls": st.integers(1, 5),
    "metadata": _METADATA,
    "service_tier": st.just("flex"),
    "store": st.just(False),
    "top_p": st.floats(0, 1),
    "top_logprobs": st.integers(0, 20),
    "user": TEXT,
    "safety_identifier": TEXT,
    "prompt_cache_key": TEXT,
    "context_management": st.just([{"type": "compaction", "compact_threshold": 1000}]),
    "stream_options": st.just({"include_obfuscation": False}),
}  # fmt: skip


def _anthropic_message() -> st.SearchStrategy[Json]:
    block = TEXT.map(lambda one: {"type": "text", "text": one, "cache_control": MARK})
    return st.one_of(
        st.builds(lambda c: {"role": "user", "content": c}, TEXT),
        st.builds(lambda c: {"content": [c], "role": "user"}, block),
        st.builds(
            lambda c: {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"}, c]}, block,
        ),
        st.builds(lambda c: {"role": "system", "content": c}, TEXT),
    )  # fmt: skip


_MESSAGES_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "system": st.one_of(TEXT, TEXT.map(
        lambda one: [{"type": "text", "text": one, "cache_control": MARK}])),
    "tools": st.just([{"name": "get", "description": "x", "input_schema": SCHEMA, "strict": True,
                       "cache_control": MARK}, {"type": "memory_20250818", "name": "memory"}]),
    "tool_choice": st.sampled_from([{"type": "auto", "disable_parallel_tool_use": True},
                                    {"type": "any"}]),
    "thinking": st.sampled_from([{"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}]),
    "top_k": st.integers(1, 100),
    "top_p": st.floats(0, 1),
    "metadata": st.just({"user_id": "u"}),
    "service_tier": st.just("standard_only"),
    "cache_control": st.just(MARK),
    "output_config": st.sampled_from([{"effort": "low"}, {"format": {"type": "json_schema",
                                                                     "schema": SCHEMA}}]),
    "stop_sequences": st.lists(TEXT, max_size=2),
    "inference_geo": st.just("eu"),
    "diagnostics": st.just({"previous_message_id": None}),
    "context_management": st.just({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}),
    "speed": st.just("fast"),
}  # fmt: skip
_SPELLED = st.sampled_from(["1.0", "0.10", "1e0", "7E-1", "0.5"])


@st.composite
def bodies(draw: st.DrawFn, api: str) -> Json:
    """Return a request of an API, its fields in any order."""
    fields, message, key = {
        "chat": (_CHAT_FIELDS, _chat_message(), "messages"),
        "responses": (_RESPONSES_FIELDS, _item(), "input"),
        "messages": (_MESSAGES_FIELDS, _anthropic_message(), "messages"),
    }[api]
    said = draw(st.lists(message, min_size=1, max_size=3))
    body: Json = {"model": MODELS[api], key: [*said, {"role": "user", "content": draw(TEXT)}]}
    if api == "messages":
        body["max_tokens"] = draw(st.integers(1, 500))
    body |= draw(_optional(fields)) | draw(_UNKNOWN)
    names = draw(st.permutations(sorted(body)))
    return {name: body[name] for name in names}


@st.composite
def requests(draw: st.DrawFn, api: str) -> bytes:
    """Return a request's bytes: spaced or not, escaped or not, a number spelled in its own way."""
    body = draw(bodies(api))
    spaced = draw(st.booleans())
    text = json.dumps(
        body,
        ensure_ascii=draw(st.booleans()),
        separators=(", ", ": ") if spaced else (",", ":"),
        indent=draw(st.sampled_from([None, None, 1])),
    )
    assert text.endswith("}")
    number = f', "temperature" : {draw(_SPELLED)}, "own_big": 12345678901234567890123'
    return (text[:-1].rstrip() + number + "}").encode()


def send_raw(stage: Stage, api: str, data: bytes) -> str:
    """Send bytes as they are through a recorded official client; returns the call's step."""
    from importlib import import_module

    from hansard import instrument_client

    raw = import_module("httpx2").Response
    headers = {"headers": {"content-type": "application/json"}}
    with stage.program(), instrument_client(BY_NAME[api].sync(stage.provider)) as client:
        client.post(PATHS[api], cast_to=raw, content=data, options=headers)
    assert stage.provider.received[-1].body == data
    return stage.newest_call()
