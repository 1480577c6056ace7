"""One call of a model, from the moment it is requested until its last byte: one span."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, cast

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from hansard import semconv
from hansard._clients.bodies import Attributes, ResponseFailure, Route, body_of
from hansard._clients.exchange import ClientExchange
from hansard._clients.guard import observing
from hansard._tracing.context import entered, parent_context
from hansard._tracing.observation import add_error, clean_attribute, put_content, put_exact
from hansard._tracing.serialization import dumps, type_name
from hansard_compiler.providers.formats.fields import known, text
from hansard_compiler.retention_modes import RetentionMode

if TYPE_CHECKING:
    from hansard._runtime.recorder import Recorder

_CURRENT: Final = otel_context.create_key("hansard-recorded-call")
_RECORDED_OUTSIDE: Final = otel_context.create_key("hansard-recorded-call")
_JSON: Final = "application/json"
_LONGEST_MESSAGE: Final = 2_000
_LONGEST_TYPE: Final = 100


def current_call() -> RecordedCall | None:
    """Return the call that the running code is inside of."""
    found = otel_context.get_value(_CURRENT)
    return found if isinstance(found, RecordedCall) else None


def outside_of_calls() -> AbstractContextManager[None]:
    """Requests made in here belong to no call."""
    return entered(otel_context.set_value(_CURRENT, None))


def quiet_clients() -> AbstractContextManager[None]:
    """Keep clients and instrumentors from telling the calls made in here: the caller does."""
    context = otel_context.set_value(_RECORDED_OUTSIDE, True)
    for key in (otel_context._SUPPRESS_INSTRUMENTATION_KEY, "suppress_instrumentation"):
        context = otel_context.set_value(key, True, context)
    return entered(context)


def is_recorded_outside() -> bool:
    """Whether the caller itself records this call."""
    return otel_context.get_value(_RECORDED_OUTSIDE) is True


class RecordedCall:
    """A call that is being made; its requests over HTTP come one after the other.

    The span is ended once: by the last byte, an error, or the loss of the stream. Methods that the
    client's thread runs are guarded: none of them raises.
    """

    __slots__ = ("_is_open", "_recorder", "_route", "_sent", "_start_s", "exchanges", "span")

    def __init__(
        self,
        recorder: Recorder,
        route: Route,
        *,
        model: str | None,
        attributes: Attributes,
        outer: Span | None = None,
    ) -> None:
        self._recorder = recorder
        self._route = route
        self._start_s = time.perf_counter()
        self._sent: bytes | None = None  # the body of the last request
        self.exchanges: list[ClientExchange] = []
        self._is_open = [True]  # popped by what ends the span
        self.span: Span = recorder.tracer.start_span(
            self._name(model),
            parent_context() if outer is None else trace.set_span_in_context(outer),
            kind=SpanKind.CLIENT,
            attributes=attributes
            | known(
                {
                    semconv.OPERATION_NAME: route.operation,
                    semconv.REQUEST_MODEL: model,
                    semconv.HANSARD_SCHEMA_VERSION: semconv.SCHEMA_VERSION,
                }
            ),
        )

    def _name(self, model: str | None) -> str:
        return f"{self._route.operation} {model}" if model else self._route.operation

    def running(self) -> AbstractContextManager[None]:
        """Make the span current, and this the call that requests belong to."""
        context = trace.set_span_in_context(self.span)
        return entered(otel_context.set_value(_CURRENT, self, context))

    # ---- called by the client

    @observing
    def sending(self, request: Any) -> ClientExchange | None:
        """A request is about to be sent: the first, or another try."""
        if not self.span.is_recording():
            return None
        if self.exchanges:
            self._note_failed_try(self.exchanges[-1])
        exchange = ClientExchange(request, self._exchanged)
        self.exchanges.append(exchange)
        self._take_request(exchange)
        return exchange

    @observing
    def returned(self) -> None:
        """The client has its response, or a stream that it can read it from."""
        last = self.exchanges[-1] if self.exchanges else None
        if last is None or not last.is_open:
            self._finish(last)

    @observing
    def raised(self, error: BaseException) -> None:
        """The client gives up; the program gets this error."""
        self._finish(self.exchanges[-1] if self.exchanges else None, error)

    @observing
    def _exchanged(self, exchange: ClientExchange) -> None:
        """The body of a response that was still open has come to its end."""
        is_streamed = exchange is self.exchanges[-1] and (exchange.status or 0) < 400
        if is_streamed:  # else `raised`, or another try, comes next
            self._finish(exchange, exchange.error)

    # ---- the span

    @observing
    def _take_request(self, exchange: ClientExchange) -> None:
        self._set(exchange.request_attributes())
        body = exchange.sent()
        if body is None or body == self._sent:
            return
        self._sent = body
        # First of all: whatever the body holds, its exact bytes are stored.
        self._put(semconv.REQUEST, body, media_type=_JSON)
        found = body_of(body)
        request, model = self._route.read_request(found), text(found.get("model"))
        self._set(self._cleaned(request.attributes))
        if model is not None:
            self._set({semconv.REQUEST_MODEL: model})
            self.span.update_name(self._name(model))
        self._content(semconv.INPUT_MESSAGES, request.input)
        self._content(semconv.SYSTEM_INSTRUCTIONS, request.system)
        self._content(semconv.TOOL_DEFINITIONS, request.tools)

    def _cleaned(self, attributes: Attributes) -> Attributes:
        """Stop sequences are words of the prompt's author."""
        found = dict(attributes)
        words = found.pop(semconv.STOP_SEQUENCES, None)
        if words is None or self._recorder.settings.retention is RetentionMode.METADATA_ONLY:
            return found
        cleaned = clean_attribute(self._recorder, semconv.STOP_SEQUENCES, words)
        return found | {semconv.STOP_SEQUENCES: [str(word) for word in cast(list[str], cleaned)]}

    @observing
    def _put(self, key: str, data: bytes, *, media_type: str) -> None:
        """Store exact bytes, and name them; note when a secret was cut out of them."""
        put_exact(self._recorder, self.span, key, data, media_type)

    @observing
    def _content(self, key: str, value: list[Any]) -> None:
        if value:
            put_content(self._recorder, self.span, key, dumps(value))

    def _note_failed_try(self, exchange: ClientExchange) -> None:
        """A try that the client made again, as an event; the call goes on."""
        made = exchange.response_attributes()
        if exchange.error is not None:
            made[semconv.ERROR_TYPE] = type_name(type(exchange.error))
        tried_again = len(self.exchanges)
        self.span.add_event(semconv.EVENT_ATTEMPT, {**made, semconv.RESEND_COUNT: tried_again - 1})
        self._set({semconv.RESEND_COUNT: tried_again})

    def _finish(self, exchange: ClientExchange | None, error: BaseException | None = None) -> None:
        try:
            self._is_open.pop()
        except IndexError:
            return
        try:
            self._tell(exchange, error)
        finally:
            self.span.end()
            for each in self.exchanges:
                each.forget()
            self._sent = None

    @observing
    def _tell(self, exchange: ClientExchange | None, error: BaseException | None) -> None:
        if not self.span.is_recording():
            return
        if error is not None:
            add_error(self._recorder, self.span, error)
        if exchange is None:
            return
        self._set(exchange.response_attributes())
        if exchange.first_chunk_s is not None and exchange.is_events:
            waited_s = exchange.first_chunk_s - self._start_s
            self._set({semconv.TIME_TO_FIRST_CHUNK: round(waited_s, 6)})
        failure = self._take_response(exchange)
        if error is None and failure is not None:
            self._fail(failure)

    def _take_response(self, exchange: ClientExchange) -> ResponseFailure | None:
        """Record the response on the span; returns the error that it reports."""
        body = exchange.received()
        if not body:
            if body is None:
                self._set({semconv.RESPONSE_BODY_SIZE: exchange.size})
            self._note_cut(exchange, is_whole=False)
            return None
        kind = exchange.header("content-type").partition(";")[0].strip() or _JSON
        self._put(semconv.RESPONSE, body, media_type=kind)
        if exchange.is_events and self._route.assemble is not None:
            response, is_whole = self._route.read_stream(body)
        else:
            response, is_whole = self._route.read_response(body_of(body)), False
        self._set(response.attributes)
        self._content(semconv.OUTPUT_MESSAGES, response.output)
        self._note_cut(exchange, is_whole=is_whole)
        return response.failure

    def _note_cut(self, exchange: ClientExchange, *, is_whole: bool) -> None:
        """A stream that the program left before its end was cancelled; nothing failed."""
        if exchange.is_cut and not is_whole:
            self._set({semconv.CANCELLED: True})

    def _fail(self, failure: ResponseFailure) -> None:
        """The provider reported an error in its response; the client raised none."""
        self._set({semconv.ERROR_TYPE: failure.type[:_LONGEST_TYPE]})
        message = None
        if self._recorder.settings.retention is not RetentionMode.METADATA_ONLY:
            cut = failure.message[:_LONGEST_MESSAGE]
            message = str(clean_attribute(self._recorder, "message", cut))
        self.span.set_status(Status(StatusCode.ERROR, message))

    def _set(self, attributes: Attributes) -> None:
        present = getattr(self.span, "attributes", None) or {}
        if semconv.CONVERSATION_ID in attributes and semconv.CONVERSATION_ID in present:
            # The program's own conversation goes before what the provider calls one.
            attributes = {**attributes}
            del attributes[semconv.CONVERSATION_ID]
        self.span.set_attributes(attributes)
