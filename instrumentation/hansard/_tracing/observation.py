"""One span around one piece of the program's work: begun, entered, left and ended.

Nothing here raises into the program: what goes wrong is logged once, and the work goes on without
its span. The exception of the program itself is looked at and never touched.
"""

from __future__ import annotations

import hashlib
import os
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Token
from typing import TYPE_CHECKING, Any, Final, cast

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    Span,
    SpanKind,
    Status,
    StatusCode,
    set_span_in_context,
)
from opentelemetry.util.types import AttributeValue

from hansard import semconv
from hansard._runtime.warnings import warn_once
from hansard._tracing.context import parent_context, with_agent
from hansard._tracing.serialization import attribute_number, safe_repr, safe_str, to_json, type_name
from hansard_compiler.retention_modes import RetentionMode

if TYPE_CHECKING:
    from hansard._runtime.recorder import Recorder

INLINE_BYTES = 1024  # UTF-8; up to there content stands in its attribute
_MAX_MESSAGE_CHARS = 4_096
_MAX_STACKTRACE_CHARS = 32_768
_MAX_LOOKED_AT_CHARS = 1 << 20
# By name: importing asyncio takes as long as all else that is imported here.
_CANCELLATIONS = frozenset({("asyncio", "CancelledError"), ("trio", "Cancelled")})


class Observation:
    """A span that is open, and the context in which its work runs."""

    __slots__ = ("_context", "_ended", "_pid", "_token", "recorder", "span")

    def __init__(self, recorder: Recorder, span: Span) -> None:
        self.recorder = recorder
        self._ended = False
        self._pid = os.getpid()
        self.span = span
        self._context: Context = set_span_in_context(span)
        self._token: Token[Context] | None = None

    @property
    def is_recording(self) -> bool:
        """Whether the span records anything; False when it was not sampled."""
        return self.span.is_recording()

    # ---- where the span is the current one

    def name_agent(self, name: str) -> None:
        """Have the work of the span be that of this agent; before `enter`."""
        self._context = with_agent(name, self._context)

    def enter(self) -> None:
        """Make the span the parent of what the program does next."""
        self._token = otel_context.attach(self._context)

    def leave(self) -> None:
        """Give back the context that was there before `enter`."""
        token, self._token = self._token, None
        if token is None:
            return
        try:
            token.var.reset(token)
        except (ValueError, RuntimeError):
            # Left in another context than entered: a coroutine or generator that was closed from
            # elsewhere. That context never had this span, so there is nothing to give back; the
            # `detach` of OpenTelemetry would log an error with a traceback.
            return
        except AttributeError:  # a context of another kind (OTEL_PYTHON_CONTEXT)
            otel_context.detach(token)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make the span the current one in a block."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    # Around the work itself: what it raises ends the span as failed, or cancelled.
    __enter__ = enter

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.leave()
        if error is not None:
            self.fail(error)

    def pause(self) -> None:
        """Leave, and remember what is current now: the spans that a generator holds open."""
        self._context = otel_context.get_current()
        self.leave()

    # ---- what happened

    def put(self, key: str, value: Any) -> None:
        """Keep a value under this attribute, as JSON, in the way the retention mode allows."""
        if self.span.is_recording():
            try:
                most = self.recorder.settings.capture_max_bytes
                put_content(self.recorder, self.span, key, to_json(value, max_bytes=most))
            except Exception as error:
                log_failure("capture", error)

    def put_text(self, key: str, text: str) -> None:
        """Keep content that is JSON text already."""
        if self.span.is_recording():
            try:
                put_content(self.recorder, self.span, key, text)
            except Exception as error:
                log_failure("capture", error)

    @property
    def most_bytes(self) -> int:
        """The most bytes of content of one attribute."""
        return self.recorder.settings.capture_max_bytes

    def set_attribute(self, key: str, value: object) -> None:
        """Set an attribute as the retention mode lets it out; other values become JSON."""
        if self.span.is_recording():
            try:
                self.span.set_attribute(key, clean_attribute(self.recorder, key, value))
            except Exception as error:
                log_failure("attribute", error)

    def add_event(self, name: str, attributes: Mapping[str, object]) -> None:
        """Add an event, its attributes as the retention mode lets them out."""
        if self.span.is_recording():
            add_event(self.recorder, self.span, name, attributes)

    def add_error(self, error: BaseException) -> None:
        """Record an exception that the program handled: an event, and no status."""
        try:
            if self.span.is_recording():
                self.span.add_event(semconv.EVENT_EXCEPTION, exception_event(self.recorder, error))
        except Exception as trouble:
            log_failure("exception", trouble)

    def fail(self, error: BaseException) -> None:
        """Record how the work failed, or that it was cancelled, and end the span."""
        try:
            if self.span.is_recording():
                add_error(self.recorder, self.span, error)
        except Exception as trouble:
            log_failure("exception", trouble)
        self.end()

    def cancel(self) -> None:
        """Record that the work was abandoned, and end the span."""
        if not self._ended:
            self.span.set_attribute(semconv.CANCELLED, True)
            self.end()

    def end(self) -> None:
        """End the span; once."""
        if self._ended:
            return
        self._ended = True
        if self._pid != os.getpid():
            return  # a fork's copy: the parent still has the span, and ends it
        try:
            self.span.end()
        except Exception as error:
            log_failure("end", error)

    def __del__(self) -> None:
        # A generator that is dropped half-way after its event loop is gone is never notified.
        if not self._ended:
            self.cancel()


