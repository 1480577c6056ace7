"""Names of before, and what they are called now: what is stored or sent under them is still read.

Stored bytes stay as they came in (the audit log, records of spans, compiles, payloads); their
names are mapped where they are read. Apart from the migrations this is the only place with old
names. `docs/renames.tsv` lists every rename, also those of names that are nowhere stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CODES: Final[Mapping[str, str]] = {
    "answer_truncated": "response_truncated",
    "bad_answer": "invalid_response",
    "bad_judgement": "invalid_judgement",
    "bad_policy": "invalid_policy",
    "bad_script": "invalid_script",
    "bad_verdict": "invalid_verdict",
    "feature_off": "feature_disabled",
    "memory_not_kept": "memory_not_retained",
    "no_provider": "provider_unavailable",
    "not_permitted": "permission_denied",
    "place_taken": "subject_conflict",
    "provider_broken": "provider_server_error",
    "recording_off": "recording_disabled",
    "report_not_sent": "report_delivery_failed",
    "scan_under_way": "scan_running",
    "source_down": "source_unavailable",
    "stream_broken": "stream_interrupted",
}
"""Codes of errors, as attributes, replays and phases of the heartbeat hold them."""

EVENTS: Final[Mapping[str, str]] = {
    "hansard.loss": "hansard.dropped",
    "hansard.pulse": "hansard.keepalive",
    "hansard.tool.result_again": "hansard.tool.duplicate_result",
}
"""Names of span events and of log records."""

ATTRIBUTES: Final[Mapping[str, str]] = {
    "hansard.call.shortfall": "hansard.call.incomplete_reason",
    "hansard.counted.input_tokens": "hansard.token_count.input_tokens",
    "hansard.left_open": "hansard.unended",
    "hansard.loss.items": "hansard.dropped.items",
    "hansard.loss.reason": "hansard.dropped.reason",
    "hansard.loss.signal": "hansard.dropped.signal",
    "hansard.pulse.interval_ms": "hansard.keepalive.interval_ms",
    "hansard.pulse.last": "hansard.keepalive.last",
    "hansard.pulse.trace_ids": "hansard.keepalive.trace_ids",
    "hansard.request.left_out": "hansard.request.omitted",
    "hansard.request.left_out_ref": "hansard.request.omitted_ref",
    "hansard.request.left_out_size": "hansard.request.omitted_size",
    "hansard.request_ref": "hansard.request.ref",
    "hansard.tool.told": "hansard.tool.recorded_part",
}
"""Attributes of spans, of their events and of log records."""

TABLES: Final[Mapping[str, str]] = {
    "asked": "idempotency_key",
    "loss": "sender_drop",
    "span_loser": "span_duplicate",
}
"""Sealed tables, as the audit log names them where rows of one were altered."""

LINKS: Final[Mapping[str, str]] = {"asked": "approval_request"}
"""Values of `hansard.link.type`."""

FIELDS: Final[Mapping[str, str]] = {
    "elsewhere": "allow_other_address",
    "held_because": "block_reason",
}
"""Fields of requests for replays, which are stored while they wait for an approval, and of the tool
calls of a fork."""

STATES: Final[Mapping[str, str]] = {"held": "blocked"}
"""States of the tool calls of a fork."""

_VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "hansard.error.code": CODES,
    "hansard.call.incomplete_reason": CODES,
    "hansard.link.type": LINKS,
}
_READ: Final = frozenset((*ATTRIBUTES, *_VALUES))


def current_fields(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored request under the names that its fields have now."""
    return {FIELDS.get(name, name): value for name, value in stored.items()}


def with_current_calls(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is stored of a fork with its tool calls under the names of now."""
    if "calls" not in stored:
        return dict(stored)
    calls = [current_fields(one) for one in stored["calls"]]
    for one in calls:
        one["state"] = STATES.get(one["state"], one["state"])
    return {**stored, "calls": calls}


def with_current_code(stored: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return stored JSON whose `key`, where there is one, holds what its code is called now."""
    code = stored.get(key)
    return {**stored, key: CODES[code]} if isinstance(code, str) and code in CODES else stored


def current_table(name: str) -> str:
    """Return what a sealed table is called now."""
    return TABLES.get(name, name)


def current_event(name: str) -> str:
    """Return what a span event or log record is called now."""
    return EVENTS.get(name, name)


def current_attribute(key: str) -> str:
    """Return what an attribute is called now."""
    return ATTRIBUTES.get(key, key)


def current_attributes(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return attributes under the names of now: the same object where none was renamed.

    An attribute that came under both names keeps the value of the new one.
    """
    if _READ.isdisjoint(attributes):
        return attributes
    found: dict[str, Any] = {}
    for key, value in attributes.items():
        name = ATTRIBUTES.get(key, key)
        if name != key and name in attributes:
            continue
        values = _VALUES.get(name) if isinstance(value, str) else None
        found[name] = values.get(value, value) if values else value
    return found
