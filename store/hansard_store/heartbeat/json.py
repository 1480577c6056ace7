"""Cycles as programs get them: the same over HTTP and on the command line."""

from __future__ import annotations

from hansard_compiler.calls import Json
from hansard_store.database.read_only_json import own_copy
from hansard_store.heartbeat.cycles import CycleRecord, PhaseRecord
from hansard_store.times import time_text


def cycle_json(one: CycleRecord) -> Json:
    """Return a cycle as programs get it."""
    return {
        "run_id": one.cycle_id,
        "origin": one.origin,
        "started_at": time_text(one.started_ns),
        "ended_at": time_text(one.ended_ns),
        "phases": [phase_json(phase) for phase in one.phases],
    }


def phase_json(one: PhaseRecord) -> Json:
    """Return a phase's result as programs get it."""
    return {
        "name": one.name,
        "status": one.status,
        "step_id": one.step_id,
        "started_at": time_text(one.started_ns),
        "duration_ns": str(one.duration_ns),
        "summary": one.summary,
        "figures": own_copy(dict(one.figures)),
    }
