"""What the retention mode leaves of a payload's bytes."""

from __future__ import annotations

import re
from collections import Counter

from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention import RetentionMode
from hansard_store.content.payloads import Retained
from hansard_store.ingest.redactions import RemovedSecret

BINARY = "application/octet-stream"
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,80}(?:;[ \w.=+\"'-]{1,80})?", re.ASCII)


def media_type_of(told: object, redactor: Redactor) -> str:
    """Return a media type as its sender told it; of anything that is none, that of bytes."""
    if not isinstance(told, str) or not _MEDIA_TYPE.fullmatch(told):
        return BINARY
    return BINARY if redactor.scan_bytes(told.encode()) else told


def retain_payload(
    data: bytes, media_type: str, *, mode: RetentionMode, redactor: Redactor
) -> Retained:
    """Return the bytes that may be stored; in metadata_only none."""
    if mode is RetentionMode.METADATA_ONLY:
        return Retained(None, mode.value)
    if mode is RetentionMode.FULL_PAYLOADS:
        return Retained(data)
    clean, findings = redactor.redact_bytes(data, media_type)
    if not findings:
        return Retained(data)
    counts: Counter[str] = Counter()
    for finding in findings:
        counts[finding.rule] += finding.count
    removed = [RemovedSecret(rule, "body", count) for rule, count in counts.items()]
    return Retained(clean, mode.value, removed)
