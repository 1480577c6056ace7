"""How often the prompts of one run broke the provider's cache, and what that cost in tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apsw

from hansard_collector.derived_context.alignment import equal_run
from hansard_collector.derived_context.context import baseline_of, said, says_something
from hansard_collector.derived_context.provenance import (
    CHARS_PER_TOKEN,
    MESSAGE_OVERHEAD_TOKENS,
    MIN_CACHEABLE_TOKENS,
)
from hansard_store.content.messages import (
    CallRow,
    MessageRef,
    list_ancestry,
    list_calls,
    read_chains,
    read_messages,
)
from hansard_store.steps.flags import SpanFlag

# Larger runs are not summed up: the answer would take longer than the page that asks for it.
_MOST_CALLS = 150
_MOST_TEXTS = 4_000


@dataclass(frozen=True, slots=True)
class RunBreaks:
    """Figures of a whole run; tokens are estimates as in provenance.py."""

    calls: int
    breaks: int
    lost_tokens: int


def run_breaks(connection: apsw.Connection, run: int) -> RunBreaks | None:
    """Return what cache breaks cost a run; None for runs too large to sum up on the way.

    Each call is laid beside the one it continues: they part where their equal beginning ends, and
    what stood behind it in both was paid again.
    """
    calls = [
        call
        for call in list_calls(connection, run)
        if call.role == "llm" and says_something(call) and not call.flags & SpanFlag.DUPLICATE
    ]
    if len(calls) > _MOST_CALLS:
        return None
    chains = read_chains(connection, [call.input_prefix for call in calls])
    texts = {ref.text for chain in chains.values() for ref in chain}
    if len(texts) > _MOST_TEXTS:
        return None
    sizes = {
        text: len(said(message)) / CHARS_PER_TOKEN + MESSAGE_OVERHEAD_TOKENS
        for text, message in read_messages(connection, texts).items()
    }
    ancestry = list_ancestry(connection, run)
    lost = []
    for at, call in enumerate(calls):
        before = baseline_of(call, calls[:at], chains, ancestry)
        if before is not None:
            lost.append(_lost(call, before, chains, sizes))
    broken = [tokens for tokens in lost if tokens is not None]
    return RunBreaks(len(calls), len(broken), sum(broken))


def _lost(
    call: CallRow,
    before: CallRow,
    chains: Mapping[int, Sequence[MessageRef]],
    sizes: Mapping[int, float],
) -> int | None:
    """Return the tokens that were the same and paid again; None where nothing broke."""
    own, old = chains.get(call.input_prefix or 0, []), chains.get(before.input_prefix or 0, [])
    equal = equal_run([ref.text for ref in own], [ref.text for ref in old])
    if equal in (len(own), len(old)):
        return None
    if _billed(before, old, sizes) < MIN_CACHEABLE_TOKENS:
        return None
    known = {ref.match_hash for ref in old}
    again = sum(sizes[ref.text] for ref in own[equal:] if ref.match_hash in known)
    whole = sum(sizes[ref.text] for ref in own)
    return round(again * _billed(call, own, sizes) / whole) if whole else 0


def _billed(call: CallRow, chain: Sequence[MessageRef], sizes: Mapping[int, float]) -> float:
    estimate = sum(sizes[ref.text] for ref in chain)
    return estimate if call.tokens_input is None else call.tokens_input
