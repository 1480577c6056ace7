"""What the retention mode lets memory keep, and what makes two records one."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, Final, TypeAlias

import orjson

from hansard_compiler.canonical import canonical_bytes, canonical_json, stable_hash
from hansard_compiler.compile.items import unix_us
from hansard_compiler.models.memory import CONFIDENCE, Namespace, WriteMemory
from hansard_store.content.retention import Retention
from hansard_store.ids import new_id
from hansard_store.memory.errors import MemoryNotRetained, TooLarge
from hansard_store.memory.records import Kept, NewMemory

MOST_BYTES: Final = 65_536
Names: TypeAlias = tuple[str, str, str]  # project, user, agent
_SECOND_NS: Final = 1_000_000_000


def new_memory(retention: Retention, asked: WriteMemory, *, now_ns: int) -> NewMemory:
    """Return the record to be written; raises MemoryNotRetained or TooLarge."""
    if retention.is_metadata_only:
        raise MemoryNotRetained
    kept = kept_content(retention, asked)
    namespace = names_of(retention, asked.namespace)
    run, step = asked.run, asked.step_id
    working = bytes.fromhex(run) if asked.is_working and run else None
    confidence = CONFIDENCE[asked.writer] if asked.confidence is None else asked.confidence
    fresh = None if asked.freshness_ts is None else unix_us(asked.freshness_ts) * 1000
    source_run = asked.source_run_id or run
    return NewMemory(
        memory_id=new_id(),
        key=_key(asked, namespace, kept),
        older_key=_older_key(asked, namespace, kept),
        memory_type=asked.memory_type,
        namespace=namespace,
        trace_id=working,
        chain=None if asked.chain is None else bytes.fromhex(asked.chain[33:49]),
        slot=asked.slot,
        confidence=confidence,
        freshness_ns=fresh,
        expires_ns=_expires_ns(asked, now_ns),
        writer=asked.writer,
        written_by=None if asked.by is None else retention.clean_text(asked.by),
        source_trace=bytes.fromhex(source_run) if source_run else None,
        source_steps=tuple(asked.source_step_ids or ([step] if step else [])),
        approval_id=asked.approval_id,
        replaces=None,  # found by whoever can look
        kept=kept,
    )


def kept_content(retention: Retention, asked: WriteMemory) -> Kept:
    """Return what may be stored of a record's content; raises TooLarge."""
    told = {
        "subject": asked.subject or (asked.slot or ""),
        "attribute": asked.attribute,
        "content": asked.content,
        "scope": asked.scope,
        "metadata": asked.metadata,
        "tags": sorted(set(asked.tags)),
    }
    size = len(canonical_bytes(told))
    if size > MOST_BYTES:
        raise TooLarge(found_bytes=size, most_bytes=MOST_BYTES)
    clean, removed = _clean(retention, told)
    return Kept(
        **{**clean, "tags": tuple(clean["tags"])},
        removed=removed,
        hmac=hmac.digest(retention.key, canonical_bytes(clean), hashlib.sha256),
    )


def names_of(retention: Retention, namespace: Namespace) -> Names:
    """Return project, user and agent as they are stored; "" for none."""
    project, user, agent = map(retention.clean_text, namespace.parts)
    return project, user, agent


def _clean(retention: Retention, told: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    if retention.is_full:
        return told, ()
    found: dict[str, None] = {}
    clean: dict[str, Any] = {}
    for name, value in told.items():
        # A text by itself: rules that look at a line see the line, and not a JSON string.
        is_text = isinstance(value, str)
        redacted = retention.redactor.redact_text(value if is_text else canonical_json(value))
        found |= dict.fromkeys(f"{one.rule}:{one.fingerprint}" for one in redacted.findings)
        if is_text:
            clean[name] = redacted.text
        else:
            clean[name] = orjson.loads(redacted.text) if redacted.findings else value
    return clean, tuple(found)


def _key(asked: WriteMemory, namespace: Names, kept: Kept) -> bytes:
    """Return what a newer record must share to supersede an older one.

    One that does not name its attribute shares it with a repeat of itself only: two facts of one
    subject are two facts.
    """
    if asked.is_working:
        return stable_hash(["working", asked.run, asked.chain, asked.slot])[:16]
    parts = _about(asked, namespace, kept)
    return stable_hash(parts if parts[-1] else [*parts, kept.hmac.hex()])[:16]


def _older_key(asked: WriteMemory, namespace: Names, kept: Kept) -> bytes | None:
    """Return the key that 0.1 gave a record without an attribute; None for any other."""
    parts = [] if asked.is_working else _about(asked, namespace, kept)
    return stable_hash(parts)[:16] if parts and not parts[-1] else None


def _about(asked: WriteMemory, namespace: Names, kept: Kept) -> list[Any]:
    subject = " ".join(kept.subject.split()).casefold()
    attribute = " ".join(kept.attribute.split()).casefold()
    return ["durable", namespace, kept.scope, asked.memory_type, subject, attribute]


def _expires_ns(asked: WriteMemory, now_ns: int) -> int | None:
    if asked.expires_at is not None:
        return unix_us(asked.expires_at) * 1000
    return None if asked.ttl_s is None else now_ns + asked.ttl_s * _SECOND_NS