class _Unrecorded(Observation):
    """Work that is not recorded: nothing is entered, and nothing kept."""

    __slots__ = ()

    def __init__(self) -> None:
        self._ended = True
        self._token = None
        self.span = INVALID_SPAN

    def enter(self) -> None: ...
    def pause(self) -> None: ...

    __enter__ = enter


UNRECORDED: Final = _Unrecorded()


def begin(
    recorder: Recorder,
    name: str,
    attributes: Mapping[str, AttributeValue],
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    links: Sequence[Link] = (),
) -> Observation | None:
    """Start a span; None when that failed, which is logged."""
    try:
        # A run that ended in another thread is not this one's place any more.
        context = parent_context()
        span = recorder.tracer.start_span(name, context, kind, attributes, links)
        return Observation(recorder, span)
    except Exception as error:
        log_failure("span", error)
        return None


def put_content(recorder: Recorder, span: Span, key: str, text: str) -> None:
    """Set content on a span as the retention mode allows: by value up to 1 KiB, else by reference.

    By reference: `<key>_ref` with the digest, `<key>_size` in bytes. In metadata_only the size
    alone. Without a payload store (a recorder of a test) all of it is in the attribute.
    """
    if not span.is_recording():
        return
    data = text.encode("utf-8", "backslashreplace")
    mode = recorder.settings.retention
    if mode is RetentionMode.REDACTED_PAYLOADS:
        data = recorder.redactor.redact_bytes(data, key=key).data
    if mode is not RetentionMode.METADATA_ONLY:
        if len(data) <= INLINE_BYTES or recorder.payloads is None:
            span.set_attribute(key, data.decode())
            return
        ref = recorder.payloads.put(data, media_type="application/json", is_clean=True)
        if ref:
            span.set_attribute(key + semconv.REF_SUFFIX, ref)
    span.set_attribute(key + semconv.SIZE_SUFFIX, len(data))


def put_bytes(recorder: Recorder, data: bytes, media_type: str) -> str:
    """Keep bytes and return their reference; empty where nothing is stored."""
    return "" if recorder.payloads is None else recorder.payloads.put(data, media_type=media_type)


def is_exact(ref: str, data: bytes) -> bool:
    """Whether a reference names these very bytes: nothing was cut out of them."""
    return ref == f"sha256:{hashlib.sha256(data).hexdigest()}"


def put_exact(recorder: Recorder, span: Span, key: str, data: bytes, media_type: str) -> str:
    """Keep exact bytes, and name them on a span; it says where a secret was cut out of them."""
    ref = put_bytes(recorder, data, media_type)
    if ref:
        span.set_attribute(key + semconv.PAYLOAD_REF, ref)
        if not is_exact(ref, data):
            span.set_attribute(key + semconv.PAYLOAD_REDACTED, True)
    return ref


def add_event(recorder: Recorder, span: Span, name: str, attributes: Mapping[str, object]) -> None:
    """Add an event to a span, its attributes as the retention mode lets them out; never raises."""
    try:
        clean = {key: clean_attribute(recorder, key, value) for key, value in attributes.items()}
        span.add_event(name, clean)
    except Exception as error:
        log_failure("event", error)


def clean_attribute(recorder: Recorder, key: str, value: object) -> AttributeValue:
    """Return an attribute's value as the retention mode lets it out."""
    if isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return attribute_number(value)
    if isinstance(value, list | tuple) and value:
        kind = type(value[0])
        if kind in (bool, float) and all(type(item) is kind for item in value):
            return cast(AttributeValue, list(value))
        if kind is int and all(type(item) is int for item in value):
            numbers = [attribute_number(item) for item in value]
            is_plain = all(type(number) is int for number in numbers)
            return cast(AttributeValue, numbers if is_plain else [str(item) for item in numbers])
        if kind is str and all(type(item) is str for item in value):
            return [_clean(recorder, item, key) for item in value]
    return _clean(recorder, value if type(value) is str else to_json(value), key)


