"""`hansard.span()`: a span around a block of code, and what may be said of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from opentelemetry.trace import Span

from hansard import semconv
from hansard._decorators.capture import Kind
from hansard._runtime import recorder as _state
from hansard._tracing.context import EnteredEitherWay, address_of
from hansard._tracing.observation import UNRECORDED, Observation, begin


class SpanHandle(EnteredEitherWay):
    """A step around a `with` or `async with` block, which it records.

    An exception that leaves the block is recorded and goes on. Without `init()` every method does
    nothing.
    """

    __module__ = "hansard"  # where programs find it

    __slots__ = ("_attributes", "_input", "_kind", "_name", "_observed")

    def __init__(
        self,
        name: str,
        *,
        kind: Kind = "chain",
        input: Any = None,
        attributes: Mapping[str, object] | None = None,
    ) -> None:
        self._name = name
        self._kind = kind
        self._input = input
        self._attributes = attributes
        self._observed: list[Observation] = []  # one for each `with` that is open

    def __enter__(self) -> Self:
        recorder = _state.active()
        known = {semconv.KIND: self._kind, semconv.HANSARD_SCHEMA_VERSION: semconv.SCHEMA_VERSION}
        observed = None if recorder is None else begin(recorder, self._name, known)
        self._observed.append(observed or UNRECORDED)
        if self._attributes:
            self.set_attributes(self._attributes)
        if self._input is not None:
            self.set_input(self._input)
        self._current().enter()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        observed = self._observed.pop() if self._observed else UNRECORDED
        observed.__exit__(kind, error, trace)
        observed.end()

    # ---- what may be said

    @property
    def otel(self) -> Span:
        """OpenTelemetry's span; one that records nothing if none is open."""
        return self._current().span

    @property
    def step_id(self) -> str:
        """The step's id in Hansard, `<trace_id>-<span_id>`; empty where no span is open."""
        address = address_of(self.otel)
        return "" if address is None else address[1]

    def set_attribute(self, key: str, value: object) -> None:
        """Set an attribute; secrets are cut out of it, and what is no attribute value is JSON."""
        self._current().set_attribute(key, value)

    def set_attributes(self, attributes: Mapping[str, object]) -> None:
        """Set several attributes."""
        for key, value in attributes.items():
            self.set_attribute(key, value)

    def set_input(self, value: Any) -> None:
        """Record the step's input, like the arguments of a decorated function."""
        self._current().put(semconv.INPUT, value)

    def set_output(self, value: Any) -> None:
        """Record the step's output, like the result of a decorated function."""
        self._current().put(semconv.OUTPUT, value)

    def add_event(self, name: str, attributes: Mapping[str, object] | None = None) -> None:
        """Record something that happened now."""
        self._current().add_event(name, attributes or {})

    def record_error(self, error: BaseException) -> None:
        """Record an exception that the block handles itself: the step has not failed."""
        self._current().add_error(error)

    def _current(self) -> Observation:
        return self._observed[-1] if self._observed else UNRECORDED


span = SpanHandle  # programs write `with hansard.span(…)`
