"""What people call an item whose id is only a hash: a result by its tool, a message by its words.

The names come from the stored request of a compile; where that is not here, the id has to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from hansard_compiler.canonical import canonical_json
from hansard_compiler.compile.models import CompilationRequest, ContextItem
from hansard_compiler.diff import ItemDiff
from hansard_web.compile_view.labels import kind_words
from hansard_web.ui.format import shorten

_CHARS: Final = 60
# `user_msg:6f1e…`, 16 digits, where the caller of a compile named nothing; memories have 32.
_MADE_ID: Final = re.compile(
    r"(?:[a-z_]+:(?=[0-9a-f]{16}(?:#|$))|(?=[0-9a-f]{32}$))([0-9a-f]{8})[0-9a-f]+(?:#[0-9]+)?",
    re.ASCII,
)


class ItemNames:
    """The names of the items of some compiles, each made when it is asked for."""

    def __init__(self, *requests: CompilationRequest | None) -> None:
        here = [one for one in requests if one is not None]
        self._items = {item.id: item for one in here for item in one.context_items}
        self._subjects = {
            record.id: record.subject for one in here for record in one.memory_records
        }

    def of(self, one: ItemDiff) -> str:
        """Return what to call an item of a comparison."""
        side = one.right or one.left
        return self.name(one.item_id, None if side is None else side.kind)

    def name(self, item_id: str, kind: str | None) -> str:
        """Return what to call an item: its id, unless that says nothing or is a memory's."""
        if subject := self._subjects.get(item_id):
            return f"memory “{shorten(subject, _CHARS)}”"
        made = _MADE_ID.fullmatch(item_id)
        if made is None:
            return item_id
        item = self._items.get(item_id)
        return (item and self._said(item)) or f"{kind_words(kind)} {made[1]}"

    def _said(self, item: ContextItem) -> str:
        parts = _parts(item)
        said = " ".join(filter(None, map(_words, parts))) or _text(item.content)
        quoted = f"“{shorten(said, _CHARS)}”" if said.strip() else ""
        result = next((one for one in parts if one.get("type") == "tool_result"), None)
        if result is None:
            return f"{kind_words(item.kind)} {quoted}" if quoted else ""
        call_id = str(result.get("id") or "")
        tool = self._tools.get(call_id) or str(result.get("name") or "a tool")
        return " ".join(filter(None, ("result of", tool, shorten(call_id, _CHARS), quoted)))

    @cached_property
    def _tools(self) -> dict[str, str]:
        """The tool of each call that is made in the conversation, by its id."""
        return {
            str(part["id"]): str(part.get("name") or "")
            for item in self._items.values()
            for part in _parts(item)
            if part.get("type") == "tool_call" and part.get("id")
        }


def _words(part: Mapping[str, Any]) -> str:
    """Return what a part of a message says; a call as `get {"k":7}`."""
    if part.get("type") == "tool_call":
        return f"{part.get('name')} {_text(part.get('arguments'))}".rstrip()
    return _text(part.get("text") or part.get("content"))


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, dict) and set(content) == {"path"}:
        return str(content["path"])
    return content if isinstance(content, str) else canonical_json(content)


def _parts(item: ContextItem) -> list[Mapping[str, Any]]:
    content = item.content
    parts = content.get("parts") if isinstance(content, dict) else None
    return [one for one in parts if isinstance(one, dict)] if isinstance(parts, list) else []
