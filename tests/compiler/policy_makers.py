"""Small makers for policy tests."""

from __future__ import annotations

from typing import Any

from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.facts import ItemFacts, PolicyContext, ToolFacts
from hansard_compiler.policy.rules import Rule, parse_rules

CONTEXT = PolicyContext(
    agent="coder",
    task_type="bugfix",
    provider="openai",
    model="gpt-4o",
    environment="production",
    user="alice",
    project="apollo",
)


def rule(id: str = "r", effect: str = "deny", **fields: Any) -> Rule:
    """Return a rule; `applies_to` and `conditions` are empty unless given."""
    return parse_rules([{"id": id, "name": id, "effect": effect, **fields}], version="7")[0]


def policy(*rules: Rule) -> Policy:
    return Policy(rules=rules)


def item(**fields: Any) -> ItemFacts:
    return ItemFacts(**{"id": "item-1", "kind": "file", "sensitivity": "internal", **fields})


def tool(**fields: Any) -> ToolFacts:
    return ToolFacts(**{"name": "run", "tool_class": "shell", "effect": "write", **fields})
