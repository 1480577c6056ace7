"""Derived context (DESIGN §8): what one model call was sent, compared with the call before it.

Two lists of messages are laid side by side by hash. Every message of both appears in exactly one
row. Nothing is claimed that hashes, call ids or the texts themselves do not show: a message whose
source is not found has the origin *unknown*, and what a sender considered and left out is never
guessed at.

Token figures of single messages are estimates (four characters a token), scaled so that they add
up to the billed input where the sender reported it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from hansard_collector.derived_context.alignment import common_subsequence
from hansard_collector.derived_context.cache_breaks import CacheBreak, find_cache_break
from hansard_collector.derived_context.origins import (
    UNKNOWN,
    Origin,
    OriginEvidence,
    Sent,
    origins_of,
)

# How two versions of a text are related: cut short, or similar in their words. All linear.

_WORD = re.compile(r"\w+|[^\w\s]")
_MARKER_CHARS = 200  # what a sender may put where it cut: "… [12,000 characters removed]"
_LEAST_KEPT_CHARS = 20  # less in common than this is chance
_LARGEST_PART = 0.9  # a text that lost less than a tenth was edited, not cut
_SAMPLE_CHARS = 20_000  # of each end of a long text, when words are counted


@dataclass(frozen=True, slots=True)
class _Cut:
    """What remains of a text that was cut short."""

    kept: Literal["beginning", "end", "both ends"]
    characters: int


def cut_of(old: str, new: str) -> _Cut | None:
    """Return what the new text keeps of the old one, or None when it is not a cut of it.

    A short remark of the sender at the cut is allowed for.
    """
    if not old or len(new) > len(old) * _LARGEST_PART:
        return None
    head = common_prefix(old, new)
    tail = common_suffix(old[head:], new[head:])
    # Of a real cut most of what is left must be old text; a remark may not outweigh it.
    remaining = head + tail
    remark = len(new) - remaining
    if remaining < _LEAST_KEPT_CHARS or remark > min(_MARKER_CHARS, remaining):
        return None
    if tail < _LEAST_KEPT_CHARS:
        return _Cut("beginning", head)
    if head < _LEAST_KEPT_CHARS:
        return _Cut("end", tail)
    return _Cut("both ends", remaining)


def common_prefix(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common.

    By halving with slices, which compare at memory speed; a loop over characters would take
    seconds for megabytes.
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(one: str, other: str) -> int:
    """Return how many characters two texts end with in common."""
    return common_prefix(one[::-1], other[::-1])


def similarity(one: str, other: str) -> float:
    """Return the share of words two texts have in common, from 0 to 1 (Dice, by count)."""
    left, right = _words(one), _words(other)
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 0.0


def _words(text: str) -> Counter[str]:
    if len(text) > 2 * _SAMPLE_CHARS:
        text = text[:_SAMPLE_CHARS] + " " + text[-_SAMPLE_CHARS:]
    return Counter(_WORD.findall(text))


CHARS_PER_TOKEN = 4
MESSAGE_OVERHEAD_TOKENS = 4  # role and separators, as both large providers frame a message
_SIMILAR = 0.5  # share of words in common that makes two texts versions of one message
_GAP_WINDOW = 6  # neighbours tried for each changed message, so that pairing stays linear


class ItemChange(StrEnum):
    KEPT = "kept"
    ADDED = "added"
    DROPPED = "dropped"
    REWRITTEN = "rewritten"
    TRUNCATED = "truncated"
    REORDERED = "reordered"


@dataclass(frozen=True, slots=True)
class ProvenanceRow:
    """The outcome of one message. Positions count from 0; None where a side lacks it."""

    change: ItemChange
    previous: int | None
    current: int | None
    same_bytes: bool  # False for a paired message: same words, other ids, reasoning or white space
    cut: _Cut | None = None
    tokens: int = 0  # estimate, in this call; in the previous one for dropped messages
    previous_tokens: int = 0
    origin: Origin = UNKNOWN
    after_break: bool = False  # stands behind the point where the equal prefix ends


@dataclass(frozen=True, slots=True)
class ItemComparison:
    rows: tuple[
        ProvenanceRow, ...
    ]  # in the order of this call; dropped ones after their predecessor
    cache_break: CacheBreak | None
    tokens: int
    previous_tokens: int
    scaled: bool  # tokens add up to the billed input of this call

    def count(self, change: ItemChange) -> int:
        return sum(row.change is change for row in self.rows)

    def tokens_of(self, *changes: ItemChange) -> int:
        return sum(row.tokens for row in self.rows if row.change in changes)


def compare(
    previous: Sequence[Sent],
    current: Sequence[Sent],
    *,
    evidence: OriginEvidence | None = None,
    billed: int | None = None,
    previous_billed: int | None = None,
) -> ItemComparison:
    """Return the outcome of each message between two calls. O(n log n) in the messages."""
    pairs = common_subsequence(
        [message.match_hash for message in previous], [message.match_hash for message in current]
    )
    paired_previous = {at for at, _ in pairs}
    paired_current = {at for _, at in pairs}
    moved = _moved(previous, current, paired_previous, paired_current)
    changed = _changed(
        previous,
        current,
        anchors=pairs,
        left=[at for at in range(len(previous)) if at not in paired_previous | moved.keys()],
        right=[at for at in range(len(current)) if at not in paired_current | set(moved.values())],
    )
    sizes = estimated_tokens(current, billed=billed)
    previous_sizes = estimated_tokens(previous, billed=previous_billed)
    rows = list(_rows(previous, current, paired=pairs, moved=moved, changed=changed))
    rows = [_measured(row, sizes, previous_sizes) for row in rows]
    broken = find_cache_break(
        [one.hash for one in previous],
        [one.hash for one in current],
        unchanged=[
            row.current
            for row in rows
            if row.change in (ItemChange.KEPT, ItemChange.REORDERED) and row.current is not None
        ],
        sizes=sizes,
        previous_sizes=previous_sizes,
    )
    if broken is not None:
        rows = [_placed(row, broken.position) for row in rows]
    origins = origins_of(current, evidence or OriginEvidence())
    previous_origins = origins_of(previous, evidence or OriginEvidence())
    rows = [
        replace(
            row,
            origin=origins[row.current]
            if row.current is not None
            else previous_origins[row.previous or 0],
        )
        for row in rows
    ]
    return ItemComparison(
        rows=tuple(rows),
        cache_break=broken,
        tokens=sum(sizes),
        previous_tokens=sum(previous_sizes),
        scaled=billed is not None,
    )


# ------------------------------------------------------------------------------ which call before


@dataclass(frozen=True, slots=True)
class Candidate:
    """An earlier call, as far as choosing the one to compare with needs it."""

    key: int
    agent_name: str | None
    shared_prefix: int  # messages both calls begin with
    shared: int  # messages both hold anywhere


def best_baseline(candidates: Sequence[Candidate], *, agent_name: str | None) -> Candidate | None:
    """Choose the call that the current one continues; candidates come oldest first.

    Calls of sub-agents stand between those of their parent, so the latest call is often another
    conversation: the longest common beginning decides, then what is shared elsewhere, then the
    agent's name, then recency. A call that shares nothing continues nothing, unless it is the
    latest of the same named agent, whose whole context was replaced.
    """
    related = [
        (one.shared_prefix, one.shared, one.agent_name == agent_name, at)
        for at, one in enumerate(candidates)
        if one.shared or (agent_name is not None and one.agent_name == agent_name)
    ]
    return candidates[max(related)[-1]] if related else None


# ------------------------------------------------------------------------------ tokens


def estimated_tokens(messages: Sequence[Sent], *, billed: int | None) -> list[int]:
    """Estimate each message's tokens; with a billed figure they add up to it exactly."""
    raw = [len(one.text) / CHARS_PER_TOKEN + MESSAGE_OVERHEAD_TOKENS for one in messages]
    scale = billed / sum(raw) if billed is not None and raw else 1.0
    # Rounding the running sum, not each share, is what makes the shares add up.
    sizes = []
    total, shared = 0.0, 0
    for share in raw:
        total += share * scale
        sizes.append(round(total) - shared)
        shared = round(total)
    return sizes


