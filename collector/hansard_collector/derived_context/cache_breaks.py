"""Breaks of the provider's prompt cache: where the prompts of two calls stop being equal.

What stands behind the break in both was sent before and is paid again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hansard_collector.derived_context.alignment import equal_run
from hansard_store.content.messages import CallRow, MessageRef

# Below this no large provider caches a prefix (provider-apis §1.5), so nothing can be lost.
MIN_CACHEABLE_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class CacheBreak:
    """Where two prompts stop being equal although what follows partly is."""

    position: int  # first message of this call that differs
    lost_tokens: int  # estimate: unchanged messages behind it, read anew
    equal_tokens: int  # estimate: the prefix that both calls share
    cacheable: bool  # the previous prompt was long enough for a provider to cache it


def find_cache_break(
    previous: Sequence[bytes],
    current: Sequence[bytes],
    *,
    unchanged: Sequence[int],
    sizes: Sequence[int],
    previous_sizes: Sequence[int],
) -> CacheBreak | None:
    """Return where two prompts part, unless one simply goes on where the other ends.

    Prompts are hashes of messages, `unchanged` positions in the current one, sizes are tokens.
    """
    equal = equal_run(previous, current)
    if equal in (len(previous), len(current)):
        return None
    return CacheBreak(
        position=equal,
        lost_tokens=sum(sizes[at] for at in unchanged if at >= equal),
        equal_tokens=sum(sizes[:equal]),
        cacheable=sum(previous_sizes) >= MIN_CACHEABLE_TOKENS,
    )


def lost_tokens(
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
