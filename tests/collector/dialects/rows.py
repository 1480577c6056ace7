"""The mapping table of genai-dialects.md §20, row by row, as spans: what is sent, what is shown.

Each row lists its sources in the table's order. The tests send each alone, and each together with
all later ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hansard_collector.dialects.engine.item_views import EventView, LogView
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_compiler.calls import Call


class Given(NamedTuple):
    """One source: what is sent, what it alone leads to."""

    attributes: Mapping[str, Any]
    expected: Any
    events: Sequence[EventView] = ()
    logs: Sequence[LogView] = ()


@dataclass(frozen=True)
class Row:
    name: str
    get: Callable[[Normalised], Any]
    sources: Sequence[Given]
    context: Mapping[str, Any] = field(default_factory=dict)
    # The span speaks Claude Code by its name, Codex by its service, Pydantic AI by its scope.
    span: Mapping[str, Any] = field(
        default_factory=lambda: {
            "name": "claude_code.test",
            "service": "codex_cli_rs",
            "scope": "pydantic-ai",
        }
    )


def call(shown: Normalised) -> Call:
    assert shown.call is not None
    return shown.call


def keys(*names: str, values: Callable[[int], Any] = lambda at: f"value {at}") -> list[Given]:
    """Plain keys, each with a value of its own that is shown as sent."""
    return [Given({key: values(at)}, values(at)) for at, key in enumerate(names)]


def numbers(*names: str) -> list[Given]:
    return keys(*names, values=lambda at: at + 1)


def as_json(value: Any) -> str:
    return json.dumps(value)


LLM = {"openinference.span.kind": "LLM"}
TOOL = {"openinference.span.kind": "TOOL"}
LF_USAGE = "langfuse.observation.usage_details"
ML_USAGE = "mlflow.chat.tokenUsage"
INVOCATION = "llm.invocation_parameters"


def haystack_reply(meta: Mapping[str, Any]) -> dict[str, Any]:
    reply = {"role": "assistant", "content": [{"text": "x"}], "meta": meta}
    return {"haystack.component.output": as_json({"replies": [reply]})}


def text_of(messages: Sequence[Any]) -> str:
    return "|".join(message.text for message in messages)


def said(role: str, text: str) -> list[dict[str, Any]]:
    return [{"role": role, "content": text}]
