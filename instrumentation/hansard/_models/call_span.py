"""The span of a call that the SDK itself makes: `chat {model}`, with the bytes by reference.

Nothing here raises into the call.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import Link, SpanKind

import hansard
from hansard import semconv
from hansard._clients.bodies import (
    Attributes,
    blob_part,
    call_part,
    media_part,
    result_part,
    text_part,
)
from hansard._clients.guard import observing
from hansard._models.answer import RecordedAnswer
from hansard._models.call_attributes import (
    answered,
    attempt_attributes,
    failed,
    finish_reason_of,
    of_compile,
    of_request,
    server_of,
)
from hansard._tracing.context import address_of
from hansard._tracing.observation import UNRECORDED, Observation, begin, is_exact, put_exact
from hansard._tracing.serialization import dumps
from hansard_compiler.calls import (
    MediaPart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from hansard_compiler.canonical import canonical_bytes
from hansard_compiler.providers.recipe import (
    RECIPE_MEDIA_TYPE,
    Recipe,
    UsedCompilation,
    parameters_of,
    sampling_of,
    sent_request,
    used_adapter,
)
from hansard_compiler.retention_modes import RetentionMode

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

    from hansard._context.compiled_step import CompiledStep
    from hansard._runtime.recorder import Recorder
    from hansard_compiler.providers.adapter import Adapter
    from hansard_compiler.providers.base import RenderInput
    from hansard_compiler.providers.transport.exchange import Attempt, Exchange, ProviderResponse


# Messages in the normal form, as the GenAI conventions write them.

Plain = dict[str, Any]


def plain_messages(messages: Sequence[Message], *, finish_reason: str | None = None) -> list[Plain]:
    """Return messages as `gen_ai.input.messages` and `gen_ai.output.messages` hold them."""
    more = {} if finish_reason is None else {"finish_reason": finish_reason}
    return [
        {"role": message.role, "parts": [one for part in message.parts for one in _part(part)]}
        | ({"name": message.name} if message.name else {})
        | more
        for message in messages
    ]


def definitions(tools: Sequence[Plain]) -> list[Plain]:
    """Return tools as `gen_ai.tool.definitions` holds them; a built-in one stays as it is."""
    return [tool if "type" in tool else {"type": "function", **tool} for tool in tools]


def _part(part: Part) -> list[Plain]:
    if isinstance(part, TextPart):
        return text_part(part.text)
    if isinstance(part, ReasoningPart):
        return text_part(part.text, "reasoning")
    if isinstance(part, ToolCallPart):
        return [call_part(call_id=part.id, name=part.name, arguments=part.arguments)]
    if isinstance(part, ToolResultPart):
        return [result_part(call_id=part.id, response=part.content)]
    if isinstance(part, MediaPart):
        kind = part.media_type
        modality = (kind or "image/").partition("/")[0]
        if part.data is not None:
            return [blob_part(modality, mime_type=kind, content=part.data)]
        return [media_part(modality, part.uri or part.payload, mime_type=kind)]
    return [part.value if isinstance(part.value, dict) else {"type": "other", "value": part.value}]


_JSON = "application/json"


class CallSpan:
    """One call while it is made; without a recorder it does nothing.

    The transport calls it with each request before it is sent, and with every exchange.
    """

    def __init__(
        self, request: RenderInput, adapter: Adapter, compiled: CompiledStep | None
    ) -> None:
        self._request = request
        self._adapter = adapter
        self._compiled = compiled
        self._observation: Observation = UNRECORDED
        self._start_s = time.perf_counter()
        self._refs: dict[str, str] = {}
        self._is_exact = False
        self._open = [True]  # popped by what ends the span: the call, or its cancellation

    @classmethod
    def begin(
        cls,
        recorder: Recorder | None,
        request: RenderInput,
        adapter: Adapter,
        compiled: CompiledStep | None,
    ) -> CallSpan:
        """Start the span in the current context."""
        made = cls(request, adapter, compiled)
        if recorder is not None:
            made._start(recorder)
        return made

    @observing
    def _start(self, recorder: Recorder) -> None:
        name = f"chat {self._request.model}"
        values = of_request(self._request, self._adapter.provider, recorder) | of_compile(
            self._compiled
        )
        self._observation = begin(recorder, name, values, kind=SpanKind.CLIENT) or UNRECORDED
        if self._observation.is_recording:
            request = self._request
            self._content(semconv.INPUT_MESSAGES, plain_messages(request.messages))
            self._content(
                semconv.SYSTEM_INSTRUCTIONS,
                [one for text in request.system for one in text_part(text)],
            )
            self._content(semconv.TOOL_DEFINITIONS, definitions(request.tools))

    @observing
    def mark(self, attributes: Mapping[str, AttributeValue], *, links: Sequence[Link] = ()) -> None:
        """Say more of the call: what it is a replay of."""
        if self._observation.is_recording:
            self._observation.span.set_attributes(attributes)
            for link in links:
                self._observation.span.add_link(link.context, link.attributes)

    def running(self) -> AbstractContextManager[None]:
        """Make the span current."""
        return self._observation.running()

    @property
    def step_id(self) -> str:
        """The step of the call; empty where nothing is recorded."""
        return self._recorded().step_id

    @property
    def _has_open_span(self) -> bool:
        """Whether there is a span that is still open, and recorded."""
        return bool(self._open) and self._observation.is_recording

    # ---- calls of the transport

    @observing
    def sending(self, path: str, body: bytes) -> None:
        """Keep the exact bytes before they are sent."""
        if self._has_open_span and path == self._adapter.format.path:
            self._is_exact = self._put(semconv.REQUEST, body, media_type=_JSON)

    @observing
    def exchanged(self, exchange: Exchange) -> None:
        """Keep what came back; a question for a count of tokens is an event."""
        if not self._has_open_span:
            return
        last = exchange.last
        if last is None:
            return
        if exchange.path != self._adapter.format.path:
            self._event(semconv.EVENT_TOKEN_COUNT, last, {"url.path": exchange.path})
            return
        for number, attempt in enumerate(exchange.attempts[:-1]):
            self._event(semconv.EVENT_ATTEMPT, attempt, {semconv.RESEND_COUNT: number})
        values = attempt_attributes(last)
        if len(exchange.attempts) > 1:
            values[semconv.RESEND_COUNT] = len(exchange.attempts) - 1
        if exchange.is_stream and last.first_chunk_ms is not None:
            values[semconv.TIME_TO_FIRST_CHUNK] = self._first_chunk_s(exchange)
        self._observation.span.set_attributes({**values, **server_of(last.address)})
        self._keep_response(last)
        self._keep_recipe(exchange)

    def _first_chunk_s(self, exchange: Exchange) -> float:
        """Seconds from the call to the first piece, earlier tries and waits included."""
        last = exchange.attempts[-1]
        ended_s = time.perf_counter() - self._start_s
        after_first_ms = last.duration_ms - (last.first_chunk_ms or 0.0)
        return round(max(ended_s - after_first_ms / 1e3, (last.first_chunk_ms or 0.0) / 1e3), 6)

    def _keep_response(self, last: Attempt) -> None:
        try:
            body = last.body
        except ValueError:  # cut off inside its compression
            body = last.response
        if body:
            kind = last.headers.get("content-type", "").partition(";")[0].strip() or _JSON
            self._put(semconv.RESPONSE, body, media_type=kind)

    def _event(self, event: str, attempt: Attempt, more: Attributes) -> None:
        self._observation.span.add_event(event, attempt_attributes(attempt) | more)

    # ---- its end

    def finish(self, raw: ProviderResponse) -> RecordedAnswer:
        """Record the response and end the span."""
        recorded = self._recorded()
        if self._claim():
            self._record_answer(raw)
            self._observation.end()
        return recorded

    def fail(self, error: BaseException) -> None:
        """Record how the call failed, and end the span."""
        if self._claim():
            self._record_failure(error)
            self._observation.fail(error)

    def cancel(self) -> None:
        """End the span of a cancelled call."""
        if self._claim():
            self._observation.cancel()

    def _claim(self) -> bool:
        try:
            return self._open.pop()
        except IndexError:
            return False

    @observing
    def _record_answer(self, raw: ProviderResponse) -> None:
        if not self._observation.is_recording:
            return
        self._observation.span.set_attributes(answered(raw))
        reason = finish_reason_of(raw.call)
        messages = plain_messages(raw.call.output, finish_reason=reason)
        self._content(semconv.OUTPUT_MESSAGES, messages)
        left_out = raw.metadata.get("omitted")
        if left_out:
            self._content(semconv.REQUEST_OMITTED, left_out)

    @observing
    def _record_failure(self, error: BaseException) -> None:
        if not self._observation.is_recording:
            return
        estimate = self._adapter.estimate(self._request)
        values: Attributes = {
            semconv.TOKENS_ESTIMATED: estimate.tokens,
            semconv.TOKENS_ESTIMATOR: estimate.counted_by,
        }
        self._observation.span.set_attributes(values | failed(error))

    # ---- payloads

    def _content(self, key: str, value: list[Any]) -> None:
        if value:
            self._observation.put_text(key, dumps(value))

    def _put(self, key: str, data: bytes, *, media_type: str) -> bool:
        """Keep exact bytes and name them; returns whether nothing was cut out of them."""
        observation = self._observation
        ref = put_exact(observation.recorder, observation.span, key, data, media_type)
        if ref:
            self._refs[key] = ref
        return is_exact(ref, data)

    def _keep_recipe(self, exchange: Exchange) -> None:
        if self._observation.recorder.settings.retention is RetentionMode.METADATA_ONLY:
            return
        request_ref = self._refs.get(semconv.REQUEST, "")
        if not request_ref:
            return
        recipe = Recipe(
            provider=self._adapter.provider,
            model=self._request.model,
            request=sent_request(exchange, ref=request_ref, is_exact=self._is_exact),
            response_ref=self._refs.get(semconv.RESPONSE, ""),
            compilation=_used(self._compiled),
            adapter=used_adapter(self._adapter.format, exchange),
            sampling=sampling_of(self._request),
            parameters=parameters_of(self._request),
            versions={"hansard": hansard.__version__, "python": platform.python_version()},
        )
        data = canonical_bytes(recipe.model_dump(mode="json"))
        self._put(semconv.RECIPE, data, media_type=RECIPE_MEDIA_TYPE)

    def _recorded(self) -> RecordedAnswer:
        _, step_id = address_of(self._observation.span) or ("", "")
        return RecordedAnswer(
            step_id,
            *(
                self._refs.get(key, "")
                for key in (semconv.REQUEST, semconv.RESPONSE, semconv.RECIPE)
            ),
        )


def _used(compiled: CompiledStep | None) -> UsedCompilation | None:
    if compiled is None or not compiled.recorded.request_ref:
        return None
    recorded = compiled.recorded
    return UsedCompilation(
        id=compiled.id,
        hash=compiled.hash,
        request_ref=recorded.request_ref,
        result_ref=recorded.result_ref,
        is_whole=recorded.is_whole,
        ports=list(recorded.ports),
    )
