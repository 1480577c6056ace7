"""Requests that no adapter renders (embeddings, legacy completions): sent and kept as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hansard_compiler.calls import Call, Json, Message
from hansard_compiler.providers.base import RenderInput
from hansard_compiler.providers.formats.fields import tokens_from
from hansard_compiler.providers.transport.failures import NotRenderable

_USAGE = {"input": "usage.prompt_tokens", "output": "usage.completion_tokens"}


@dataclass(frozen=True, slots=True)
class PlainAnswers:
    """Any JSON over HTTP; what the answer means is not read."""

    provider: str
    path: str

    def render(self, given: RenderInput) -> Json:
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

    def notes(self, given: RenderInput) -> list[str]:
        return []
