"""Wires of a replay: one lets only the promised bytes pass, another answers from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hansard_compiler.calls import Call, Json, Message
from hansard_compiler.providers.base import OnEvent, RenderInput, Wire
from hansard_compiler.providers.formats.fields import tokens_from
from hansard_compiler.providers.transport.exchange import (
    Attempt,
    Exchange,
    note_exchange,
    note_sending,
)
from hansard_compiler.providers.transport.failure_mapping import failure_of
from hansard_compiler.providers.transport.failures import NotRenderable
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_web.replay.source import assert_hash


@dataclass(frozen=True, slots=True)
class AssertingWire:
    """Sends one request and no other: its hash is asserted right before, and on what was sent."""

    inner: Wire
    ref: str  # sha256:<hex> of the only body that may pass
    path: str

    def post(
        self, path: str, body: bytes, *, stream: bool, on_event: OnEvent | None = None
    ) -> Exchange:
        if path != self.path:
            raise NotReplayable(ReplayReason.HASH_MISMATCH, f"path {path} in place of {self.path}")
        assert_hash(body, self.ref)
        exchange = self.inner.post(path, body, stream=stream, on_event=on_event)
        for attempt in exchange.attempts:
            assert_hash(attempt.request, self.ref)
        return exchange

    def close(self) -> None:
        self.inner.close()


@dataclass(frozen=True, slots=True)
class RecordedWire:
    """Answers with recorded bytes; nothing leaves the process."""

    provider: str
    answer: bytes
    status: int = 200
    is_events: bool = False

    def post(
        self, path: str, body: bytes, *, stream: bool, on_event: OnEvent | None = None
    ) -> Exchange:
        note_sending(path, body)
        kind = "text/event-stream" if self.is_events else "application/json"
        attempt = Attempt(
            body, status=self.status, headers={"content-type": kind}, response=self.answer
        )
        exchange = Exchange(self.provider, path, body, stream, (attempt,))
        note_exchange(exchange)
        if self.status >= 400:
            raise failure_of(exchange)
        return exchange

    def close(self) -> None:
        """There is nothing to close."""


@dataclass(frozen=True, slots=True)
class NoWire:
    """Of an adapter that only renders."""

    def post(
        self, path: str, body: bytes, *, stream: bool, on_event: OnEvent | None = None
    ) -> Exchange:
        raise NotReplayable(ReplayReason.PROVIDER_NOT_CONFIGURED, "this adapter only renders")

    def close(self) -> None:
        """There is nothing to close."""


# Requests that no adapter renders (embeddings, legacy completions): sent and stored as they are.

_USAGE = {"input": "usage.prompt_tokens", "output": "usage.completion_tokens"}


@dataclass(frozen=True, slots=True)
class PlainAnswers:
    """Any JSON over HTTP; what the answer means is not read."""

    provider: str
    path: str

    def render(self, render_input: RenderInput) -> Json:
        raise NotRenderable(f"nothing renders requests for {self.path}: only exact replay is there")

    def problems(self, rendered: Mapping[str, Any]) -> list[str]:
        return []

    def parse(self, response: Mapping[str, Any], request: Mapping[str, Any]) -> Call:
        tokens, sources = tokens_from(response, _USAGE)
        return Call(
            operation="embeddings" if self.path.endswith("embeddings") else "chat",
            provider=self.provider,
            request_model=request.get("model"),
            response_model=response.get("model"),
            stream=bool(request.get("stream")),
            tokens=tokens,
            response_id=response.get("id"),
            sources=sources,
        )

    def join_stream(self, events: Sequence[Json]) -> Json | None:
        return {"events": list(events)}

    def count_request(self, rendered: Mapping[str, Any]) -> tuple[str, Json] | None:
        return None

    def continuation(self, response: Mapping[str, Any]) -> Message:
        return Message("assistant", ())

    def notes(self, render_input: RenderInput) -> list[str]:
        return []
