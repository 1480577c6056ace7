"""Hansard's own spans (DESIGN §9), known by their names, kinds and `hansard.*` attributes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hansard_collector.dialects.engine.normal_form import ROLES as ROLES_OF_STEPS
from hansard_collector.dialects.engine.span_reader import Reading

SPAN_ROLES: Mapping[str, str] = {
    "span hansard.compile": "compile",
    "span hansard.policy.check": "policy",
}

# `hansard.kind`: a role by its own name, or a kind of step in the words of the session API.
ROLES: Mapping[str, str] = {
    **{role: role for role in ROLES_OF_STEPS},
    "model_call": "llm",
    "tool_call": "tool",
    "memory_write": "memory",
    "policy_check": "policy",
    "human_approval": "approval",
}


def words(reading: Reading, key: str) -> str | None:
    """Return what a person would quote of the arguments or the result of a decorated function.

    A text; the one argument that is a text; several with their names; of a list of messages what
    the user said last. Where no text is in it, the value as JSON: it is this step's input
    or returned, and no other step's words stand for it.
    """
    value = reading.opened(key)
    if not isinstance(value, Mapping):
        return _text_of(value) or _json_of(value)
    texts = {name: text for name, item in value.items() if (text := _text_of(item))}
    if len(texts) == 1 == len(value):
        return next(iter(texts.values()))
    if texts:
        return ", ".join(f"{name}: {text}" for name, text in texts.items())
    is_argument = key == "hansard.input" and len(value) == 1
    return _json_of(next(iter(value.values())) if is_argument else value)


def _json_of(value: Any) -> str | None:
    """Return a value that is something as compact JSON."""
    if value is None or value in ("", {}):
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)


def _text_of(value: Any) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if not isinstance(value, list):
        return None
    texts = [
        item.get("content")
        for item in value
        if isinstance(item, Mapping) and item.get("role") == "user"
    ]
    return _text_of(texts[-1]) if texts and isinstance(texts[-1], str) else None
