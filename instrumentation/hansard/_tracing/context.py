"""The current OpenTelemetry context: entering and leaving one, and which agent is at work in it.

A run may end in another function, task or thread than it began in, where the token of
`context.attach` is of no use. So an entered context remembers the one before it, and leaving
restores that if it, or a context entered inside it, is the current one. A thread whose current
context was left by another thread finds out when it reads the current context here.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

from opentelemetry import context as otel
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, TraceFlags

_ENTERED: Final = otel.create_key("hansard-entered")
_STEP_ID: Final = re.compile("([0-9a-f]{32})-([0-9a-f]{16})", re.ASCII)

# Of frameworks that keep their steps beside OpenTelemetry's context: the span of the current one.
_step_spans: Final[list[Callable[[], Span | None]]] = []


@dataclass(slots=True, eq=False)
class EnteredContext:
    """A context that was entered, and the one it was entered from."""

    before: Context
    outer: EnteredContext | None
    is_left: bool = False


def current_context() -> Context:
    """Return the current context, after going back from those that another thread left."""
    entry = _current_entry()
    if entry is None or not entry.is_left:
        return otel.get_current()
    while entry.outer is not None and entry.outer.is_left:
        entry = entry.outer
    otel.attach(entry.before)
    return entry.before


def inside_of(step_span: Callable[[], Span | None]) -> None:
    """Ask a framework, from now on, for the span of the step that runs; None: it runs none here."""
    _step_spans.append(step_span)


def parent_context() -> Context:
    """Return the parent context of a new span: the current one, or a framework's step."""
    context = current_context()
    for step_span in _step_spans:
        span = step_span()
        if span is not None:
            return trace.set_span_in_context(span, context)
    return context


def enter(context: Context) -> EnteredContext:
    """Make a context the current one until `leave`."""
    before = current_context()
    entry = EnteredContext(before, _current_entry())
    otel.attach(otel.set_value(_ENTERED, entry, context))
    return entry


def leave(entry: EnteredContext) -> None:
    """Restore the context from before; if it is not a current one here, that happens later."""
    entry.is_left = True
    current = _current_entry()
    while current is not None and current is not entry:
        current = current.outer
    if current is entry:
        otel.attach(entry.before)


@contextmanager
def entered(context: Context) -> Iterator[None]:
    """Make a context the current one for a `with` block."""
    entry = enter(context)
    try:
        yield
    finally:
        leave(entry)


def _current_entry() -> EnteredContext | None:
    entry = otel.get_value(_ENTERED)
    return entry if isinstance(entry, EnteredContext) else None


class EnteredEitherWay(ABC):
    """Gives `async with` to a class that says what `with` does."""

    __slots__ = ()

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None: ...

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)


def address_of(span: Span) -> tuple[str, str] | None:
    """Return run id and step id of a span; None where it has none."""
    found = span.get_span_context()
    if not found.is_valid:
        return None
    run_id = f"{found.trace_id:032x}"
    return run_id, f"{run_id}-{found.span_id:016x}"


def remote_step(step_id: str | None, flags: int = TraceFlags.SAMPLED) -> SpanContext | None:
    """Return the span of a step by its id, perhaps another process's; None for no id of one."""
    match = _STEP_ID.fullmatch(step_id or "")
    if match is None:
        return None
    trace_id, span_id = (int(digits, 16) for digits in match.groups())
    remote = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return remote if remote.is_valid else None


_AGENT: Final = otel.create_key("hansard-agent")


def with_agent(name: str, context: Context) -> Context:
    """Return the context with this agent at work in it."""
    return otel.set_value(_AGENT, name, context)


def current_agent() -> str | None:
    """Return the name of the agent at work in this thread or task; None where there is none."""
    name = otel.get_value(_AGENT, current_context())
    return name if isinstance(name, str) else None
