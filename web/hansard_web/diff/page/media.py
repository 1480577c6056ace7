"""Images, sound and files of two steps: those that only one of them has, and how many are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from hansard_web.diff.steps import StepDiff, StepSide
from hansard_web.steps.values import io_value
from hansard_web.ui.messages import (
    Block,
    MediaBlock,
    ShownCall,
    StoredMedia,
    ToolCard,
    show_message,
    value_block,
)

PayloadLookup = Callable[[str], StoredMedia | str]

_MOST_SHOWN: Final = 12  # of one side
_MOST_MESSAGES: Final = 200  # of one side, the newest
_VALUES: Final = ("arguments", "result", "input", "output")


@dataclass(frozen=True, slots=True)
class MediaDiff:
    left: tuple[MediaBlock, ...]  # that only A has
    right: tuple[MediaBlock, ...]
    same: int
    more: int  # that differ, and are not shown


def media_diff(
    diff: StepDiff, payloads: PayloadLookup | None, *, is_saved: bool = False
) -> MediaDiff | None:
    """Compare media by digest, or by reference where the bytes are elsewhere; None without any.

    In a saved file the bytes are described only: it has no server to load them from.
    """
    left, right = (_media_of(side, payloads) for side in (diff.left, diff.right))
    if not left and not right:
        return None
    only_left = tuple(block for key, block in left.items() if key not in right)
    only_right = tuple(block for key, block in right.items() if key not in left)
    shown = only_left[:_MOST_SHOWN], only_right[:_MOST_SHOWN]
    if is_saved:
        shown = _described(shown[0]), _described(shown[1])
    more = len(only_left) + len(only_right) - len(shown[0]) - len(shown[1])
    return MediaDiff(*shown, same=len(left.keys() & right.keys()), more=more)


def _described(blocks: tuple[MediaBlock, ...]) -> tuple[MediaBlock, ...]:
    return tuple(replace(one, href=None, view="file") for one in blocks)


def _media_of(side: StepSide, payloads: PayloadLookup | None) -> dict[str, MediaBlock]:
    found: dict[str, MediaBlock] = {}
    for block in _blocks(side, payloads):
        for one in _media_in(block):
            found.setdefault(one.digest or one.reference or f"{one.media_type} {one.size}", one)
    return found


def _blocks(side: StepSide, payloads: PayloadLookup | None) -> Iterator[Block | ToolCard]:
    address = f"/v1/steps/{side.step.step_id}/media"
    if side.reading.normal.call is None:
        for part in _VALUES:
            yield value_block(io_value(side.reading, part), rest=None, media=f"{address}/{part}")
        return
    for name, messages in (("sent", side.messages), ("answer", side.answers)):
        first = max(len(messages) - _MOST_MESSAGES, 0)
        for at, message in enumerate(messages[first:], first):
            shown = show_message(
                message, calls=ShownCall(payloads=payloads), media=f"{address}/{name}-{at}"
            )
            yield from shown.blocks


def _media_in(block: Block | ToolCard) -> Iterator[MediaBlock]:
    if isinstance(block, MediaBlock):
        yield block
    elif isinstance(block, ToolCard):
        for inner in (*((block.arguments,) if block.arguments else ()), *block.result):
            yield from _media_in(inner)
    else:
        yield from block.media
