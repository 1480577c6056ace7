"""What spans of memory say of themselves, whoever tells them: upstream's names, and no content.

Records stay where they are kept, so that what is purged there is not left in a trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hansard import semconv

if TYPE_CHECKING:
    from hansard._tracing.attributes import Attributes
    from hansard._tracing.open_span import OpenSpan


def read_attributes(asked: Mapping[str, Any]) -> Attributes:
    """Return what a read says before it is done; its text is kept apart, as content."""
    return {
        semconv.OPERATION_NAME: semconv.OP_SEARCH_MEMORY,
        semconv.MEMORY_STORE_ID: store_id(asked),
    }


def write_attributes(told: Mapping[str, Any]) -> Attributes:
    """Return what a write says before it is done."""
    return {
        semconv.OPERATION_NAME: semconv.OP_UPSERT_MEMORY,
        semconv.MEMORY_STORE_ID: store_id(told),
        semconv.MEMORY_WRITER: told.get("writer"),
        semconv.MEMORY_TYPE: told.get("memory_type"),
        semconv.APPROVAL_ID: told.get("approval_id"),
    }


def end_attributes(told: Mapping[str, Any]) -> Attributes:
    """Return what the end of a record says: it is updated, never deleted."""
    return {
        semconv.OPERATION_NAME: semconv.OP_UPDATE_MEMORY,
        semconv.MEMORY_RECORD_ID: told.get("memory_id"),
    }


def tell_read(made: OpenSpan, items: Sequence[Mapping[str, Any]]) -> None:
    """Say what was found: ids and standing."""
    made.span.set_attribute(semconv.MEMORY_RECORD_COUNT, len(items))
    if items:
        made.keep(semconv.MEMORY_RECORDS, [_brief(one) for one in items])


def tell_written(made: OpenSpan, answer: Mapping[str, Any]) -> None:
    """Say what became of a write."""
    memory = answer.get("memory", {})
    made.span.set_attribute(semconv.MEMORY_RECORD_ID, str(memory.get("memory_id", "")))
    outcome = answer.get("outcome", memory.get("state", ""))
    made.span.set_attribute(semconv.MEMORY_OUTCOME, str(outcome))


def store_id(told: Mapping[str, Any]) -> str:
    """Return the name of the memory that is meant: a namespace, or a run's own."""
    namespace = told.get("namespace") or {}
    named = [f"{part}:{namespace[part]}" for part in ("project", "user", "agent")
             if namespace.get(part)]  # fmt: skip
    return " ".join(named) or "working"


def _brief(one: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("memory_type", "slot", "state", "version", "confidence", "source_run_id")
    return {"id": one["memory_id"], "metadata": {key: one[key] for key in kept if one.get(key)}}
