"""Pass 2: refuse what cannot be used, leave out what is not for this compile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hansard_compiler.compile_errors import (
    InvalidItem,
    ItemTooLarge,
    MissingProvenance,
    RequiredWithheld,
)
from hansard_compiler.dependencies import inseparable
from hansard_compiler.items import MICRO, Item
from hansard_compiler.memory_standing import not_standing
from hansard_compiler.models import size_bytes
from hansard_compiler.reasons import ReasonCode
from hansard_compiler.required import required_of
from hansard_compiler.state import State, Told

_ANY = "*"
_MOST_BYTES_A_CHARACTER = 4


def run(state: State) -> State:
    """Check every item; exclude the expired ones and those of another scope.

    Raises InvalidItem, MissingProvenance or ItemTooLarge: one bad item fails the compile, since
    leaving it out would be a decision nobody made.
    """
    config = state.request.compile_config
    _refuse(state.live, most_bytes=config.max_item_bytes)
    told = not_standing(state.live) | _removed(state)
    for item in state.live:
        if item.scope and item.id not in told and not in_scope(item.scope, config.scope):
            told[item.id] = _out_of_scope(item, config.scope)
    inside = [item for item in state.live if item.id not in told]
    groups = inseparable(state.live)
    required = required_of(inside, kinds=config.required_kinds, groups=groups)
    for item in inside:
        expires_us = item.expires_us
        if expires_us is not None and expires_us <= state.now_us and item.id not in required:
            late_s = (state.now_us - expires_us) // MICRO
            told[item.id] = Told("exclude", ReasonCode.EXPIRED, f"{late_s} s past its time")
    _take_groups_out(told, groups, required)
    return state.after("validate", Told("include", ReasonCode.VALID), told, required=required)


def _removed(state: State) -> dict[str, Told]:
    """Leave out what a replay is to do without, whatever else would be said of it."""
    removed = set(state.request.removed_items)
    told = Told("exclude", ReasonCode.REMOVED_BY_REPLAY)
    return {item.id: told for item in state.live if item.id in removed} if removed else {}


def _take_groups_out(
    told: dict[str, Told], groups: Mapping[str, tuple[str, ...]], required: Mapping[str, ReasonCode]
) -> None:
    """Leave out what cannot be parted from what is out: results of a call, reasoning before it."""
    for item_id in list(told):
        for member in groups.get(item_id, ()):
            told.setdefault(member, Told("exclude", ReasonCode.GROUP_WITHHELD, related=item_id))
    broken = [one for one in required if one in told]
    if broken:
        raise RequiredWithheld([(one, ReasonCode.GROUP_WITHHELD, ()) for one in broken])


def in_scope(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Say whether every key of an item's scope is met; a key the compile lacks is not."""
    return all(_meets(value, given.get(key)) for key, value in wanted.items())


def _meets(wanted: Any, given: Any) -> bool:
    if wanted == _ANY:
        return True
    if isinstance(wanted, list):
        return given in wanted
    return given is not None and bool(wanted == given)


def _out_of_scope(item: Item, scope: Mapping[str, Any]) -> Told:
    keys = [key for key, value in item.scope.items() if not _meets(value, scope.get(key))]
    return Told("exclude", ReasonCode.OUT_OF_SCOPE, f"differs in {', '.join(sorted(keys))}")


def _refuse(items: Sequence[Item], *, most_bytes: int) -> None:
    item_ids = [item.id for item in items]
    if len(set(item_ids)) < len(items):
        counts = Counter(item_ids)
        twice = next(item_id for item_id in item_ids if counts[item_id] > 1)
        raise InvalidItem(twice, field="id", what=f"is used by {counts[twice]} items")
    unsourced = [item.id for item in items if item.source is None]
    if unsourced:
        raise MissingProvenance(unsourced, of=len(items))
    for item in items:
        if len(item.text) * _MOST_BYTES_A_CHARACTER <= most_bytes and item.content is item.text:
            continue
        found_bytes = size_bytes(item.content)
        if found_bytes > most_bytes:
            raise ItemTooLarge(item.id, found_bytes=found_bytes, most_bytes=most_bytes)
