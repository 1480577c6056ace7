"""Hansard's own spans (DESIGN §9), known by their names."""

from __future__ import annotations

from collections.abc import Mapping

SPAN_ROLES: Mapping[str, str] = {
    "span hansard.compile": "compile",
    "span hansard.policy.check": "policy",
}
