"""The headline figures of runs and steps, by the names that `diff.headline` knows."""

from __future__ import annotations

from hansard_compiler.diff.explanations import Figure, cache_share
from hansard_store.runs.queries import RunItem
from hansard_store.runs.status import TokenSums
from hansard_store.steps.queries import StepSkeleton

_NS_PER_MS = 1_000_000
_NANO = 1_000_000_000


def run_figures(run: RunItem) -> dict[str, Figure]:
    """Return the figures of a run; None is unknown."""
    return {
        "status": run.status,
        "cost_usd": run.cost_usd,
        "duration_ms": None if run.duration_ns is None else run.duration_ns / _NS_PER_MS,
        **_tokens(run.tokens),
        "steps": run.step_count,
        "model_calls": run.model_calls,
        "tool_calls": run.tool_calls,
        "errors": run.error_count,
    }


def step_figures(step: StepSkeleton, *, model: str | None) -> dict[str, Figure]:
    """Return the figures of a step; None is unknown."""
    return {
        "status": "ok" if step.status == "unset" else step.status,
        "model": model,
        "cost_usd": None if step.cost_usd_nano is None else step.cost_usd_nano / _NANO,
        "duration_ms": None if step.duration_ns is None else step.duration_ns / _NS_PER_MS,
        **_tokens(step.tokens),
    }


def _tokens(tokens: TokenSums | None) -> dict[str, Figure]:
    sums = tokens or TokenSums()
    return {
        "tokens.input": sums.input,
        "tokens.output": sums.output,
        "tokens.reasoning": sums.reasoning,
        "cache_share": cache_share(sums.cache_read, sums.input),
    }
