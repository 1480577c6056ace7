"""Runs told step by step: for agent back ends that no decorator fits.

    run = hansard.start_run(agent_name="clerk", domain="support", user_goal="Refund order 7")
    hansard.record_tool_call("find_order", {"id": 7}, call_id="c1")
    hansard.record_tool_result("find_order", {"total": 12}, call_id="c1")
    hansard.end_run(output="Refunded.")

The functions without a run in their name work on the current one, `current_run()`.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry import baggage
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Link, get_current_span, set_span_in_context

from hansard import semconv
from hansard._runs.run import Run, current_run, open_runs
from hansard._runs.step import Step
from hansard._runs.tool_steps import ToolSteps
from hansard._runtime import recorder as _state
from hansard._runtime.durations import Duration
from hansard._runtime.recorder import active
from hansard._tracing import context as place
from hansard._tracing.attributes import run_attributes, run_name
from hansard._tracing.metadata import text_or_none
from hansard._tracing.open_span import OpenSpan, quietly
from hansard._tracing.outcome import Outcome
from hansard._tracing.propagation import MAX_BAGGAGE_CHARS
from hansard._tracing.serialization import to_json

# Told where no run is current: in a decorated agent, or in a span of someone else.
_outside = ToolSteps(place.current_context)
_registered = False


def start_run(
    agent_name: str | None = None,
    domain: str | None = None,
    user_goal: str | None = None,
    *,
    conversation_id: str | None = None,
    user_id: str | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    nest: bool = False,
) -> Run:
    """Begin a run and make it the current one of this thread or task. Never raises.

    It is a trace of its own, linked to the span that is current here; with `nest` it is a child of
    that span, as a sub-agent is. Without a `conversation_id` it takes the one of the run it began
    in. End it with `end()`, `end_run()`, or a `with` or `async with` block.
    """
    recorder = active()
    outer = place.current_context()
    agent_name = text_or_none(agent_name)
    conversation_id = text_or_none(conversation_id) or _conversation_of(outer)
    if conversation_id is not None:
        conversation_id = conversation_id[:MAX_BAGGAGE_CHARS]
    made = None
    if recorder is not None:
        with quietly("start"):
            made = OpenSpan(
                recorder,
                run_name(agent_name),
                context=outer if nest else set_span_in_context(INVALID_SPAN, outer),
                links=() if nest else _links_to(outer),
                attributes=run_attributes(
                    recorder,
                    agent_name=agent_name,
                    domain=domain,
                    conversation_id=conversation_id,
                    user_id=user_id,
                    tags=tags,
                    metadata=metadata,
                ),
            )
    if made is not None and user_goal is not None:
        made.keep_text(semconv.RUN_GOAL, _goal_of(user_goal))
    _register_once()
    run = Run(made, agent_name=agent_name, conversation_id=conversation_id, base=outer)
    return run.enter()


def record_tool_call(
    name: str,
    arguments: Any = None,
    *,
    call_id: str | None = None,
    type: str | None = None,
    description: str | None = None,
) -> Step:
    """Tell that a tool is called: see `Run.record_tool_call`."""
    return _tools().call(name, arguments, call_id=call_id, type=type, description=description)


def record_tool_result(
    name: str | None = None,
    result: Any = None,
    *,
    call_id: str | None = None,
    arguments: Any = None,
    error: BaseException | str | None = None,
    status: str | None = None,
    duration_s: Duration | None = None,
) -> Step:
    """Tell what a tool gave: see `Run.record_tool_result`."""
    return _tools().result(
        name,
        result,
        call_id=call_id,
        arguments=arguments,
        error=error,
        status=status,
        duration_s=duration_s,
    )


def end_run(
    *,
    status: str | None = None,
    output: Any = None,
    error: BaseException | str | None = None,
) -> None:
    """End the current run: see `Run.end`. Where there is none, nothing happens."""
    run = current_run()
    if run is not None:
        run.end(status=status, output=output, error=error)


def close_open_runs() -> None:
    """End the runs that the program left open: failed with what ended the program, else cancelled.

    In an interactive session the last exception is not the end of the program.
    """
    error = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    for run in open_runs():
        run.leave_open(error)
    _outside.close(Outcome("cancelled"))


def _goal_of(told: object) -> str:
    """Return the goal as it is, whatever its length; of what is no text, its JSON."""
    return told if type(told) is str else to_json(told)


def _tools() -> ToolSteps:
    run = current_run()
    return _outside if run is None else run.tools


def _conversation_of(context: Context) -> str | None:
    told = baggage.get_baggage(semconv.CONVERSATION_ID, context)
    return told if isinstance(told, str) else None


def _links_to(context: Context) -> Sequence[Link]:
    caller = get_current_span(context).get_span_context()
    return (Link(caller, {semconv.LINK_TYPE: "caller"}),) if caller.is_valid else ()


def _register_once() -> None:
    global _registered
    if not _registered:
        _registered = True
        # After `init()` registered its own: called before it, so that the spans are still sent.
        atexit.register(close_open_runs)
        _state.before_shutdown.append(close_open_runs)
