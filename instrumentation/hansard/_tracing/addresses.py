"""Where in a trace something belongs that is told by run and step, or by their ids."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)

from hansard._runs.run import Run, current_run, open_runs
from hansard._runs.step import Step
from hansard._tracing import context as place

if TYPE_CHECKING:
    from opentelemetry.context import Context

_STEP_ID: Final = re.compile("([0-9a-f]{32})-([0-9a-f]{16})", re.ASCII)


def context_of(run: Run | str | None, step: Step | str | None) -> Context:
    """Return the context in which something of a step is told.

    A run or step by its id may be another process's. What is named by no id that we know belongs to
    the current run, else to the span that is current here.
    """
    found = _run_of(run)
    base = place.current_context() if found is None else found.context()
    if isinstance(step, Step):
        return set_span_in_context(step.span, base) if step.is_recorded else base
    told = _STEP_ID.fullmatch(step or "")
    if told is None:
        return base
    trace_id, span_id = (int(digits, 16) for digits in told.groups())
    if not trace_id or not span_id:
        return base
    flags = get_current_span(base).get_span_context().trace_flags | TraceFlags.SAMPLED
    remote = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return set_span_in_context(NonRecordingSpan(remote), base)


def _run_of(run: Run | str | None) -> Run | None:
    if isinstance(run, Run):
        return run
    if run is None:
        return current_run()
    return next((one for one in open_runs() if one.run_id == run), None)


def address_in(context: Context) -> tuple[str, str] | None:
    """Return run id and step id of a context's span; None where it has none."""
    span = get_current_span(context).get_span_context()
    if not span.is_valid:
        return None
    return f"{span.trace_id:032x}", f"{span.trace_id:032x}-{span.span_id:016x}"
