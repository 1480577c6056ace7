"""Runs, steps, hits and sums as bodies of the API (DESIGN §14)."""

from __future__ import annotations

from hansard_store.annotations.queries import marks_json
from hansard_store.runs.queries import RunItem
from hansard_store.runs.usage import UsageRow
from hansard_store.search.full_text import USES_COUNTED, SearchHit
from hansard_store.steps.queries import StepSkeleton, TreeRow
from hansard_web.api.values import Body, milliseconds, ns_text, time_text, tokens_body, usd


def run_body(run: RunItem) -> Body:
    """Return a run as lists show it."""
    return {
        "run_id": run.run_id,
        "name": run.name,
        "kind": run.kind,
        "agent": run.agent_name,
        "domain": run.domain,
        "user_goal": run.user_goal,
        "status": run.status,
        "started_at": time_text(run.started_ns),
        "ended_at": time_text(run.ended_ns),
        "started_ns": ns_text(run.started_ns),
        "ended_ns": ns_text(run.ended_ns),
        "duration_ms": milliseconds(run.duration_ns),
        "span_count": run.span_count,
        "step_count": run.step_count,
        "open_count": run.open_count,
        "model_calls": run.model_calls,
        "tool_calls": run.tool_calls,
        "error_count": run.error_count,
        "models": list(run.models),
        "tokens": tokens_body(run.tokens),
        "cost_usd": run.cost_usd,
        "conversation_id": run.conversation_id,
        "group_id": run.group_id,
        "user_id": run.user_id,
        "service_names": list(run.service_names),
        "first_input": run.first_input,
        "last_output": run.last_output,
        "has_receipts": run.has_receipts,
        "pinned": run.pinned,
        "synthetic": run.synthetic,
        **marks_json(run.marks),
        "first_seen_seq": run.id,
        "version": run.version,
    }


def skeleton_body(step: StepSkeleton) -> Body:
    """Return what every mention of a step says of it."""
    return {
        "step_id": step.step_id,
        "run_id": step.run_id,
        "span_id": step.span_id,
        "parent_span_id": step.parent_span_id,
        "name": step.name,
        "role": step.role,
        "duplicate": step.duplicate,
        "status": step.status,
        "start_ns": ns_text(step.start_ns),
        "end_ns": ns_text(step.end_ns),
        "started_at": time_text(step.start_ns),
        "ended_at": time_text(step.end_ns),
        "duration_ms": milliseconds(step.duration_ns),
        "tokens": tokens_body(step.tokens),
        "cost_usd": usd(step.cost_usd_nano),
        "model": step.model,
        "tool_name": step.tool_name,
        "agent_name": step.agent_name,
        "summary": step.summary,
    }


def row_body(row: TreeRow) -> Body:
    """Return a step with its place in the tree of its run."""
    return {
        **skeleton_body(row.step),
        "depth": row.depth,
        "has_children": row.has_children,
        "orphan": row.orphan,
        "loop": row.loop,
    }


def hit_body(hit: SearchHit) -> Body:
    """Return a hit with the step it was found in."""
    return {
        "run_id": hit.step.run_id,
        "step_id": hit.step.step_id,
        "field": hit.field,
        "message_role": hit.role,
        "snippet": hit.snippet.text,
        "highlights": [list(span) for span in hit.snippet.highlights],
        "uses": hit.uses,
        "uses_truncated": hit.uses >= USES_COUNTED,
        "step": skeleton_body(hit.step),
    }


def usage_body(row: UsageRow) -> Body:
    """Return what one day, model, agent or conversation used."""
    return {
        "key": row.key,
        "runs": row.runs,
        "model_calls": row.model_calls,
        "tokens": tokens_body(row.tokens),
        "cost_usd": usd(row.cost_usd_nano),
    }