def _clean(recorder: Recorder, text: str, key: str) -> str:
    mode = recorder.settings.retention
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    if mode is RetentionMode.METADATA_ONLY and not _is_metadata(key, text):
        return f"‹withheld:{len(text.encode())}›"
    if mode is RetentionMode.FULL_PAYLOADS:
        return text
    return recorder.redactor.redact_text(text, key=key).text


def _is_metadata(key: str, text: str) -> bool:
    # Imported here: who does not use this mode need not wait for its tables.
    from hansard_compiler.redaction.metadata_keys import KeyKind, kind_of
    from hansard_compiler.redaction.metadata_only import looks_like_metadata

    return kind_of(key) is KeyKind.NAME and looks_like_metadata(text)


# ---- exceptions


def is_cancellation(error: BaseException) -> bool:
    """Whether the work was cancelled rather than failed: by a task, a generator, a person.

    A group is a cancellation where all that is in it is one.
    """
    return all(
        isinstance(one, GeneratorExit | KeyboardInterrupt) or is_named(one, _CANCELLATIONS)
        for one in leaves(error)
    )


def is_named(error: BaseException, names: frozenset[tuple[str, str]]) -> bool:
    """Whether an error is of one of these classes, by package and name: none is imported."""
    return any(
        (kind.__module__.partition(".")[0], kind.__name__) in names for kind in type(error).__mro__
    )


def leaves(error: BaseException) -> list[BaseException]:
    """Return the errors of a group that are no groups, however deep; of any other error itself."""
    found, left = [], [error]
    while left:
        one = left.pop()
        if isinstance(one, BaseExceptionGroup):
            left += one.exceptions
        else:
            found.append(one)
    return found


def add_error(recorder: Recorder, span: Span, error: BaseException) -> None:
    """Write an exception onto a span: an event, `error.type` and status ERROR.

    A cancellation is not an error: it sets `hansard.cancelled` and no status. `sys.exit()` without
    a failure is neither.
    """
    if is_cancellation(error):
        span.set_attribute(semconv.CANCELLED, True)
        return
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return
    event = exception_event(recorder, error)
    kind, message = str(event[semconv.EXCEPTION_TYPE]), event.get(semconv.EXCEPTION_MESSAGE)
    span.add_event(semconv.EVENT_EXCEPTION, event)
    span.set_attribute(semconv.ERROR_TYPE, kind)
    span.set_status(Status(StatusCode.ERROR, f"{kind}: {message}" if message else kind))


def exception_event(recorder: Recorder, error: BaseException) -> dict[str, AttributeValue]:
    """Return the attributes of an `exception` event; the type alone in `metadata_only`."""
    event: dict[str, AttributeValue] = {semconv.EXCEPTION_TYPE: type_name(type(error))}
    if recorder.settings.retention is RetentionMode.METADATA_ONLY:
        return event
    message, stack = safe_str(error), _stacktrace_of(error)
    event[semconv.EXCEPTION_MESSAGE] = _cleaned_text(recorder, message, _MAX_MESSAGE_CHARS)
    event[semconv.EXCEPTION_STACKTRACE] = _cleaned_text(recorder, stack, _MAX_STACKTRACE_CHARS)
    return event


def _stacktrace_of(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except KeyboardInterrupt:
        raise
    except BaseException as trouble:
        return f"‹no stack trace: {type(trouble).__name__}›"


def _cleaned_text(recorder: Recorder, text: str, most_chars: int) -> str:
    # Cut twice: what the first cut tears apart (a secret, maybe) is gone after the second.
    text = _without_middle(text, _MAX_LOOKED_AT_CHARS)
    text = text.encode("utf-8", "backslashreplace").decode()
    if recorder.settings.retention is not RetentionMode.FULL_PAYLOADS:
        text = recorder.redactor.redact_text(text).text
    return _without_middle(text, most_chars)


def _without_middle(text: str, most_chars: int) -> str:
    """Keep both ends: what was called first, and what failed."""
    if len(text) <= most_chars:
        return text
    half = most_chars // 2
    return f"{text[:half]}\n‹cut: {len(text) - 2 * half} characters›\n{text[-half:]}"


def log_failure(kind: str, error: Exception) -> None:
    """Warn, once of each kind, that something was not recorded."""
    warn_once(
        f"observation {kind}",
        "a span was not recorded as it should be (%s: %s); the program is not affected",
        type(error).__name__,
        safe_repr(error),
    )
