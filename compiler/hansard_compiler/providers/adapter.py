"""A provider's adapter: a format that is pure, and a wire that sends.

`call` is the whole way: render, check the pairs, count, send, read. `resend` sends stored bytes
again as they are. Each step is also there by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from hansard_compiler.calls import Call, Json, Message, TextPart, message_json
from hansard_compiler.providers.base import OnEvent, RenderInput, Wire, WireFormat, from_payload
from hansard_compiler.providers.formats.sse import events_of
from hansard_compiler.providers.transport import failures
from hansard_compiler.providers.transport.exchange import Exchange, ProviderResponse, read_json
from hansard_compiler.providers.transport.failure_mapping import made
from hansard_compiler.providers.transport.failures import BrokenPairs, NotRenderable, OverLimit
from hansard_compiler.tokens.estimators import Scaled
from hansard_compiler.tokens.requests import counter_for

Preflight = Literal["provider", "estimate", "off"]


@dataclass(frozen=True, slots=True)
class ProviderCount:
    """How many input tokens a request takes, and who counted them."""

    tokens: int
    counted_by: str


class Adapter:
    """One provider, ready to be called. Safe to share between threads.

    `preflight` says how a request is held against `max_input_tokens` before it is sent: by the
    provider's own count (one more request), by the offline estimate, or not at all. `multiplier`
    is what earlier bills taught about the estimate.
    """

    def __init__(
        self,
        format: WireFormat,
        wire: Wire,
        *,
        preflight: Preflight = "estimate",
        multiplier: float = 1.0,
    ) -> None:
        self.format = format
        self._wire = wire
        self._preflight = preflight
        self._multiplier = multiplier

    @property
    def provider(self) -> str:
        return self.format.provider

    def render_request(self, compiled: RenderInput) -> Json:
        """Return the request's body. The same input gives the same body, and the same bytes."""
        return self.format.render(compiled)

    def renderer(self, *, model: str, **more: Any) -> Callable[[Mapping[str, Any]], Json]:
        """Return a renderer for a compile: from its payload to the request.

        `more` are further fields of RenderInput. Pairs are checked, so that a compile whose request
        no provider would take fails there and then.
        """

        def render(payload: Mapping[str, Any]) -> Json:
            rendered = self.format.render(from_payload(payload, model=model, **more))
            self.check_pairs(rendered)
            return rendered

        return render

    def check_pairs(self, rendered: Mapping[str, Any]) -> None:
        """Raise BrokenPairs where the provider would refuse the tool calls and results."""
        problems = self.format.problems(rendered)
        if problems:
            raise BrokenPairs(problems)

    def count_tokens(self, compiled: RenderInput) -> int:
        """Return a request's input tokens, as the preflight would count them."""
        return self.count(compiled, self.format.render(compiled)).tokens

    def count(self, compiled: RenderInput, rendered: Mapping[str, Any]) -> ProviderCount:
        """Return the count that `call` would hold against the limit, and who counted."""
        route = self.format.count_request(rendered) if self._preflight == "provider" else None
        if route is None:
            return self.estimate(compiled)
        path, body = route
        exchange = self._wire.post(path, request_bytes(body), stream=False)
        counted = _object(exchange).get("input_tokens")
        if not isinstance(counted, int):
            raise made(failures.InvalidResponse, "the token count has no input_tokens", exchange)
        return ProviderCount(counted, f"counted by {self.provider}")

    def estimate(self, compiled: RenderInput) -> ProviderCount:
        """Return the offline estimate of a request: texts, tools and framing."""
        counter = counter_for(self.provider, compiled.model)
        if self._multiplier != 1.0:
            counter = replace(counter, estimator=Scaled(counter.estimator, self._multiplier))
        counted = counter.count_request(
            _input(compiled), compiled.tools, is_forced=compiled.is_call_forced
        )
        return ProviderCount(counted.total, f"estimated by {counted.estimator}")

    def send(self, rendered: Json) -> Json:
        """Send a body and return the provider's response, a streamed one put together."""
        return _response(self.format, self._post(rendered, request_bytes(rendered), None))

    def parse_response(self, response: Json) -> Json:
        """Return a response in the normal form, as plain JSON."""
        return call_json(self.format.parse(response, {}))

    def call(self, compiled: RenderInput, *, on_event: OnEvent | None = None) -> ProviderResponse:
        """Call the model. Raises RequestRefused before sending, CallFailed after."""
        rendered = self.format.render(compiled)
        self.check_pairs(rendered)
        metadata = self._metadata(compiled, rendered)
        response = self.read(self._post(rendered, request_bytes(rendered), on_event))
        call = replace(response.call, input=_input(compiled), tools=tuple(compiled.tools))
        return replace(response, call=call, metadata=metadata)

    def resend(self, request: bytes, *, on_event: OnEvent | None = None) -> ProviderResponse:
        """Send stored bytes again, unchanged; nothing is checked or counted."""
        try:
            rendered = read_json(request)
        except ValueError as error:
            raise NotRenderable(f"the stored request is not JSON: {error}") from None
        if not isinstance(rendered, dict):
            raise NotRenderable("the stored request is not a JSON object")
        return self.read(self._post(rendered, request, on_event))

    def read(self, exchange: Exchange) -> ProviderResponse:
        """Read a recorded exchange as if it had just come back."""
        response = _response(self.format, exchange)
        request = read_json(exchange.request)
        call = self.format.parse(response, request)
        _refuse_empty(call, response, exchange)
        first_ms = exchange.last.first_chunk_ms if exchange.is_stream and exchange.last else None
        timed = replace(call, time_to_first_token_ms=first_ms)
        return ProviderResponse(timed, response, exchange, shortfall=_shortfall(call, exchange))

    def close(self) -> None:
        """Close connections; the next call opens new ones."""
        self._wire.close()

    def _metadata(self, compiled: RenderInput, rendered: Mapping[str, Any]) -> Json:
        """Hold the request against its limit; return what belongs on the step."""
        estimate = self.estimate(compiled)
        limit = compiled.max_input_tokens
        if limit is not None and self._preflight != "off":
            counted = self.count(compiled, rendered)
            if counted.tokens > limit:
                raise OverLimit(counted.tokens, limit, counted.counted_by)
        return {
            "stable_prefix_hash": compiled.stable_prefix_hash,
            "volatile_suffix_hash": compiled.volatile_suffix_hash,
            "estimated_input_tokens": estimate.tokens,
            "estimated_by": estimate.counted_by,
            "omitted": self.format.notes(compiled),
        }

    def _post(
        self, rendered: Mapping[str, Any], request: bytes, on_event: OnEvent | None
    ) -> Exchange:
        is_stream = rendered.get("stream") is True
        return self._wire.post(self.format.path, request, stream=is_stream, on_event=on_event)


