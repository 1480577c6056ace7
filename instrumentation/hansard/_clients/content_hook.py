"""What OpenTelemetry's GenAI instrumentors saw, kept the way Hansard keeps content."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from hansard._clients import names
from hansard._clients.guard import observing
from hansard._runtime.recorder import active

if TYPE_CHECKING:
    from opentelemetry.trace import Span


class ContentHook:
    """A `CompletionHook` of opentelemetry-util-genai, handed to the instrumentors that take one.

    Messages become attributes by value or references to payloads, as the retention mode says. An
    instrumentor that was told to write them on its spans itself is left to it.
    """

    @observing
    def on_completion(
        self,
        *,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        system_instruction: Sequence[Any] = (),
        tool_definitions: Sequence[Any] | None = None,
        span: Span | None = None,
        **_: Any,
    ) -> None:
        """Put the content of one call onto its span, which is still open."""
        recorder = active()
        if recorder is None or span is None or not span.is_recording():
            return
        from hansard._payloads.store import set_content

        present = getattr(span, "attributes", None) or {}
        content = {
            names.INPUT_MESSAGES: inputs,
            names.OUTPUT_MESSAGES: outputs,
            names.SYSTEM_INSTRUCTIONS: system_instruction,
            names.TOOL_DEFINITIONS: tool_definitions,
        }
        for key, value in content.items():
            if value and key not in present:
                set_content(span, key, _json(value), recorder=recorder)


def _json(value: object) -> str:
    said = json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))
    try:
        said.encode()
    except UnicodeEncodeError:
        return json.dumps(value, default=_plain, separators=(",", ":"))
    return said


def _plain(value: object) -> object:
    """Return what JSON has a form for; fields that are not set are left out."""
    if is_dataclass(value):
        told = {field.name: getattr(value, field.name) for field in fields(value)}
        return {key: item for key, item in told.items() if item is not None}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | set):
        return list(value)
    return repr(value)
