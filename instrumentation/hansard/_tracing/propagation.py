"""Context that crosses HTTP and processes: W3C `traceparent`, `tracestate` and `baggage`.

The propagators are OpenTelemetry's global ones, so `OTEL_PROPAGATORS` holds. Baggage carries the
run's id and its conversation, and spans take the conversation from there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol

from opentelemetry import baggage
from opentelemetry.context import Context

from hansard import semconv
from hansard._runtime.warnings import warn_once
from hansard._tracing.context import current_context, enter, entered
from hansard._tracing.serialization import safe_repr

if TYPE_CHECKING:
    from opentelemetry.trace import Span

MAX_BAGGAGE_CHARS: Final = 256  # of baggage: it goes out with every instrumented request
CONTINUE: Final = "HANSARD_CONTINUE_TRACE"  # has `init()` of a child go on with the trace


class HasItems(Protocol):
    """A mapping, or an object like one, such as `email.message.Message`."""

    def items(self) -> Iterable[tuple[Any, Any]]: ...


Headers = HasItems | Iterable[tuple[Any, Any]]


def inject(
    headers: MutableMapping[str, str] | None = None, *, context: Context | None = None
) -> MutableMapping[str, str]:
    """Write the current context into headers, new ones by default, and return them."""
    from opentelemetry import propagate

    carrier = {} if headers is None else headers
    propagate.inject(carrier, context=context)
    return carrier


def extract(headers: Headers) -> AbstractContextManager[None]:
    """Continue the trace that incoming headers name, for a `with` block.

    Takes a mapping or pairs, of text or bytes, in any case. Headers that name none, or nonsense,
    change nothing.
    """
    return entered(context_of(headers))


def context_of(headers: Headers) -> Context:
    """Return the current context with that of another process from its headers."""
    from opentelemetry import propagate

    current = current_context()
    try:
        pairs = headers.items() if hasattr(headers, "items") else headers
        lower = {_text(name).lower(): _text(value) for name, value in pairs}
        return propagate.extract(lower, context=current)
    except Exception as error:
        warn_once("headers", "headers of an incoming request cannot be read: %s", safe_repr(error))
        return current


def child_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a child process, with the current context in it.

    A child that calls `hansard.init()` goes on where this process is. Without an argument it is
    this process's environment. Where no span is current, nothing is added.
    """
    variables = dict(os.environ if environment is None else environment)
    named = inject()
    if not named:
        return variables
    names = _environment_names()
    for stale in names:
        variables.pop(stale, None)
    return (
        variables
        | {env: named[key] for env, key in names.items() if key in named}
        | {CONTINUE: "true"}
    )


def continue_environment(environment: Mapping[str, str] | None = None) -> None:
    """Make the context that the environment names the one of this thread, and those it starts."""
    variables = os.environ if environment is None else environment
    named = {key: variables[env] for env, key in _environment_names().items() if env in variables}
    if named:
        enter(context_of(named))


def with_run(context: Context, *, run_id: str, conversation_id: str | None) -> Context:
    """Return a context whose baggage names a run and its conversation."""
    context = baggage.set_baggage(semconv.BAGGAGE_RUN_ID, run_id, context)
    if conversation_id:
        value = conversation_id[:MAX_BAGGAGE_CHARS]
        context = baggage.set_baggage(semconv.CONVERSATION_ID, value, context)
    return context


def inherit(span: Span, parent: Context | None) -> None:
    """Give a span that starts the conversation of its run, whichever library starts it."""
    conversation = baggage.get_baggage(semconv.CONVERSATION_ID, parent)
    if not isinstance(conversation, str) or not span.is_recording():
        return
    attributes = getattr(span, "attributes", None) or {}
    if semconv.CONVERSATION_ID not in attributes:
        span.set_attribute(semconv.CONVERSATION_ID, conversation[:MAX_BAGGAGE_CHARS])


def _environment_names() -> dict[str, str]:
    """Return the variable of each header that a propagator writes: TRACEPARENT, BAGGAGE, …"""
    from opentelemetry import propagate

    fields = propagate.get_global_textmap().fields
    return {field.upper().replace("-", "_"): field for field in sorted(fields)}


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
