"""Taking fields by their sources."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from hansard_collector.dialects.plan import Fields
from hansard_collector.dialects.reading import Reading


def take(
    reading: Reading, fields: Fields, sources: MutableMapping[str, str] | None = None
) -> dict[str, Any]:
    """Return each field from its first usable source, and note that source's name."""
    found: dict[str, Any] = {}
    for field, candidates in fields:
        for evidence, read, name in candidates:
            value = read(reading, evidence)
            if value is not None:
                found[field] = value
                if sources is not None:
                    sources[field] = name
                break
    return found


def merge(reading: Reading, fields: Fields) -> dict[str, dict[str, Any]]:
    """Return each field as one mapping from all its sources; what comes first wins a name."""
    found: dict[str, dict[str, Any]] = {}
    for field, candidates in fields:
        for evidence, read, _ in candidates:
            value = read(reading, evidence)
            if value:
                found[field] = {**value, **found.get(field, {})}
    return found


def join(reading: Reading, fields: Fields) -> dict[str, tuple[Any, ...]]:
    """Return each field as what all its sources say, one after the other."""
    found: dict[str, tuple[Any, ...]] = {}
    for field, candidates in fields:
        for evidence, read, _ in candidates:
            found[field] = (*found.get(field, ()), *(read(reading, evidence) or ()))
    return found
