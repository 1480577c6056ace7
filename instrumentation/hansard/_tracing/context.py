"""Where new spans go: entering and leaving a place in OpenTelemetry's context.

A run may end in another function, task or thread than it began in, where the token of
`context.attach` is of no use. So a place remembers what was before it, and leaving restores that
wherever the place, or one inside it, is the current one. A thread that another one left behind in a
place finds out when it asks for the current context here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from opentelemetry import context as otel
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span

from hansard._tracing import context as place

_PLACE: Final = otel.create_key("hansard-place")


# Of frameworks that keep their steps beside OpenTelemetry's context: the span of the current one.
_step_spans: Final[list[Callable[[], Span | None]]] = []


@dataclass(slots=True, eq=False)
class Place:
    """A context that was entered, and the one it was entered from."""

    before: Context
    outer: Place | None
    is_left: bool = False


def current_context() -> Context:
    """Return the current context, after going back from places that were left elsewhere."""
    place = _current_place()
    if place is None or not place.is_left:
        return otel.get_current()
    while place.outer is not None and place.outer.is_left:
        place = place.outer
    otel.attach(place.before)
    return place.before


def inside_of(step_span: Callable[[], Span | None]) -> None:
    """Ask a framework, from now on, for the span of the step that runs; None: it runs none here."""
    _step_spans.append(step_span)


def parent_context() -> Context:
    """Return the context that a new span belongs into: the current one, or a framework's step."""
    context = current_context()
    for step_span in _step_spans:
        span = step_span()
        if span is not None:
            return trace.set_span_in_context(span, context)
    return context


def enter(context: Context) -> Place:
    """Make a context the current one until `leave`."""
    before = current_context()
    place = Place(before, _current_place())
    otel.attach(otel.set_value(_PLACE, place, context))
    return place


def leave(place: Place) -> None:
    """Go back to before a place; where it is not among the current ones, that happens later."""
    place.is_left = True
    current = _current_place()
    while current is not None and current is not place:
        current = current.outer
    if current is place:
        otel.attach(place.before)


@contextmanager
def entered(context: Context) -> Iterator[None]:
    """Make a context the current one for a `with` block."""
    place = enter(context)
    try:
        yield
    finally:
        leave(place)


def _current_place() -> Place | None:
    place = otel.get_value(_PLACE)
    return place if isinstance(place, Place) else None


class EnteredEitherWay(ABC):
    """Gives `async with` to a class that says what `with` does."""

    __slots__ = ()

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)


_AGENT: Final = otel.create_key("hansard-agent")


def with_agent(name: str, context: Context) -> Context:
    """Return the context with this agent at work in it."""
    return otel.set_value(_AGENT, name, context)


def current_agent() -> str | None:
    """Return the name of the agent at work in this thread or task; None where there is none."""
    name = otel.get_value(_AGENT, place.current_context())
    return name if isinstance(name, str) else None
