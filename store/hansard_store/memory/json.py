"""Memory as programs and people read it: one JSON for the API, the SDK and the commands."""

from __future__ import annotations

from hansard_compiler.calls import Json
from hansard_compiler.models.memory import as_compile_record
from hansard_store.database.stored_json import own_copy
from hansard_store.memory.records import Access, Memory
from hansard_store.principals.model import CLAIMED
from hansard_store.times import time_text


def memory_json(one: Memory) -> Json:
    """Return everything that is known of a version of a record."""
    return {
        "memory_id": one.memory_id,
        "memory_type": one.memory_type,
        "layer": "working" if one.is_working else "durable",
        "subject": one.subject,
        "attribute": one.attribute,
        "content": own_copy(one.content),
        "state": one.state,
        "version": one.version,
        "namespace": one.namespace,
        "scope": own_copy(one.scope),
        "run_id": one.run_id,
        "chain": one.chain,
        "slot": one.slot,
        "confidence": one.confidence,
        "freshness_at": time_text(one.freshness_ns),
        "expires_at": time_text(one.expires_ns),
        "created_at": time_text(one.created_ns),
        "last_read_at": time_text(one.last_read_ns or None),
        "reads": one.reads,
        "tags": list(one.tags),
        "metadata": own_copy(one.metadata),
        "writer": one.writer,
        "written_by": one.written_by,
        "written_method": one.written_method,
        "written_principal": one.written_principal,
        "source_run_id": one.source_run_id,
        "source_step_ids": list(one.source_steps),
        "source_run_deleted": one.source_run_deleted,
        "approval_id": one.approval_id,
        "superseded_by": one.superseded_by,
        "contests": one.contests,
        "ended": None
        if one.ended is None
        else {
            "at": time_text(one.ended.time_ns),
            "by": one.ended.by,
            "method": one.ended.method or CLAIMED.method,
            "reason": one.ended.reason,
        },
        "removed": list(one.removed),
        "content_hash": one.content_hmac,
        "freshness_ns": str(one.freshness_ns),
        "created_ns": str(one.created_ns),
        "expires_ns": None if one.expires_ns is None else str(one.expires_ns),
    }


def candidate_json(one: Memory) -> Json:
    """Return a record as a compile takes it."""
    return as_compile_record(memory_json(one))


def access_json(one: Access) -> Json:
    """Return one read or write."""
    return {
        "kind": one.kind,
        "at": time_text(one.time_ns),
        "memory_id": one.memory_id,
        "run_id": one.run_id,
        "step_id": one.step_id,
        "agent": one.agent,
        "origin": one.origin,
        "run_deleted": one.run_is_gone,
    }
