"""Policy checks as rows: what the retention mode lets them say."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_bytes
from hansard_compiler.policy.checks import PolicyCheck
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention import RetentionMode
from hansard_store.policy.checks import CheckRow

# Names that whoever set the program up gave; the rest may be a person's words.
_NAMES: Final = frozenset(
    ("agent", "task_type", "provider", "model", "environment", "sensitivity", "kind",
     "source_type", "name", "class", "effect", "arguments_hash", "tool", "item")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckKeeper:
    """Makes rows of checks; the key is the store's."""

    mode: RetentionMode
    redactor: Redactor
    key: bytes

    def row(self, check: PolicyCheck, *, now_ns: int) -> CheckRow:
        """Return a check's row: no content, no argument, no secret."""
        inputs = self._inputs(check)
        item, tool = inputs.get("item"), inputs.get("tool")
        subject = tool["name"] if tool else item["id"] if item else None
        rules = [self._outcome(one.json()) for one in check.outcomes]
        return CheckRow(
            time_ns=now_ns,
            action=check.action,
            effect=str(check.effect),
            reason_code=check.reason_code,
            reason=self._text(check.reason, is_name=check.reason_code != "condition_error"),
            rule_id=check.rule_id,
            rule_set=check.rule.rule_set if check.rule else None,
            rule_version=check.rule.version if check.rule else None,
            rules=rules,
            obligations=sorted(str(one) for one in check.obligations),
            agent=inputs.get("agent"),
            subject=subject,
            inputs=inputs,
            policy_hash=check.policy_hash,
        )

    def _outcome(self, told: Json) -> Json:
        if told.get("error"):
            return {**told, "error": self._text(told["error"], is_name=False)}
        return told

    def _inputs(self, check: PolicyCheck) -> Json:
        told = dict(check.inputs)
        if "tool" in check.facts:
            told["arguments_hash"] = self._hash(check.facts["arguments"])
        cleaned: Json = self._clean(told, is_name=True)
        return cleaned

    def _hash(self, arguments: Any) -> str | None:
        """Return a keyed hash: arguments are few enough to be guessed from an open one."""
        try:
            data = canonical_bytes(arguments)
        except (TypeError, RecursionError):
            return None
        return "hmac-sha256:" + hmac.digest(self.key, data, hashlib.sha256).hex()

    def _clean(self, value: Any, *, is_name: bool) -> Any:
        if isinstance(value, str):
            return self._text(value, is_name=is_name)
        if isinstance(value, Mapping):
            return {
                key: self._clean(one, is_name=is_name and key in _NAMES)
                for key, one in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._clean(one, is_name=is_name) for one in value]
        return value

    def _text(self, text: str, *, is_name: bool) -> str:
        if self.mode is RetentionMode.FULL_PAYLOADS:
            return text
        if self.mode is RetentionMode.METADATA_ONLY and not is_name:
            return f"‹withheld:{len(text.encode())}›"
        return self.redactor.redact_text(text).text
