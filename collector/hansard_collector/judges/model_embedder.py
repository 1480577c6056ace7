"""An embedder that asks a provider: `POST /embeddings`, as OpenAI and servers like it answer."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from hansard_collector.judges.calls import CallCounter
from hansard_collector.judges.embedders import unit
from hansard_collector.judges.errors import BadJudgement
from hansard_compiler.calls import Tokens
from hansard_compiler.providers.transport.exchange import read_json
from hansard_compiler.relevance import Vector

if TYPE_CHECKING:
    from hansard._runtime.recorder import Recorder
    from hansard._tracing.observation import Observation
    from hansard_compiler.providers.base import Wire
    from hansard_compiler.providers.transport.exchange import Exchange

_PATH: Final = "/embeddings"
_AT_ONCE: Final = 128  # texts of one request
_MOST_DIMENSIONS: Final = 16_384
_PROBE: Final = "dimensions"


@dataclass(frozen=True, slots=True)
class ModelEmbedder:
    """Asks a model for vectors; with a recorder each request is a step below the current span."""

    wire: Wire
    provider: str
    model: str
    counter: CallCounter
    recorder: Recorder | None = None
    _size: list[int] = field(default_factory=list)  # of its vectors, once one came

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has; the first time it asks the model."""
        if not self._size:
            self((_PROBE,))
        return self._size[0]

    def recorded_by(self, recorder: Recorder) -> ModelEmbedder:
        """Return the same with its calls recorded."""
        return replace(self, recorder=recorder)

    def close(self) -> None:
        """Close connections; the next call opens new ones."""
        self.wire.close()

    def __call__(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return a vector of length 1 for each text. Raises ProviderError, BadJudgement.

        A text without words gets zeros and is not sent.
        """
        said = [at for at, text in enumerate(texts) if text.strip()]
        found: dict[int, Vector] = {}
        for begin in range(0, len(said), _AT_ONCE):
            places = said[begin : begin + _AT_ONCE]
            vectors = self._asked([texts[at] for at in places])
            found |= dict(zip(places, vectors, strict=True))
        zeros = (0.0,) * (self._size[0] if self._size else 1)
        return [found.get(at, zeros) for at in range(len(texts))]

    def _asked(self, texts: Sequence[str]) -> list[Vector]:
        told = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        body = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
        observation = self._begun(texts)
        began_s = time.perf_counter()
        try:
            exchange = self.wire.post(_PATH, body, stream=False)
            answer = _answer(exchange, self.name)
            vectors = self._vectors(answer, len(texts))
        except Exception as error:
            self.counter.add_failure(1_000 * (time.perf_counter() - began_s))
            if observation is not None:
                observation.fail(error)
            raise
        tokens = _tokens(answer)
        ms = 1_000 * (time.perf_counter() - began_s)
        self.counter.add(tokens, provider=self.provider, model=self.model, ms=ms)
        self._end(observation, exchange, answer, tokens)
        return vectors

    def _vectors(self, answer: Any, count: int) -> list[Vector]:
        """Return the vectors in the order of their texts, all of one size."""
        data = answer.get("data")
        if not isinstance(data, list) or len(data) != count:
            raise BadJudgement(self.name, f"it has not {count} embeddings")
        ordered: dict[int, Vector] = {}
        for number, one in enumerate(data):
            vector = _vector_of(one)
            if vector is None:
                raise BadJudgement(self.name, "an embedding is no list of numbers")
            place = one.get("index", number)
            if not isinstance(place, int) or not 0 <= place < count or place in ordered:
                raise BadJudgement(self.name, "its embeddings are not numbered")
            ordered[place] = unit(vector)
        sizes = {len(one) for one in ordered.values()} | set(self._size)
        if len(sizes) != 1:
            raise BadJudgement(self.name, "its embeddings are of several sizes")
        self._size[:] = sizes
        return [ordered[place] for place in range(count)]

    def _begun(self, texts: Sequence[str]) -> Observation | None:
        if self.recorder is None:
            return None
        from opentelemetry.trace import SpanKind

        from hansard._clients import names
        from hansard._tracing.observation import begin

        attributes = {
            "gen_ai.operation.name": "embeddings",
            names.PROVIDER_NAME: self.provider,
            names.REQUEST_MODEL: self.model,
        }
        made = begin(self.recorder, f"embeddings {self.model}", attributes, kind=SpanKind.CLIENT)
        if made is not None:
            parts = [{"type": "text", "content": text} for text in texts]
            made.put(names.INPUT_MESSAGES, [{"role": "user", "parts": parts}])
        return made

    def _end(
        self, observation: Observation | None, exchange: Exchange, answer: Any, tokens: Tokens
    ) -> None:
        if observation is None:
            return
        from hansard._clients import names
        from hansard._models.call_attributes import attempt_attributes, server_of

        last = exchange.last
        assert last is not None
        told: dict[str, Any] = {
            **attempt_attributes(last),
            **server_of(last.address),
            "gen_ai.embeddings.dimension.count": self._size[0],
        }
        if isinstance(answer.get("model"), str):
            told[names.RESPONSE_MODEL] = answer["model"]
        if tokens.input is not None:
            told["gen_ai.usage.input_tokens"] = tokens.input
        observation.span.set_attributes(told)
        observation.end()


def _answer(exchange: Exchange, name: str) -> dict[str, Any]:
    assert exchange.last is not None
    try:
        found = read_json(exchange.last.body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadJudgement(name, "it is no JSON object")
    return found


def _vector_of(one: Any) -> list[float] | None:
    """Return the vector of an item of an answer; None where it has none."""
    found = one.get("embedding") if isinstance(one, dict) else None
    is_vector = (
        isinstance(found, list)
        and 0 < len(found) <= _MOST_DIMENSIONS
        and all(isinstance(one, int | float) and not isinstance(one, bool) for one in found)
        and all(abs(one) < 1e12 for one in found)  # neither nan nor infinite
    )
    return found if is_vector else None


def _tokens(answer: Any) -> Tokens:
    usage = answer.get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return Tokens(input=count if isinstance(count, int) and count >= 0 else None)