def request_bytes(rendered: Mapping[str, Any]) -> bytes:
    """Return a body as compact JSON in UTF-8, keys in the order they were rendered."""
    try:
        text = json.dumps(rendered, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate: only its escape is valid UTF-8
        return json.dumps(rendered, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise NotRenderable(f"the request is not JSON: {error}") from None


def call_json(call: Call) -> Json:
    """Return a call as plain JSON: what came back, its tokens and where they were read."""
    tokens = {name: value for name, value in asdict(call.tokens).items() if value is not None}
    return {
        "provider": call.provider,
        "response_id": call.response_id,
        "response_model": call.response_model,
        "output": [message_json(message) for message in call.output],
        "finish_reason": call.finish_reason,
        "finish_reason_raw": call.finish_reason_raw,
        "tokens": tokens,
        "sources": dict(call.sources),
    }


def _input(compiled: RenderInput) -> tuple[Message, ...]:
    system = (Message("system", (TextPart(text),)) for text in compiled.system)
    return (*system, *compiled.messages)


def _response(format: WireFormat, exchange: Exchange) -> Json:
    if not exchange.is_stream:
        return _object(exchange)
    assert exchange.last is not None
    try:
        joined = format.join_stream(events_of(exchange.last.body))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        problem = f"the stream cannot be read: {type(error).__name__}"
        raise made(failures.InvalidResponse, problem, exchange) from None
    if joined is None:
        raise made(failures.StreamBroken, "the stream stopped before its end", exchange)
    return joined


def _object(exchange: Exchange) -> Json:
    assert exchange.last is not None
    try:
        response = read_json(exchange.last.body)
    except ValueError as error:
        raise made(failures.InvalidResponse, f"the answer is not JSON: {error}", exchange) from None
    if not isinstance(response, dict):
        raise made(failures.InvalidResponse, "the answer is not a JSON object", exchange)
    return response


def _refuse_empty(call: Call, response: Mapping[str, Any], exchange: Exchange) -> None:
    """Raise InvalidResponse for a response with neither content nor a reason for its absence.

    A model may answer nothing and stop: then a finish reason, or the Responses API's list of
    output, is there. Embeddings, which a replay may send again, are a list of data.
    """
    has_list = any(isinstance(response.get(name), list) for name in ("output", "data"))
    is_response = call.finish_reason is not None or has_list
    if not call.output and not is_response:
        found = ", ".join(sorted(map(str, response))[:8]) or "nothing"
        problem = f"the answer has no message and no finish reason; it has {found:.200}"
        raise made(failures.InvalidResponse, problem, exchange)


def _shortfall(call: Call, exchange: Exchange) -> failures.CallFailed | None:
    if call.finish_reason == "length":
        return made(failures.AnswerTruncated, "the answer was cut at the token limit", exchange)
    if call.finish_reason == "content_filter":
        return made(failures.ContentFiltered, "the answer was stopped by a filter", exchange)
    return None
