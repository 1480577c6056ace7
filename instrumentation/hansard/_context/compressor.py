"""Shortening items by asking a model, each call a step of its own inside the compile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hansard._models.call import adapter_of, call_model
from hansard._runtime.warnings import warn_once
from hansard_compiler.calls import Message, TextPart
from hansard_compiler.providers.base import RenderInput, Sampling
from hansard_compiler.providers.transport.failures import ProviderError

if TYPE_CHECKING:
    from hansard_compiler.compile.ports import Compressor, TokenCounter
    from hansard_compiler.providers.adapter import Adapter

INSTRUCTIONS: Final = (
    "Shorten the text you are given to at most {tokens} tokens. Keep names, numbers, identifiers, "
    "negations and open questions as they are, and invent nothing. What matters is what helps with "
    "this: {query}\nAnswer with the shortened text alone."
)
_UNSAID = "(no task was given: keep what the text is mainly about)"


def model_compressor(provider: str | Adapter, model: str, **sampling: int | float) -> Compressor:
    """Return a compressor for `compile_step(compressor=…)` that calls a model.

    A compile with it is not repeatable: its span says so (`hansard.compilation.ports`). A failed or
    truncated answer, or an empty one, never replaces its source: the item is taken or left as it
    is. `sampling` are fields of Sampling.
    """
    adapter, options = adapter_of(provider), Sampling(**sampling)  # type: ignore[arg-type]

    def compress(text: str, *, query: str, target_tokens: int, counter: TokenCounter) -> str | None:
        system = INSTRUCTIONS.format(tokens=target_tokens, query=query or _UNSAID)
        request = RenderInput(
            model=model,
            system=(system,),
            messages=(Message("user", (TextPart(text),)),),
            sampling=options,
        )
        try:
            response = call_model(request, provider=adapter)
        except ProviderError as error:
            warn_once(
                f"compressor {type(error).__name__}",
                "an item was not shortened, the model did not answer: %s",
                type(error).__name__,
            )
            return None
        return None if response.shortfall else response.text.strip() or None

    return compress
