"""What may never be dropped, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hansard_compiler.items import Item
from hansard_compiler.layout import latest_user_request
from hansard_compiler.reasons import ReasonCode


def required_of(
    items: Sequence[Item],
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


def _reason(item: Item, kinds: Collection[str]) -> ReasonCode | None:
    if item.kind == "constraint" and "soft" not in item.tags:
        return ReasonCode.HARD_CONSTRAINT
    if item.kind == "tool_result" and "blocking" in item.tags and "resolved" not in item.tags:
        return ReasonCode.BLOCKING_TOOL_RESULT
    if item.kind == "policy" and "required" in item.tags:
        return ReasonCode.REQUIRED_POLICY
    return ReasonCode.REQUIRED_KIND if item.kind in kinds else None
