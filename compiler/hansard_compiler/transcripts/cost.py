"""What it costs to go on with a transcript, before it is paid, and when folding pays.

Shares of the price of an uncached input token, the same for the large providers within a few
tenths: reading from the cache 0.1, writing to it 1.25, an output token 5. They decide only when a
fold pays for itself; no money is computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from hansard_compiler.calls import Json
from hansard_compiler.tokens.estimators import estimator_for
from hansard_compiler.tokens.requests import counter_for
from hansard_compiler.transcripts.messages import call_message

WINDOW_TOKENS: Final = 200_000
_READ, _WRITE, _OUTPUT = 0.1, 1.25, 5.0
_SUMMARY_SHARE = 0.05  # of what is folded; a summary is rarely longer
_LEAST_SUMMARY, _MOST_SUMMARY = 300, 2_000  # tokens
_NOW_SHARE, _SOON_SHARE = 0.6, 0.35  # of the window
_WORTH_TURNS = 10  # a fold that pays for itself within so many turns is worth a thought
_LEAST_WORTH = 4_000  # tokens; a fold of fewer is not worth it

Advice = Literal["none", "soon", "now"]


@dataclass(frozen=True, slots=True)
class ResumeCost:
    """Tokens that the next call has as input for the transcript alone: no system prompt, no tools.

    Cold, all are paid in full; warm, the provider's cache has all but the newest.
    """

    tokens: int
    all_tokens: int  # of every message ever: what it would be without folds
    messages: int
    estimator: str
    margin_pct: int
    window_tokens: int
    break_even_turns: int | None  # after which a fold now has paid for itself; None: never
    advice: Advice
    why: str

    @property
    def window_share(self) -> float:
        return self.tokens / self.window_tokens


def resume_cost(
    active: Sequence[Json],
    *,
    provider: str = "",
    model: str = "",
    window_tokens: int = WINDOW_TOKENS,
    folded_tokens: int = 0,
) -> ResumeCost:
    """Return the estimate; `folded_tokens` are those of the messages that a fold replaces."""
    estimator = estimator_for(provider, model)
    tokens = count_tokens(active, provider=provider, model=model)
    turns = break_even_turns(tokens)
    advice, why = _advice(tokens, turns, window_tokens)
    return ResumeCost(
        tokens=tokens,
        all_tokens=tokens + folded_tokens,
        messages=len(active),
        estimator=estimator.name,
        margin_pct=estimator.margin_pct,
        window_tokens=window_tokens,
        break_even_turns=turns,
        advice=advice,
        why=why,
    )


def count_tokens(messages: Sequence[Json], *, provider: str = "", model: str = "") -> int:
    """Return what messages take as input of a model, with the framing that is known of it."""
    if not messages:
        return 0
    counter = counter_for(provider, model)
    return counter.count_request([call_message(one) for one in messages]).total


def break_even_turns(tokens: int) -> int | None:
    """Return after how many more turns folding now is cheaper than not folding.

    Folding reads all once more, writes a summary as output, and the next call writes it to the
    cache; each later turn then reads the difference less.
    """
    summary = min(max(tokens * _SUMMARY_SHARE, _LEAST_SUMMARY), _MOST_SUMMARY)
    saved_a_turn = _READ * (tokens - summary)
    if saved_a_turn <= 0:
        return None
    return math.ceil((_READ * tokens + (_OUTPUT + _WRITE) * summary) / saved_a_turn)


def _advice(tokens: int, turns: int | None, window: int) -> tuple[Advice, str]:
    share = tokens / window
    usage = f"{tokens:,} tokens are {share:.0%} of a window of {window:,}"
    if share >= _NOW_SHARE:
        return "now", f"{usage}: fold before the next long result does not fit"
    if share >= _SOON_SHARE:
        return "soon", f"{usage}: fold at the next resting point"
    if turns is not None and turns <= _WORTH_TURNS and tokens >= _LEAST_WORTH:
        return "soon", f"{usage}; a fold pays for itself after {turns} more turns"
    return "none", usage
