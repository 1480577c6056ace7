"""What a redacting rule takes out of an item: named fields, patterns, known kinds, or everything.

A rule says it in its metadata, as in
`{"mask": {"fields": ["customer.email"], "patterns": ["[0-9]{4}"], "rules": ["pii"]}}`. Without a
mask the whole content is withheld. What fields and patterns take out leaves `‹masked:rule-id›`;
`rules` names rules of redaction, which leave markers of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hansard_compiler.policy.conditions import compiled_pattern
from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.redaction.rules import PII_RULES, SECRET_RULES

_KEYS = {"fields", "patterns", "rules"}
_NAMES = {"secrets", "pii", *(rule.name for rule in (*SECRET_RULES, *PII_RULES))}
# What ties the parts of a conversation together stays: a masked call is still that call.
_PART_KINDS = {"text", "tool_call", "tool_result", "reasoning", "media", "other"}
_LINKS = {"type", "id", "name"}


@dataclass(frozen=True, slots=True)
class Mask:
    """What to take out; everything where nothing is named."""

    fields: tuple[str, ...] = ()  # dotted paths, in JSON content
    patterns: tuple[Any, ...] = ()  # compiled; google-re2, so time is linear in the text
    rules: tuple[str, ...] = ()  # names of redaction rules, or of their groups: secrets, pii

    @property
    def is_whole(self) -> bool:
        return not (self.fields or self.patterns or self.rules)


WHOLE = Mask()


@dataclass(frozen=True, slots=True)
class Masked:
    """Content without what was masked, and how often something was."""

    content: Any
    count: int


def parse_mask(value: Any, where: str = "mask") -> Mask:
    """Read a mask; None masks everything. Raises PolicyRuleError."""
    if value is None:
        return WHOLE
    if not isinstance(value, Mapping) or not value or not set(value) <= _KEYS:
        raise PolicyRuleError(where, f"expected a mapping of {sorted(_KEYS)}")
    for key, names in value.items():
        if not isinstance(names, list) or not names or not all(isinstance(v, str) for v in names):
            raise PolicyRuleError(f"{where}.{key}", "expected a list of texts")
    unknown = sorted(set(value.get("rules", ())) - _NAMES)
    if unknown:
        raise PolicyRuleError(f"{where}.rules", f"no redaction rule {unknown[0]!r}")
    try:
        patterns = tuple(map(compiled_pattern, value.get("patterns", ())))
    except ValueError as error:
        raise PolicyRuleError(f"{where}.patterns", str(error)) from None
    return Mask(tuple(value.get("fields", ())), patterns, tuple(value.get("rules", ())))


def apply_mask(content: Any, mask: Mask, rule_id: str) -> Masked:
    """Return content (a text, or JSON) with the mask's fields and patterns taken out.

    A text has no fields, so a mask of fields alone withholds the whole text. In a message, paths
    begin at a call's arguments and a result's content. `mask.rules` are the redactor's work.
    """
    masking = _Masking(mask, f"‹masked:{rule_id}›")
    if isinstance(content, Mapping) and isinstance(content.get("parts"), list):
        parts = [masking.part(part) for part in content["parts"]]
        rest = {key: masking.value(value, key) for key, value in content.items() if key != "parts"}
        return Masked({**rest, "parts": parts}, masking.count)
    return Masked(masking.value(content), masking.count)


class _Masking:
    """Walks content and counts what it takes out."""

    def __init__(self, mask: Mask, marker: str) -> None:
        self.count = 0
        self._mask = mask
        self._marker = marker
        # A whole text goes where the mask knows nothing but fields.
        self._cuts_texts = mask.is_whole or not (mask.patterns or mask.rules)

    def part(self, part: Any) -> Any:
        if not isinstance(part, Mapping) or part.get("type") not in _PART_KINDS:
            return self.value(part)
        return {key: one if key in _LINKS else self.value(one) for key, one in part.items()}

    def value(self, value: Any, path: str = "") -> Any:
        if path in self._mask.fields or self._mask.is_whole:
            return self._cut()
        if isinstance(value, str):
            return self._cut() if self._cuts_texts and not path else self._text(value)
        if isinstance(value, Mapping):
            return {
                self._text(key) if isinstance(key, str) else key: self.value(
                    child, f"{path}.{key}" if path else str(key)
                )
                for key, child in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(child, path) for child in value]
        return value

    def _text(self, text: str) -> str:
        for pattern in self._mask.patterns:
            text, found = pattern.subn(lambda _: self._marker, text)
            self.count += found
        return text

    def _cut(self) -> str:
        self.count += 1
        return self._marker