# ------------------------------------------------------------------------------ moved and changed


def _moved(
    previous: Sequence[Sent], current: Sequence[Sent], used_left: set[int], used_right: set[int]
) -> dict[int, int]:
    """Pair what is in both, elsewhere. Only texts that occur once on each side can have moved:
    of two equal ones, one dropped and one added is as true and claims less."""
    left = Counter(message.match_hash for message in previous)
    right = Counter(message.match_hash for message in current)
    places = {
        message.match_hash: at
        for at, message in enumerate(current)
        if at not in used_right and right[message.match_hash] == 1
    }
    return {
        at: places[message.match_hash]
        for at, message in enumerate(previous)
        if at not in used_left and left[message.match_hash] == 1 and message.match_hash in places
    }


@dataclass(frozen=True, slots=True)
class _Changed:
    change: ItemChange
    cut: _Cut | None


def _changed(
    previous: Sequence[Sent],
    current: Sequence[Sent],
    *,
    anchors: Sequence[tuple[int, int]],
    left: Sequence[int],
    right: Sequence[int],
) -> dict[tuple[int, int], _Changed]:
    """Pair the messages of one call only where one is a version of the other."""
    found = {}
    by_call = _results_of_one_call(previous, current, left, right)
    for one, other in by_call.items():
        found[one, other] = _relation(previous[one], current[other]) or _Changed(
            ItemChange.REWRITTEN, None
        )
    taken = set(by_call.values())
    left_gaps = _by_gap([at for at in left if at not in by_call], [one for one, _ in anchors])
    right_gaps = _by_gap([at for at in right if at not in taken], [other for _, other in anchors])
    for gap, members in left_gaps.items():
        found.update(_versions(previous, current, members, right_gaps.get(gap, [])))
    return found


