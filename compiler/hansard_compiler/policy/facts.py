"""The facts of a policy check: who, where, and an item to see or a tool call to make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from hansard_compiler.calls import Json
from hansard_compiler.canonical import content_digest

Action = Literal["see", "do"]
Facts: TypeAlias = Mapping[str, Any]  # what conditions look into, by field

CONTEXT_FIELDS = ("agent", "task_type", "provider", "model", "environment", "user", "project")


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """Who requests, for what, and where: what stays the same over a step. None: unknown."""

    agent: str | None = None
    task_type: str | None = None
    provider: str | None = None
    model: str | None = None
    environment: str | None = None
    user: str | None = None
    project: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ItemFacts:
    """What policy may know of a context item: everything but its content."""

    id: str
    kind: str | None = None
    sensitivity: str | None = None
    source_type: str | None = None
    source_uri: str | None = None
    tags: Sequence[str] = ()
    trust_score: float | None = None
    importance_score: float | None = None
    tokens: int | None = None
    scope: Mapping[str, Any] = field(default_factory=dict)  # as in {"project": "apollo"}
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """A tool call an agent wants to make."""

    name: str
    tool_class: str | None = None  # shell, web, file, database …
    effect: str | None = None  # "read" or "write"; None is not known
    arguments: Mapping[str, Any] = field(default_factory=dict)
    sensitivity: str | None = None  # of the data it would give
    scope: Mapping[str, Any] = field(default_factory=dict)


def context_facts(context: PolicyContext) -> Facts:
    """Return what is known before any item or call."""
    facts: dict[str, Any] = {key: getattr(context, key) for key in CONTEXT_FIELDS}
    facts["scope"] = scopes_of({"user": context.user, "project": context.project})
    facts["metadata"] = context.metadata
    return facts


def item_facts(context: Facts, item: ItemFacts) -> Facts:
    """Add an item to what is known."""
    return {
        **context,
        "action": "see",
        "scope": scopes_of(item.scope, context["scope"]),
        "sensitivity": item.sensitivity,
        "item": {name: getattr(item, name) for name in item.__slots__} | {"tags": list(item.tags)},
    }


def tool_facts(context: Facts, tool: ToolFacts) -> Facts:
    """Add a tool call to what is known."""
    return {
        **context,
        "action": "do",
        "scope": scopes_of(tool.scope, context["scope"]),
        "sensitivity": tool.sensitivity,
        "tool_class": tool.tool_class,
        "tool": {"name": tool.name, "class": tool.tool_class, "effect": tool.effect},
        "arguments": tool.arguments,
    }


def scopes_of(scope: Mapping[str, Any], others: Sequence[str] = ()) -> list[str]:
    """Return a scope as rules name it: `user:alice`, `project:apollo`."""
    if not scope:
        return list(others)
    named = [f"{kind}:{name}" for kind, name in scope.items() if isinstance(name, str) and name]
    return [*others, *(one for one in named if one not in others)]


def values_of(facts: Facts, dimension: str) -> Sequence[str]:
    """Return the values a dimension has: none when it was not said."""
    value = facts.get(dimension)
    return value if isinstance(value, list) else () if value is None else (value,)


def inputs_of(facts: Facts) -> Json:
    """Return what a check was judged on, without content: arguments as their hash."""
    inputs = {key: facts.get(key) for key in (*CONTEXT_FIELDS, "scope", "sensitivity")}
    if "item" in facts:
        item = facts["item"]
        inputs["item"] = {key: item[key] for key in ("id", "kind", "source_type", "source_uri")}
    if "tool" in facts:
        inputs["tool"] = dict(facts["tool"])
        inputs["arguments_hash"] = content_digest(facts["arguments"])
    return {key: value for key, value in inputs.items() if value not in (None, [])}
