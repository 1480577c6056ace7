"""Runs, steps, hits and sums as bodies of the API (DESIGN §14)."""

from __future__ import annotations

from typing import Final

from hansard_store.annotations.queries import marks_json
from hansard_store.runs.queries import RunItem
from hansard_store.runs.usage import UsageRow
from hansard_store.search.full_text import USES_COUNTED, SearchHit
from hansard_store.steps.queries import StepSkeleton, TreeRow
from hansard_web.api.values import Body, stored_fields, time_text

_RUN: Final = """
    domain user_goal status started_at ended_at started_ns ended_ns duration_ms
    span_count step_count open_count model_calls tool_calls error_count models tokens cost_usd
    conversation_id group_id user_id service_names first_input last_output
    has_receipts pinned synthetic
"""
_STEP: Final = "step_id run_id span_id parent_span_id name role duplicate status start_ns end_ns"
_STEP_FIGURES: Final = "duration_ms tokens cost_usd model tool_name agent_name summary"


def run_body(run: RunItem) -> Body:
    """Return a run as lists show it."""
    return {
        **stored_fields(run, "run_id name kind"),
        "agent": run.agent_name,
        **stored_fields(run, _RUN),
        **marks_json(run.marks),
        "first_seen_seq": run.id,
        "version": run.version,
    }


def skeleton_body(step: StepSkeleton) -> Body:
    """Return what every mention of a step says of it."""
    return {
        **stored_fields(step, _STEP),
        "started_at": time_text(step.start_ns),
        "ended_at": time_text(step.end_ns),
        **stored_fields(step, _STEP_FIGURES),
    }


def row_body(row: TreeRow) -> Body:
    """Return a step with its place in the tree of its run."""
    return {**skeleton_body(row.step), **stored_fields(row, "depth has_children orphan loop")}


def hit_body(hit: SearchHit) -> Body:
    """Return a hit with the step it was found in."""
    return {
        **stored_fields(hit.step, "run_id step_id"),
        "field": hit.field,
        "message_role": hit.role,
        "snippet": hit.snippet.text,
        "highlights": hit.snippet.highlights,
        "uses": hit.uses,
        "uses_truncated": hit.uses >= USES_COUNTED,
        "step": skeleton_body(hit.step),
    }


def usage_body(row: UsageRow) -> Body:
    """Return what one day, model, agent or conversation used."""
    return stored_fields(row, "key runs model_calls tokens cost_usd")
