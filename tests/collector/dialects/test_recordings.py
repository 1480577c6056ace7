"""Recordings of real libraries: the normal form against what the provider was really asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard_collector.dialects.engine import vocabulary
from hansard_collector.dialects.engine.item_views import SpanView
from hansard_collector.dialects.engine.normalisation import MessageCache, normalise
from hansard_compiler.calls import Call, Message, TextPart, ToolCallPart, ToolResultPart
from tests.collector.dialects.recorded import views_of

_FOLDER = Path(__file__).parents[2] / "fixtures" / "otlp"
_RECORDINGS = sorted(folder for folder in _FOLDER.iterdir() if folder.is_dir())


def _roles(nodes: list[dict[str, Any]], views: list[SpanView]) -> Iterator[tuple[SpanView, str]]:
    """Tie the expected tree to the spans: children in order of start."""
    by_id = {(view.trace_id, view.span_id) for view in views}

    def tie(nodes: list[dict[str, Any]], under: list[SpanView]) -> Iterator[tuple[SpanView, str]]:
        for node, view in zip(nodes, under, strict=True):
            assert node["name"] == view.name
            yield view, node["role"]
            inside = [
                child
                for child in views
                if (child.trace_id, child.parent_span_id) == (view.trace_id, view.span_id)
            ]
            yield from tie(node["children"], inside)

    roots = [view for view in views if (view.trace_id, view.parent_span_id) not in by_id]
    yield from tie(nodes, roots)


def _calls() -> Iterator[Any]:
    for folder in _RECORDINGS:
        expected = json.loads((folder / "expect.json").read_text("utf-8"))
        views = views_of(folder)
        roles = {id(view): role for view, role in _roles(expected["tree"], views)}
        model_calls = [view for view in views if roles[id(view)] == "llm"]
        for at, (view, row) in enumerate(zip(model_calls, expected["llm_spans"], strict=True)):
            yield pytest.param(view, row, id=f"{folder.name}-{at}-{view.name}")


_CALLS = list(_calls())


def _call(view: SpanView) -> Call:
    shown = normalise(view, MessageCache())
    assert shown.role == "llm"
    assert shown.call is not None
    return shown.call


@pytest.mark.parametrize(("view", "row"), _CALLS)
def test_the_head_of_a_call_is_what_was_sent(view: SpanView, row: dict[str, Any]) -> None:
    call = _call(view)

    if row["provider_as_reported"] is not None:
        expected = vocabulary.provider(row["provider_as_reported"])
        assert call.provider == (expected or vocabulary.provider_of_model(row["request_model"]))
    if row["request_model"] is not None:
        assert call.request_model == row["request_model"]
    if row["status"] == "error":
        return
    if row["request_model"] is not None or row["response_model"] is None:
        assert call.response_model == row["response_model"]
    assert call.finish_reason_raw == row["finish_reason"]


@pytest.mark.parametrize(("view", "row"), _CALLS)
def test_the_tokens_of_a_call_are_what_was_sent(view: SpanView, row: dict[str, Any]) -> None:
    tokens = _call(view).tokens

    if row["status"] == "error":
        assert not any((tokens.input, tokens.output, tokens.cache_read))
        return
    for name, count in row["tokens"].items():
        in_json_only = count == 0 and row["where"].get(f"tokens.{name}") not in view.attributes
        assert getattr(tokens, name) == count or (in_json_only and getattr(tokens, name) is None)


@pytest.mark.parametrize(("view", "row"), _CALLS)
def test_the_messages_of_a_call_are_what_was_sent(view: SpanView, row: dict[str, Any]) -> None:
    call = _call(view)

    asked = [found for message in call.input for found in _said(message)]
    wanted = [found for message in row["input_messages"] for found in _wanted(message)]
    if any(missing.startswith("input") for missing in row["not_in_telemetry"]):
        wanted = [found for found in wanted if found in asked]
    # A request may name an earlier answer by its id where the telemetry has it in words.
    assert [found for found in asked if found in wanted] == wanted
    answered = "".join(message.text for message in call.output)
    assert answered.strip() == (row.get("output_text") or "").strip()
    calls = [part for m in call.output for part in m.parts if isinstance(part, ToolCallPart)]
    expected = row.get("output_tool_calls") or []
    assert [(part.name, part.arguments) for part in calls] == [
        (one["name"], one["args"]) for one in expected
    ]


def _said(message: Message) -> Iterator[tuple[str, str, Any]]:
    for part in message.parts:
        if isinstance(part, TextPart):
            yield message.role, "text", part.text.strip()
        elif isinstance(part, ToolResultPart):
            yield message.role, "result", part.content
        elif isinstance(part, ToolCallPart):
            yield message.role, part.name, part.arguments


def _wanted(message: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    role = "system" if message["role"] == "developer" else message["role"]
    if message.get("text") is not None:
        yield role, "result" if role == "tool" else "text", message["text"].strip()
    for call in message.get("tool_calls", []):
        yield role, call["name"], call["args"]
