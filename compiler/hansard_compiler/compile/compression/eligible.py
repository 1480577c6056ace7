"""Which items may be shortened: a closed list; everything else is taken whole or left out."""

from __future__ import annotations

from collections.abc import Callable

from hansard_compiler.compile.items import Item
from hansard_compiler.compile.state import State

# Only these kinds, and of them not what is marked as evidence, blocking, an approval or pinned.
COMPRESSIBLE = frozenset({"retrieval_doc", "user_msg", "assistant_msg", "artifact", "summary",
                          "tool_result"})  # fmt: skip
_CONVERSATION = frozenset({"user_msg", "assistant_msg", "tool_result"})
_NEVER = frozenset({"evidence", "approval", "blocking", "verbatim"})


def may_compress(state: State) -> Callable[[Item], bool]:
    """Return the rule of one compile: which of its items may be shortened."""
    settings = state.request.compile_config.compression
    asked = sorted(
        (item.created_us for item in state.live if item.kind == "user_msg"), reverse=True
    )
    turns = settings.fresh_turns
    current_us = asked[min(turns, len(asked)) - 1] if asked and turns else None

    def may(item: Item) -> bool:
        if not settings.enabled or item.kind not in COMPRESSIBLE or item.id in state.required:
            return False
        if item.tags & _NEVER or not _is_text(item):
            return False
        if item.source is not None and item.source.source_type == "human_approval":
            return False
        if item.kind in _CONVERSATION:
            # Without a user's turn to count from, everything said is old.
            return current_us is None or item.created_us < current_us
        return True

    return may


def _is_text(item: Item) -> bool:
    """Say whether an item is one text: not a call, not reasoning, not media, not JSON."""
    if isinstance(item.content, str):
        return len(item.answers) < 2
    parts = item.content.get("parts")
    if item.kind not in _CONVERSATION or not isinstance(parts, list):
        return False
    types = [part.get("type") if isinstance(part, dict) else None for part in parts]
    return types == ["tool_result"] or all(one == "text" for one in types)
