"""Pass 2: refuse what cannot be used, leave out what is not for this compile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from hansard_compiler.compile.errors import (
    InvalidItem,
    ItemTooLarge,
    MissingProvenance,
    RequiredWithheld,
)
from hansard_compiler.compile.items import MICRO, CandidateItem
from hansard_compiler.compile.models import size_bytes
from hansard_compiler.compile.passes.dependencies import inseparable
from hansard_compiler.compile.passes.layout import latest_user_request
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import CompileState, Ruling

_ANY = "*"
_MOST_BYTES_A_CHARACTER = 4


def run(state: CompileState) -> CompileState:
    """Check every item; exclude the expired ones and those of another scope.

    Raises InvalidItem, MissingProvenance or ItemTooLarge: one bad item fails the compile, since
    leaving it out would be a silent decision.
    """
    config = state.request.compile_config
    _refuse(state.live, most_bytes=config.max_item_bytes)
    rulings = not_standing(state.live) | _removed(state)
    for item in state.live:
        if item.scope and item.id not in rulings and not in_scope(item.scope, config.scope):
            rulings[item.id] = _out_of_scope(item, config.scope)
    inside = [item for item in state.live if item.id not in rulings]
    groups = inseparable(state.live)
    required = required_of(inside, kinds=config.required_kinds, groups=groups)
    for item in inside:
        expires_us = item.expires_us
        if expires_us is not None and expires_us <= state.now_us and item.id not in required:
            late_s = (state.now_us - expires_us) // MICRO
            rulings[item.id] = Ruling("exclude", ReasonCode.EXPIRED, f"{late_s} s past its time")
    _take_groups_out(rulings, groups, required)
    return state.after("validate", Ruling("include", ReasonCode.VALID), rulings, required=required)


def _removed(state: CompileState) -> dict[str, Ruling]:
    """Leave out what a replay is to do without, before any other reason."""
    removed = set(state.request.removed_items)
    ruling = Ruling("exclude", ReasonCode.REMOVED_BY_REPLAY)
    return {item.id: ruling for item in state.live if item.id in removed} if removed else {}


def _take_groups_out(
    out: dict[str, Ruling],
    groups: Mapping[str, tuple[str, ...]],
    required: Mapping[str, ReasonCode],
) -> None:
    """Leave out what cannot be parted from what is out: results of a call, reasoning before it."""
    for item_id in list(out):
        for member in groups.get(item_id, ()):
            out.setdefault(member, Ruling("exclude", ReasonCode.GROUP_WITHHELD, related=item_id))
    broken = [one for one in required if one in out]
    if broken:
        raise RequiredWithheld([(one, ReasonCode.GROUP_WITHHELD, ()) for one in broken])


def in_scope(scope: Mapping[str, Any], within: Mapping[str, Any]) -> bool:
    """Return whether every key of an item's scope is met; a key the compile lacks is not."""
    return all(_meets(value, within.get(key)) for key, value in scope.items())


def _meets(expected: Any, value: Any) -> bool:
    if expected == _ANY:
        return True
    if isinstance(expected, list):
        return value in expected
    return value is not None and bool(expected == value)


def _out_of_scope(item: CandidateItem, scope: Mapping[str, Any]) -> Ruling:
    keys = [key for key, value in item.scope.items() if not _meets(value, scope.get(key))]
    return Ruling("exclude", ReasonCode.OUT_OF_SCOPE, f"differs in {', '.join(sorted(keys))}")


def _refuse(items: Sequence[CandidateItem], *, most_bytes: int) -> None:
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


# What may never be dropped, and why.


def required_of(
    items: Sequence[CandidateItem],
    *,
    kinds: Collection[str],
    groups: Mapping[str, tuple[str, ...]],
) -> dict[str, ReasonCode]:
    """Return the items that go in or fail the compile, with what makes them so."""
    required: dict[str, ReasonCode] = {}
    latest = latest_user_request(items)
    for item in items:
        reason = _reason(item, kinds)
        if latest is not None and item.id == latest.id:
            reason = ReasonCode.LATEST_USER_REQUEST
        if reason is not None:
            required[item.id] = reason
    present = {item.id for item in items}
    for item_id in list(required):
        for member in groups.get(item_id, ()):
            if member in present:
                required.setdefault(member, ReasonCode.REQUIRED_GROUP)
    return required


def _reason(item: CandidateItem, kinds: Collection[str]) -> ReasonCode | None:
    if item.kind == "constraint" and "soft" not in item.tags:
        return ReasonCode.HARD_CONSTRAINT
    if item.kind == "tool_result" and "blocking" in item.tags and "resolved" not in item.tags:
        return ReasonCode.BLOCKING_TOOL_RESULT
    if item.kind == "policy" and "required" in item.tags:
        return ReasonCode.REQUIRED_POLICY
    return ReasonCode.REQUIRED_KIND if item.kind in kinds else None


# Memories that do not hold: part of a compile so that its receipts say why they are out.

STATE_KEY: Final = "memory_state"  # in an item's metadata; see memory_models.as_compile_record
_REASONS: Final = {
    "superseded": ReasonCode.SUPERSEDED,
    "invalidated": ReasonCode.INVALIDATED,
    "expired": ReasonCode.EXPIRED,
    "review": ReasonCode.REVIEW_PENDING,
}


def not_standing(items: Iterable[CandidateItem]) -> dict[str, Ruling]:
    """Return why memories are to be left out, by their records; those that hold are not in.

    Nothing required is spared: a constraint that a person took back is none.
    """
    rulings: dict[str, Ruling] = {}
    for item in items:
        if item.kind != "memory":
            continue
        reason = _REASONS.get(str(item.metadata.get(STATE_KEY)))
        if reason is not None:
            related = item.metadata.get("related_item_id")
            note = item.metadata.get("ended_reason")
            rulings[item.id] = Ruling(
                "exclude",
                reason,
                note=str(note) if note else None,
                related=str(related) if related else None,
            )
    return rulings
