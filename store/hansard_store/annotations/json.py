"""Annotations as programs read them: one JSON for the API, the commands and exports."""

from __future__ import annotations

import apsw

from hansard_compiler.calls import Json
from hansard_store.annotations.queries import RunMarks, standing_on
from hansard_store.annotations.rows import Annotation, Target
from hansard_store.database.stored_json import own_copy
from hansard_store.times import time_text

_MOST = 1_000


def annotation_json(one: Annotation) -> Json:
    """Return everything that is known of an annotation."""
    row = one.row
    is_score = row.kind == "score"
    return {
        "annotation_id": one.annotation_id,
        "run_id": one.run_id,
        "step_id": one.step_id,
        "kind": row.kind,
        "name": row.name or None,
        "score": {"value": row.value, "label": row.label} if is_score else None,
        "explanation": row.text if is_score else None,
        "text": row.text if row.kind == "note" else None,
        "expected": own_copy(row.expected),
        "source": row.source,
        "author": row.author or None,
        "origin": row.origin,
        "created_at": time_text(row.created_ns),
        "created_ns": str(row.created_ns),
        "state": one.state,
        "ended": None
        if row.ended_ns is None
        else {
            "at": time_text(row.ended_ns),
            "ns": str(row.ended_ns),
            "by": row.ended_by or None,
            "reason": row.ended_reason,
        },
        "removed": list(row.removed),
    }


def standing_json(connection: apsw.Connection, target: Target) -> list[Json]:
    """Return what stands on one run or step, the oldest first."""
    found = standing_on(connection, target, limit=_MOST)
    return [annotation_json(one) for one in reversed(found)]


def marks_json(marks: RunMarks) -> Json:
    """Return what lists of runs say of annotations."""
    return {
        "tags": list(marks.tags),
        "scores": [
            {"name": one.name, "value": one.value, "label": one.label, "count": one.count}
            for one in marks.scores
        ],
    }
