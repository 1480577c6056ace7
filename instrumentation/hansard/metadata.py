"""Free metadata of runs and steps as attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from hansard.capture import to_json
from hansard_compiler.retention import RetentionMode

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

    from hansard._state import Recorder

_MAX_KEYS: Final = 64
_MAX_BYTES: Final = 4_096


def metadata_attributes(
    recorder: Recorder, prefix: str, metadata: Mapping[str, Any] | None
) -> dict[str, AttributeValue]:
    """Return each value under `prefix` and its key: scalars as they are, others as JSON.

    It is content: in `metadata_only` just numbers and booleans are told. At most 64 keys.
    """
    told: dict[str, AttributeValue] = {}
    for key, value in list((metadata or {}).items())[:_MAX_KEYS]:
        kind = type(value)  # never `isinstance`, which asks the object
        if kind in (bool, int, float):
            told[f"{prefix}{key}"] = value
        elif recorder.settings.retention is not RetentionMode.METADATA_ONLY:
            text = value if kind is str else to_json(value, max_bytes=_MAX_BYTES)
            told[f"{prefix}{key}"] = text[:_MAX_BYTES]
    return told