def _results_of_one_call(
    previous: Sequence[Sent], current: Sequence[Sent], left: Sequence[int], right: Sequence[int]
) -> dict[int, int]:
    """A result of the same call id is the same message whatever its text."""
    answers = {current[at].call_ids: at for at in right if current[at].role == "tool"}
    answers.pop((), None)
    found: dict[int, int] = {}
    for at in left:
        if previous[at].role == "tool" and previous[at].call_ids in answers:
            found[at] = answers.pop(previous[at].call_ids)
    return found


def _by_gap(places: Sequence[int], anchors: Sequence[int]) -> dict[int, list[int]]:
    gaps = defaultdict(list)
    for at in places:
        gaps[bisect_left(anchors, at)].append(at)
    return gaps


def _versions(
    previous: Sequence[Sent], current: Sequence[Sent], left: Sequence[int], right: Sequence[int]
) -> dict[tuple[int, int], _Changed]:
    found: dict[tuple[int, int], _Changed] = {}
    for role in {previous[at].role for at in left}:
        olds = [at for at in left if previous[at].role == role]
        news = [at for at in right if current[at].role == role]
        taken: set[int] = set()
        for order, at in enumerate(news):
            for old in _neighbours(olds, order, behind=len(news) - order):
                relation = None if old in taken else _relation(previous[old], current[at])
                if relation is not None:
                    found[old, at] = relation
                    taken.add(old)
                    break
    return found


def _neighbours(olds: Sequence[int], order: int, *, behind: int) -> list[int]:
    """Return the old messages nearest to a place, counted from either end of the gap."""
    nearby = []
    for centre in (order, len(olds) - behind):
        start = max(0, centre - _GAP_WINDOW // 2)
        window = range(start, min(len(olds), start + _GAP_WINDOW))
        nearby += [olds[at] for at in sorted(window, key=lambda at: abs(at - centre))]
    return list(dict.fromkeys(nearby))


def _relation(old: Sent, new: Sent) -> _Changed | None:
    if old.role == "tools":
        return _Changed(ItemChange.REWRITTEN, None)  # there is one list only
    cut = cut_of(old.text, new.text)
    if cut is not None:
        return _Changed(ItemChange.TRUNCATED, cut)
    if similarity(old.text, new.text) >= _SIMILAR:
        return _Changed(ItemChange.REWRITTEN, None)
    return None


# ------------------------------------------------------------------------------ rows


def _rows(
    previous: Sequence[Sent],
    current: Sequence[Sent],
    *,
    paired: Sequence[tuple[int, int]],
    moved: Mapping[int, int],
    changed: Mapping[tuple[int, int], _Changed],
) -> Iterator[ProvenanceRow]:
    """Yield this call's messages in order, each dropped one after what stood before it."""
    partner = {other: one for one, other in paired}
    partner |= {other: one for one, other in moved.items()}
    partner |= {other: one for one, other in changed}
    has_partner = set(partner.values())
    dropped = [at for at in range(len(previous)) if at not in has_partner]
    waiting = 0
    in_order = {other for _, other in paired}
    for at, message in enumerate(current):
        one = partner.get(at)
        if one is not None and (at in in_order or (one, at) in changed):
            while waiting < len(dropped) and dropped[waiting] < one:
                yield _dropped(dropped[waiting])
                waiting += 1
        if one is None:
            yield ProvenanceRow(ItemChange.ADDED, None, at, same_bytes=False)
            continue
        same = previous[one].hash == message.hash
        if (one, at) in changed:
            how = changed[one, at]
            yield ProvenanceRow(how.change, one, at, same_bytes=False, cut=how.cut)
        else:
            change = ItemChange.KEPT if at in in_order else ItemChange.REORDERED
            yield ProvenanceRow(change, one, at, same_bytes=same)
    for at in dropped[waiting:]:
        yield _dropped(at)


def _dropped(at: int) -> ProvenanceRow:
    return ProvenanceRow(ItemChange.DROPPED, at, None, same_bytes=False)


def _measured(
    row: ProvenanceRow, sizes: Sequence[int], previous_sizes: Sequence[int]
) -> ProvenanceRow:
    before = previous_sizes[row.previous] if row.previous is not None else 0
    now = sizes[row.current] if row.current is not None else before
    return replace(row, tokens=now, previous_tokens=before)


def _placed(row: ProvenanceRow, position: int) -> ProvenanceRow:
    return replace(row, after_break=row.current is None or row.current >= position)
