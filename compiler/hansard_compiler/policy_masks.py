"""What a redacting rule takes out of an item: named fields, patterns, or everything.

A rule says it in its metadata, as in
`{"mask": {"fields": ["customer.email"], "patterns": ["[0-9]{4}"]}}`.
Without a mask the whole content is withheld. Masked texts leave `‹masked:rule-id›`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import re2

from hansard_compiler.policy_errors import PolicyRuleError


@dataclass(frozen=True, slots=True)
class Mask:
    """Fields by path and patterns to take out; `is_whole` where there are neither."""

    fields: tuple[str, ...] = ()
    patterns: tuple[Any, ...] = ()  # compiled; google-re2, so time is linear in the text

    @property
    def is_whole(self) -> bool:
        return not self.fields and not self.patterns


@dataclass(frozen=True, slots=True)
class Masked:
    """Content without what was masked, and how often something was."""

    content: Any
    count: int


def parse_mask(value: Any, where: str = "mask") -> Mask:
    """Read a mask; None masks everything. Raises PolicyRuleError."""
    if value is None:
        return Mask()
    if not isinstance(value, Mapping) or not value or not set(value) <= {"fields", "patterns"}:
        raise PolicyRuleError(where, 'expected {"fields": [...], "patterns": [...]}')
    for key, given in value.items():
        if not isinstance(given, list) or not given or not all(isinstance(v, str) for v in given):
            raise PolicyRuleError(f"{where}.{key}", "expected a list of texts")
    try:
        patterns = tuple(re2.compile(pattern) for pattern in value.get("patterns", ()))
    except re2.error as error:
        raise PolicyRuleError(f"{where}.patterns", f"not a pattern: {error}") from None
    return Mask(tuple(value.get("fields", ())), patterns)


def apply_mask(content: Any, mask: Mask, rule_id: str) -> Masked:
    """Return content (a text, or JSON) with what the mask names taken out.

    A field a mask names is looked for in JSON content only: in a text there are no fields, so a
    mask of fields alone withholds the whole text.
    """
    marker = f"‹masked:{rule_id}›"
    if mask.is_whole or (isinstance(content, str) and not mask.patterns):
        return Masked(marker, 1)
    count = 0

    def walk(value: Any, path: str) -> Any:
        nonlocal count
        if path in mask.fields:
            count += 1
            return marker
        if isinstance(value, str):
            for pattern in mask.patterns:
                value, found = pattern.subn(lambda _: marker, value)
                count += found
            return value
        if isinstance(value, Mapping):
            return {
                walk(key, "\0") if isinstance(key, str) else key: walk(child, _below(path, key))
                for key, child in value.items()
            }
        if isinstance(value, list | tuple):
            return [walk(child, path) for child in value]
        return value

    return Masked(walk(content, ""), count)


def _below(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)
