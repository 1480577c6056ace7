"""Whatever stands in whichever key, normalising answers and the answer can be stored."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hansard_collector.dialects.engine import registry
from hansard_collector.dialects.engine.item_views import EventView, LogView
from hansard_collector.dialects.engine.normal_form import ROLES, Normalised
from hansard_collector.dialects.engine.normalisation import MessageCache, normalise
from hansard_collector.dialects.mappings import table
from hansard_compiler.calls import message_json
from hansard_compiler.canonical import canonical_json
from tests.collector.dialects.maker import span

_EVIDENCE = sorted(
    {
        source.evidence
        for rows in table.GROUPS.values()
        for sources in rows.values()
        for source in sources
    }
)
_KEYS = [key for key in _EVIDENCE if not key.startswith(("event ", "span "))]
_EVENTS = [key.removeprefix("event ") for key in _EVIDENCE if key.startswith("event ")]
_NAMES = [key.removeprefix("span ") for key in _EVIDENCE if key.startswith("span ")]
_SCOPES = sorted({scope for dialect in registry.DIALECTS for scope in dialect.scopes})

# Words that readers look for, so that random structures reach them.
_WORDS = st.sampled_from(
    [
        "role", "content", "parts", "type", "text", "tool_calls", "function", "name", "arguments",
        "message", "messages", "id", "data", "kwargs", "lc", "toolUse", "toolResult", "source",
        "functionCall", "functionResponse", "response", "result", "usage", "config", "tools",
        "contents", "choices", "candidates", "generations", "replies", "meta", "documents",
        "tool_call", "tool_call_response", "reasoning", "tool-result", "tool-call", "image", "file",
        "user", "tool", "system", "assistant", "human", "output", "input", "value", "summary",
        "functionDeclarations", "toolSpec", "json", "prompt_tokens", "total", "items", "uri",
        "reasoningContent", "tool_result", "prompt", "system_instruction", "hash", "event.name",
    ]
)  # fmt: skip
_INDICES = st.sampled_from(["0", "1", "10", "007", "x", "", "-1", "²", "9" * 400])
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=4),
    _WORDS,
    st.sampled_from(
        ["", "{}", "[", '["', '{"a":', "NaN", "1e999", "\ud800", "‹withheld:3›", "true"]
    ),
)
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(_WORDS, st.text(max_size=4)), inner, max_size=5),
    ),
    max_leaves=14,
)


def _as_json(value: Any) -> Any:
    return json.dumps(value, default=repr)


_VALUES = st.one_of(_TREES, _TREES.map(_as_json), _TREES.map(_as_json).map(_as_json))


@st.composite
def _attributes(draw: st.DrawFn) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for key in draw(st.lists(st.sampled_from(_KEYS), max_size=12)):
        if key.endswith((".", ":")):
            tail = draw(st.lists(st.one_of(_INDICES, _WORDS), min_size=1, max_size=6))
            key += ".".join(tail)
        attributes[key] = draw(_VALUES)
    return attributes


_EVENT_NAMES = st.sampled_from([*_EVENTS, "exception", "api_error"])
_TIMES = st.integers(0, 2**64 - 1)
_EVENT_VIEWS = st.lists(
    st.builds(EventView, name=_EVENT_NAMES, time_ns=_TIMES, attributes=_attributes()), max_size=3
)
_LOG_VIEWS = st.lists(
    st.builds(
        LogView,
        event_name=_EVENT_NAMES,
        time_ns=_TIMES,
        severity_number=st.just(9),
        body=_VALUES,
        attributes=_attributes(),
    ),
    max_size=3,
)


@settings(max_examples=200, deadline=None)
@given(
    attributes=_attributes(),
    name=st.sampled_from([*_NAMES, "haystack.agent.run", "chat", ""]),
    scope=st.sampled_from(["", *_SCOPES]),
    events=_EVENT_VIEWS,
    logs=_LOG_VIEWS,
    status=st.integers(-1, 4),
)
def test_no_value_of_any_type_in_any_key_makes_normalising_fail(
    attributes: dict[str, Any],
    name: str,
    scope: str,
    events: list[EventView],
    logs: list[LogView],
    status: int,
) -> None:
    view = span(attributes, name=name, scope=scope, events=events, logs=logs, status=status)

    shown = normalise(view, MessageCache())

    assert shown.role in ROLES
    assert normalise(view, MessageCache()) == shown or _holds_nan(attributes)
    _assert_can_be_stored(shown)


def _holds_nan(value: Any) -> bool:
    return "nan" in repr(value).lower()


def _assert_can_be_stored(shown: Normalised) -> None:
    for text in (shown.name, shown.conversation_id, shown.user_id, shown.agent_name, shown.query):
        assert text is None or isinstance(text, str)
    canonical_json([shown.input, shown.output, shown.metadata, shown.prompt, shown.evaluations])
    for document in shown.documents:
        canonical_json([document.id, document.content, document.score, document.metadata])
    if shown.tool is not None:
        canonical_json([shown.tool.arguments, shown.tool.result])
    if shown.call is None:
        return
    for message in (*shown.call.input, *shown.call.output):
        assert message.parts
        canonical_json(message_json(message))
        assert len(message.hash) == len(message.match_hash) == 32
    canonical_json([list(shown.call.tools), shown.call.parameters])
    tokens = shown.call.tokens
    for count in (tokens.input, tokens.output, tokens.cache_read, tokens.reasoning):
        assert count is None or (type(count) is int and count >= 0)
