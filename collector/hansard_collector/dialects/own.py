"""Hansard's own spans (DESIGN §9), known by their names, kinds and `hansard.*` attributes."""

from __future__ import annotations

from collections.abc import Mapping

from hansard_collector.normalised import ROLES as ROLES_OF_STEPS

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
