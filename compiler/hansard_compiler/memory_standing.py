"""Memories that do not stand: given to a compile so that its receipts say why they are out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hansard_compiler.items import Item
from hansard_compiler.reasons import ReasonCode
from hansard_compiler.state import Told

STATE_KEY: Final = "memory_state"  # in an item's metadata; see memory_models.as_compile_record
_REASONS: Final = {
    "superseded": ReasonCode.SUPERSEDED,
    "invalidated": ReasonCode.INVALIDATED,
    "expired": ReasonCode.EXPIRED,
    "review": ReasonCode.REVIEW_PENDING,
}


def not_standing(items: Iterable[Item]) -> dict[str, Told]:
    """Return why memories are to be left out, as their records tell; those that stand are not in.

    Nothing required is spared: a constraint that a person took back is none.
    """
    told: dict[str, Told] = {}
    for item in items:
        if item.kind != "memory":
            continue
        reason = _REASONS.get(str(item.metadata.get(STATE_KEY)))
        if reason is not None:
            related = item.metadata.get("related_item_id")
            note = item.metadata.get("ended_reason")
            told[item.id] = Told(
                "exclude",
                reason,
                note=str(note) if note else None,
                related=str(related) if related else None,
            )
    return told
