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


def new_memory(retention: Retention, request: WriteMemory, *, now_ns: int) -> NewMemory:
    """Return the record to be written; raises MemoryNotRetained or TooLarge."""
    if retention.is_metadata_only:
        raise MemoryNotRetained
    retained = kept_content(retention, request)
    namespace = names_of(retention, request.namespace)
    run, step = request.run, request.step_id
    working = bytes.fromhex(run) if request.is_working and run else None
    confidence = CONFIDENCE[request.writer] if request.confidence is None else request.confidence
    fresh = None if request.freshness_ts is None else unix_us(request.freshness_ts) * 1000
    source_run = request.source_run_id or run
    return NewMemory(
        memory_id=new_id(),
        key=_key(request, namespace, retained),
        older_key=_older_key(request, namespace, retained),
        memory_type=request.memory_type,
        namespace=namespace,
        trace_id=working,
        chain=None if request.chain is None else bytes.fromhex(request.chain[33:49]),
        slot=request.slot,
        confidence=confidence,
        freshness_ns=fresh,
        expires_ns=_expires_ns(request, now_ns),
        writer=request.writer,
        written_by=None if request.by is None else retention.clean_text(request.by),
        source_trace=bytes.fromhex(source_run) if source_run else None,
        source_steps=tuple(request.source_step_ids or ([step] if step else [])),
        approval_id=request.approval_id,
        replaces=None,  # filled in by the writer
        retained=retained,
    )


def kept_content(retention: Retention, request: WriteMemory) -> Kept:
    """Return what may be stored of a record's content; raises TooLarge."""
    fields = {
        "subject": request.subject or (request.slot or ""),
        "attribute": request.attribute,
        "content": request.content,
        "scope": request.scope,
        "metadata": request.metadata,
        "tags": sorted(set(request.tags)),
    }
    size = len(canonical_bytes(fields))
    if size > MOST_BYTES:
        raise TooLarge(found_bytes=size, most_bytes=MOST_BYTES)
    clean, removed = _clean(retention, fields)
    return Kept(
        **{**clean, "tags": tuple(clean["tags"])},
        removed=removed,
        hmac=hmac.digest(retention.key, canonical_bytes(clean), hashlib.sha256),
    )


def names_of(retention: Retention, namespace: Namespace) -> Names:
    """Return project, user and agent as they are stored; "" for none."""
    project, user, agent = map(retention.clean_text, namespace.parts)
    return project, user, agent


def _clean(retention: Retention, fields: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    if retention.is_full:
        return fields, ()
    found: dict[str, None] = {}
    clean: dict[str, Any] = {}
    for name, value in fields.items():
        # A text by itself: rules that look at a line see the line, and not a JSON string.
        is_text = isinstance(value, str)
        redacted = retention.redactor.redact_text(value if is_text else canonical_json(value))
        found |= dict.fromkeys(f"{one.rule}:{one.fingerprint}" for one in redacted.findings)
        if is_text:
            clean[name] = redacted.text
        else:
            clean[name] = orjson.loads(redacted.text) if redacted.findings else value
    return clean, tuple(found)


def _key(request: WriteMemory, namespace: Names, retained: Kept) -> bytes:
    """Return what a newer record must share to supersede an older one.

    One that does not name its attribute shares it with a repeat of itself only: two facts of one
    subject are two facts.
    """
    if request.is_working:
        return stable_hash(["working", request.run, request.chain, request.slot])[:16]
    parts = _about(request, namespace, retained)
    return stable_hash(parts if parts[-1] else [*parts, retained.hmac.hex()])[:16]


def _older_key(request: WriteMemory, namespace: Names, retained: Kept) -> bytes | None:
    """Return the key that 0.1 gave a record without an attribute; None for any other."""
    parts = [] if request.is_working else _about(request, namespace, retained)
    return stable_hash(parts)[:16] if parts and not parts[-1] else None


def _about(request: WriteMemory, namespace: Names, retained: Kept) -> list[Any]:
    subject = " ".join(retained.subject.split()).casefold()
    attribute = " ".join(retained.attribute.split()).casefold()
    return ["durable", namespace, retained.scope, request.memory_type, subject, attribute]


def _expires_ns(request: WriteMemory, now_ns: int) -> int | None:
    if request.expires_at is not None:
        return unix_us(request.expires_at) * 1000
    return None if request.ttl_s is None else now_ns + request.ttl_s * _SECOND_NS
