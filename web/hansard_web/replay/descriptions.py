"""The changes of a replay in words, as its page, its body and the command line say them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_json
from hansard_web.ui.format import count, plural, shorten

_LABELS: Final[Mapping[str, str]] = {
    "set_model": "Model",
    "set_provider": "Provider",
    "set_sampling": "Sampling",
    "set_budget": "Budget",
    "set_weights": "Weights",
    "set_policy": "Policy",
    "remove_memory": "Leave out memory",
    "remove_source": "Leave out source",
    "add_item": "Add item",
    "edit_item": "Edit item",
    "remove_item": "Leave out item",
    "edit_message": "Edit message",
    "remove_message": "Remove message",
    "add_message": "Add message",
    "remove_tool": "Leave out tool",
}

# What a request is made of, by the `basis` of a preview.
BASES: Final = {
    "recorded": "the recorded bytes",
    "edited": "the recorded bytes, edited where the changes say and nowhere else",
    "compiled": "the compile made again, written over the recorded bytes",
    "continued": "the request before it, with the answer and the results behind",
    "telemetry": "rebuilt from telemetry: no bytes were recorded",
}


@dataclass(frozen=True, slots=True)
class ChangeText:
    """A change as a line of the list."""

    label: str
    text: str
    long: str  # content that is shown below it


def sentence_of_change(change: Json) -> ChangeText:
    """Return a change in words; one that is not known is shown as it is."""
    op = str(change.get("op"))
    text, long = _change_text(op, change)
    return ChangeText(_LABELS.get(op, op), shorten(text, 200), shorten(long, 1_000))


def _change_text(op: str, change: Json) -> tuple[str, str]:
    match op:
        case "set_model" | "set_provider":
            return str(change.get(op.removeprefix("set_"))), ""
        case "set_budget":
            return ", ".join(_budget(change)), ""
        case "set_weights" | "set_sampling":
            values = change.get("weights", {}) if op == "set_weights" else _rest(change)
            return _pairs(values), ""
        case "set_policy":
            rules = change.get("rules")
            many = len(rules) if isinstance(rules, list) else 0
            names = [str(one.get("id")) for one in rules or () if isinstance(one, dict)]
            return f"{plural(many, 'rule')} in place of those of the compile", ", ".join(names)
        case "remove_memory":
            return str(change.get("memory_id") or "all memories"), ""
        case "remove_source" | "remove_tool" | "remove_item":
            return str(change.get("source") or change.get("name") or change.get("item_id")), ""
        case "edit_item":
            return str(change.get("item_id")), text_of_value(change.get("content"))
        case "add_item":
            item = change.get("item")
            item = item if isinstance(item, dict) else {}
            name = f"{item.get('kind', '')} {item.get('id', '')}".strip()
            return name, text_of_value(item.get("content"))
        case "edit_message" | "remove_message":
            return f"message {change.get('position')}, counted from 0", text_of_value(
                change.get("text")
            )
        case "add_message":
            return f"as {change.get('role')}", text_of_value(change.get("text"))
    return text_of_value(_rest(change)), ""


def _budget(change: Json) -> list[str]:
    texts = []
    if change.get("token_budget") is not None:
        texts.append(f"{_figure(change['token_budget'])} tokens")
    if change.get("response_reserve") is not None:
        texts.append(f"{_figure(change['response_reserve'])} of them kept for the answer")
    return texts


def _figure(value: Any) -> str:
    return count(value) if isinstance(value, int) else str(value)


def _rest(change: Json) -> Json:
    return {name: value for name, value in change.items() if name != "op"}


def _pairs(mapping: Any) -> str:
    if not isinstance(mapping, dict):
        return str(mapping)
    return ", ".join(
        f"{name.replace('_', ' ')} {'as the provider has it' if value is None else value}"
        for name, value in mapping.items()
    )


def text_of_value(value: Any) -> str:
    """Return a value as text: JSON where it is none; "" for nothing."""
    if value is None:
        return ""
    return value if isinstance(value, str) else canonical_json(value)


def change_notes(changes: list[Json]) -> list[str]:
    """Return what was changed, a sentence for each change, in order."""
    texts = [sentence_of_change(one) for one in changes]
    return [f"{one.label}: {one.text}".removesuffix(": ") for one in texts]
