"""Which agent is at work: the innermost decorated function or run around what happens.

Kept in OpenTelemetry's context beside the span, so it goes wherever spans find their parent: into
tasks, into threads that are given the context, and back out of a nested agent.
"""

from __future__ import annotations

from typing import Final

from opentelemetry import context as otel
from opentelemetry.context import Context

from hansard._tracing import context as place

_AGENT: Final = otel.create_key("hansard-agent")


def with_agent(name: str, context: Context) -> Context:
    """Return the context with this agent at work in it."""
    return otel.set_value(_AGENT, name, context)


def current_agent() -> str | None:
    """Return the name of the agent at work in this thread or task; None where there is none."""
    name = otel.get_value(_AGENT, place.current_context())
    return name if isinstance(name, str) else None
