"""A span that is open until it is ended, once, in the process that began it; and its outcome."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from opentelemetry.trace import Link, SpanKind, StatusCode

from hansard import semconv
from hansard._runtime.warnings import warn_once
from hansard._tracing.attributes import text_of
from hansard._tracing.observation import add_error, is_cancellation, put_content
from hansard._tracing.serialization import safe_repr, to_json
from hansard_compiler.retention_modes import RetentionMode

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span
    from opentelemetry.util.types import AttributeValue

    from hansard._runtime.recorder import Recorder

Status = Literal["running", "completed", "failed", "cancelled"]
Ended = Literal["completed", "failed", "cancelled"]

_WORDS: Final[Mapping[str, Ended]] = {
    "completed": "completed", "ok": "completed", "success": "completed", "done": "completed",
    "failed": "failed", "failure": "failed", "error": "failed",
    "cancelled": "cancelled", "canceled": "cancelled", "aborted": "cancelled",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SpanEnd:
    """The end of a run or step; `left_open`: the program did not end it."""

    status: Ended
    error: BaseException | str | None = None
    left_open: bool = False
    error_type: str | None = None  # of an error that is a text: its type


def outcome_of(status: str | None = None, error: BaseException | str | None = None) -> SpanEnd:
    """Return what a program means by a status and an error; never raises.

    Without a status, the error decides. An unknown word is logged once and ignored.
    """
    # `issubclass` of the type, here and below: `isinstance` calls the object, which may raise.
    if issubclass(type(error), SystemExit) and getattr(error, "code", 1) in (None, 0):
        error = None  # the ordinary way out
    if status is None:
        return SpanEnd(_ended_by(error), error)
    word = _WORDS.get(status.lower()) if type(status) is str else None
    if word is None:
        warn_once(
            "status",
            "%s is no status of a run or step; expected completed, failed or cancelled",
            safe_repr(status)[:80],
        )
    return SpanEnd(word or _ended_by(error), error)


def _ended_by(error: BaseException | str | None) -> Ended:
    if error is None:
        return "completed"
    if issubclass(type(error), BaseException):
        return "cancelled" if is_cancellation(cast(BaseException, error)) else "failed"
    return "failed"


class OpenSpan:
    """What runs and steps have in common; nothing here raises."""

    __slots__ = ("_pid", "_unended", "recorder", "span")

    def __init__(
        self,
        recorder: Recorder,
        name: str,
        *,
        context: Context,
        attributes: Mapping[str, AttributeValue | None],
        links: Sequence[Link] = (),
        start_ns: int | None = None,
    ) -> None:
        self.recorder = recorder
        present = {
            key: _redacted(recorder, key, value)
            for key, value in attributes.items()
            if value is not None
        }
        self.span: Span = recorder.tracer.start_span(
            name,
            context,
            SpanKind.INTERNAL,
            {semconv.HANSARD_SCHEMA_VERSION: semconv.SCHEMA_VERSION, **present},
            links,
            start_ns,
        )
        # A forked child has a copy of this object, and the parent ends the span.
        self._pid = os.getpid()
        # Popped by the thread that ends it: atomic, and no lock to be forked with.
        self._unended = [True]

    @property
    def is_open(self) -> bool:
        return bool(self._unended)

    @property
    def trace_id(self) -> str:
        return f"{self.span.get_span_context().trace_id:032x}"

    @property
    def span_id(self) -> str:
        return f"{self.span.get_span_context().span_id:016x}"

    @property
    def step_id(self) -> str:
        return f"{self.trace_id}-{self.span_id}"

    def claim(self) -> bool:
        """Return whether the caller is the one who ends it: the first, and not a forked child."""
        if self._pid != os.getpid():
            return False
        try:
            return self._unended.pop()
        except IndexError:
            return False

    def keep(self, key: str, value: Any) -> None:
        """Keep content, by value or reference as its size and the retention mode ask for."""
        if self.span.is_recording():
            with quietly("content"):
                text = to_json(value, max_bytes=self.recorder.settings.capture_max_bytes)
                put_content(self.recorder, self.span, key, text)

    def keep_text(self, key: str, text: str) -> None:
        """Keep text as it is, and not as a JSON string."""
        if self.span.is_recording():
            with quietly("content"):
                put_content(self.recorder, self.span, key, text)

    def close(self, outcome: SpanEnd, *, end_ns: int | None = None) -> None:
        """End the span; the caller has claimed it."""
        with quietly("outcome"):
            if outcome.left_open:
                self.span.set_attribute(semconv.UNENDED, True)
            if outcome.status == "cancelled":
                self.span.set_attribute(semconv.CANCELLED, True)
            elif outcome.status == "failed":
                self._fail(outcome.error, outcome.error_type)
        with quietly("end"):
            self.span.end(end_ns)

    def _fail(self, error: BaseException | str | None, kind: str | None) -> None:
        if issubclass(type(error), BaseException):
            add_error(self.recorder, self.span, cast(BaseException, error))
            return
        # Failed, and perhaps nothing says as what.
        error_type = (
            "_OTHER" if kind is None else _redacted(self.recorder, semconv.ERROR_TYPE, kind)
        )
        self.span.set_attribute(semconv.ERROR_TYPE, error_type)
        message, mode = None, self.recorder.settings.retention
        if error is not None and mode is not RetentionMode.METADATA_ONLY:
            message = str(_redacted(self.recorder, "", text_of(error)))
        self.span.set_status(StatusCode.ERROR, message)


def _redacted(recorder: Recorder, key: str, value: AttributeValue) -> AttributeValue:
    """Return names, ids and numbers without secrets; every retention mode stores them."""
    if recorder.settings.retention is RetentionMode.FULL_PAYLOADS:
        return value
    if isinstance(value, str):
        return recorder.redactor.redact_text(value, key=key).text
    if isinstance(value, list):
        return [recorder.redactor.redact_text(str(item), key=key).text for item in value]
    return value


@contextmanager
def quietly(what: str) -> Iterator[None]:
    """Log an error of the recording once, and keep it from the program."""
    try:
        yield
    except Exception as error:
        warn_once(
            f"session {what}",
            "a run or step was not recorded as it should be (%s: %s); the program is not affected",
            type(error).__name__,
            safe_repr(error),
        )
