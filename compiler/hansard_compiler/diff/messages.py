"""Two lists of messages side by side, across calls, libraries and dialects.

A message has two digests: `hash` over its whole normal form, and `match_hash` over what was said,
without ids, reasoning, signatures and white space (`calls.Message`). Equal `match_hash` is one
message; an other `hash` beside it means that the wording differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hansard_compiler.diff.sequences import align

MessageState = Literal["same", "retold", "changed", "moved", "only_left", "only_right"]


class MessageMark(NamedTuple):
    """What a message is recognised by."""

    hash: bytes
    match_hash: bytes
    role: str


@dataclass(frozen=True, slots=True)
class MessagePair:
    """Two places in two lists of messages, or one in one of them.

    `retold`: the same was said, with other ids, parts or reasoning. `moved`: it stands elsewhere.
    """

    state: MessageState
    left: int | None
    right: int | None


def align_messages(
    left: Sequence[MessageMark], right: Sequence[MessageMark]
) -> tuple[MessagePair, ...]:
    """Return every message of both sides once, in the order of the conversation."""
    aligned = align([one.match_hash for one in left], [one.match_hash for one in right])
    pairs: list[tuple[int, int]] = []
    at = other = 0
    for one, two in [*aligned, (len(left), len(right))]:
        roles = align([m.role for m in left[at:one]], [m.role for m in right[other:two]])
        pairs += ((at + i, other + j) for i, j in roles)
        if one < len(left):
            pairs.append((one, two))
        at, other = one + 1, two + 1
    return tuple(_listed(left, right, _without_moved(left, right, pairs)))


def _without_moved(
    left: Sequence[MessageMark], right: Sequence[MessageMark], pairs: Sequence[tuple[int, int]]
) -> dict[int, tuple[int, bool]]:
    """Return left -> (right, whether it moved); a message that moved is no change."""
    matched = {i: (j, False) for i, j in pairs if left[i].match_hash == right[j].match_hash}
    taken = {j for j, _ in matched.values()}
    elsewhere: dict[bytes, list[int]] = {}
    for j in range(len(right) - 1, -1, -1):
        if j not in taken:
            elsewhere.setdefault(right[j].match_hash, []).append(j)
    for i, one in enumerate(left):
        if i not in matched and elsewhere.get(one.match_hash):
            matched[i] = (elsewhere[one.match_hash].pop(), True)
    taken = {j for j, _ in matched.values()}
    rest = {i: (j, False) for i, j in pairs if i not in matched and j not in taken}
    return matched | rest


def _listed(
    left: Sequence[MessageMark],
    right: Sequence[MessageMark],
    pairs: dict[int, tuple[int, bool]],
) -> Iterator[MessagePair]:
    """Yield pairs in the order of the left; what is only on the right, in its own order."""
    partner = {j: i for i, (j, _) in pairs.items()}
    shown = 0
    for i in range(len(left)):
        if i not in pairs:
            yield MessagePair("only_left", i, None)
            continue
        j, is_moved = pairs[i]
        if is_moved:
            yield MessagePair("moved", i, j)
            continue
        yield from (MessagePair("only_right", None, k) for k in range(shown, j) if k not in partner)
        shown = j + 1
        yield MessagePair(_state(left[i], right[j]), i, j)
    yield from (
        MessagePair("only_right", None, k) for k in range(shown, len(right)) if k not in partner
    )


def _state(left: MessageMark, right: MessageMark) -> MessageState:
    if left.hash == right.hash:
        return "same"
    return "retold" if left.match_hash == right.match_hash else "changed"
