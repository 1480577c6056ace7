"""Calls of models made to judge something: each a recorded step, all of them counted."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from hansard_collector.derivation.cost import computed_cost
from hansard_collector.judges.errors import InvalidJudgement
from hansard_compiler.calls import Message, TextPart, Tokens
from hansard_compiler.providers.base import RenderInput, Sampling

if TYPE_CHECKING:
    from hansard._runtime.recorder import Recorder
    from hansard_compiler.providers.adapter import Adapter
    from hansard_compiler.providers.transport.exchange import ProviderResponse

_FENCE: Final = "```"
_MOST_TOKENS: Final = 2_000  # of an answer; reasoning counts among them
_LONGEST_ANSWER: Final = 100_000  # characters; what was requested takes a few hundred


@dataclass(frozen=True, slots=True)
class JudgeUsage:
    """What calls of models took; cost is None where a price is unknown."""

    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    ms: float = 0.0
    cost_usd: float | None = 0.0

    def since(self, before: JudgeUsage) -> JudgeUsage:
        """Return what was added since an earlier count."""
        is_known = self.cost_usd is not None and before.cost_usd is not None
        cost = (self.cost_usd or 0.0) - (before.cost_usd or 0.0)
        return JudgeUsage(
            self.calls - before.calls,
            self.failed - before.failed,
            self.input_tokens - before.input_tokens,
            self.output_tokens - before.output_tokens,
            round(self.ms - before.ms, 1),
            round(cost, 9) if is_known else None,
        )

    def json(self) -> dict[str, Any]:
        """Return it as figures; without a call nothing but their number."""
        if not self.calls:
            return {"model_calls": 0}
        return {
            "model_calls": self.calls,
            "failed_calls": self.failed,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "model_ms": round(self.ms, 1),
            "cost_usd": self.cost_usd,
        }


@dataclass(slots=True)
class CallCounter:
    """Counts the calls of the judges that share it; used by one thread at a time."""

    usage: JudgeUsage = field(default_factory=JudgeUsage)

    def add(self, tokens: Tokens, *, provider: str, model: str, ms: float) -> None:
        """Count a completed call."""
        cost = computed_cost(tokens, provider=provider, model=model, at_ns=time.time_ns())
        total = self.usage.cost_usd
        self.usage = replace(
            self.usage,
            calls=self.usage.calls + 1,
            input_tokens=self.usage.input_tokens + (tokens.input or 0),
            output_tokens=self.usage.output_tokens + (tokens.output or 0),
            ms=self.usage.ms + ms,
            cost_usd=None if total is None or cost is None else total + cost.usd,
        )

    def add_failure(self, ms: float) -> None:
        """Count a call that failed."""
        now = self.usage
        self.usage = replace(now, calls=now.calls + 1, failed=now.failed + 1, ms=now.ms + ms)


@dataclass(frozen=True, slots=True)
class ModelCaller:
    """Calls one model; with a recorder each call is a step below the current span."""

    adapter: Adapter
    model: str
    counter: CallCounter
    recorder: Recorder | None = None

    @property
    def name(self) -> str:
        """Provider and model, for the record of what a model judged."""
        return f"{self.adapter.provider}:{self.model}"

    def recorded_by(self, recorder: Recorder) -> ModelCaller:
        """Return the same with its calls recorded."""
        return replace(self, recorder=recorder)

    def ask(self, system: str, user: str) -> Any:
        """Return the JSON of the model's response. Raises ProviderError, InvalidJudgement."""
        request = RenderInput(
            model=self.model,
            system=(system,),
            messages=(Message("user", (TextPart(user),)),),
            sampling=Sampling(max_output_tokens=_MOST_TOKENS),
        )
        began_s = time.perf_counter()
        try:
            response = self._answer(request)
        except Exception:
            self.counter.add_failure(1_000 * (time.perf_counter() - began_s))
            raise
        self.counter.add(
            response.call.tokens,
            provider=self.adapter.provider,
            model=response.call.response_model or self.model,
            ms=1_000 * (time.perf_counter() - began_s),
        )
        if response.shortfall is not None:
            raise response.shortfall
        return self._json("\n".join(one.text for one in response.call.output if one.text))

    def _answer(self, request: RenderInput) -> ProviderResponse:
        if self.recorder is None:
            return self.adapter.call(request)
        from hansard._models.call import call_into

        return call_into(self.recorder, request, provider=self.adapter, on_begin=lambda _: None).raw

    def _json(self, text: str) -> Any:
        """Read a response that is JSON and nothing else, or that alone inside one code fence."""
        body = text.strip()
        if body.startswith(_FENCE) and body.endswith(_FENCE) and body.count(_FENCE) == 2:
            first, _, body = body.removesuffix(_FENCE).partition("\n")
            if first.removeprefix(_FENCE).strip() not in ("", "json"):
                raise InvalidJudgement(self.name, "it is not JSON")
        try:
            if len(body) > _LONGEST_ANSWER:
                raise ValueError
            return json.loads(body)
        except (ValueError, RecursionError):
            raise InvalidJudgement(self.name, "it is not JSON") from None

    def close(self) -> None:
        """Close connections; the next call opens new ones."""
        self.adapter.close()
