"""Arguments as they may leave the process: secrets stay, and a keyed mark replaces each.

The mark is the same for the same secret in this data folder, so what is approved stays bound to it.
A process without the arguments themselves cannot run a call that has a mark.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hansard._gate.arguments import Json
from hansard_compiler.canonical import canonical_bytes, canonical_json
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode

_MARK: Final = re.compile(r"\[(?:secret|withheld): [0-9a-f]{16}\]")
_FINGERPRINT_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Veil:
    """Redaction of arguments by a retention mode."""

    mode: RetentionMode
    key: bytes = field(repr=False)
    redactor: Redactor = field(repr=False)

    @classmethod
    def of(cls, mode: RetentionMode, key: bytes) -> Veil:
        return cls(mode, key, Redactor(key))

    def arguments(self, exact: Mapping[str, Any]) -> Json:
        """Return arguments with a mark in place of each secret."""
        if self.mode is RetentionMode.FULL_PAYLOADS:
            return dict(exact)
        if self.mode is RetentionMode.METADATA_ONLY:
            return {name: self._mark("withheld", value) for name, value in exact.items()}
        text = canonical_json(exact)
        clean = self.redactor.redact_text(text).text
        if clean == text:
            return dict(exact)
        veiled = self._compared(dict(exact), json.loads(clean))
        return veiled if isinstance(veiled, dict) else {"arguments": veiled}

    def text(self, text: str | None) -> str | None:
        """Return a description without secrets; none where no content may leave."""
        if text is None or self.mode is RetentionMode.FULL_PAYLOADS:
            return text
        if self.mode is RetentionMode.METADATA_ONLY:
            return None
        return self.redactor.redact_text(text).text

    def _compared(self, exact: Any, clean: Any) -> Any:
        """Return the exact value, with marks where a clean one differs."""
        if isinstance(exact, dict) and isinstance(clean, dict) and exact.keys() == clean.keys():
            return {name: self._compared(value, clean[name]) for name, value in exact.items()}
        if isinstance(exact, list) and isinstance(clean, list) and len(exact) == len(clean):
            return [self._compared(*pair) for pair in zip(exact, clean, strict=True)]
        if type(exact) is type(clean) and exact == clean:
            return exact
        return self._mark("secret", exact)

    def _mark(self, why: str, value: Any) -> str:
        digest = hmac.digest(self.key, canonical_bytes(value), hashlib.sha256)
        return f"[{why}: {digest[:_FINGERPRINT_BYTES].hex()}]"


def is_veiled(value: Any) -> bool:
    """Whether a mark replaces a part of a value: then it is not what is to be run."""
    return bool(_MARK.search(canonical_json(value)))
