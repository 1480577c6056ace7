"""JSON as a foldable tree: the rows a template needs, bounded however large the value is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

MOST_NODES = 600  # of one value; the rest is counted
_DEEPEST = 12
_LONGEST_TEXT = 2_000
_OPEN_LEVELS = 2
_FEW_CHILDREN = 12  # a small object deeper down stays open as well

Kind = Literal["object", "array", "text", "number", "word", "cut"]


@dataclass(frozen=True, slots=True)
class JsonNode:
    """One value. Objects and arrays have children; everything else its text."""

    kind: Kind
    key: str | None  # name in an object, None elsewhere
    text: str = ""
    size: int = 0  # members of an object or array, characters of a text
    children: tuple[JsonNode, ...] = ()
    is_open: bool = False
    left_out: int = 0  # members that are not shown


def json_tree(value: Any) -> JsonNode:
    """Return a value as nodes, at most MOST_NODES of them, at most so deep."""
    return _Builder().node(None, value, depth=0)


def parsed(value: Any) -> Any:
    """Return the JSON value that a text holds, or the value itself.

    Only objects and arrays count: a text that reads `42` is more likely meant as text.
    """
    if not isinstance(value, str) or value[:1] not in ("{", "[") or len(value) > 4_000_000:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


class _Builder:
    """Counts the nodes it has made, so that one huge value cannot make a huge page."""

    def __init__(self) -> None:
        self._left = MOST_NODES

    def node(self, key: str | None, value: Any, *, depth: int) -> JsonNode:
        self._left -= 1
        if isinstance(value, Mapping):
            return self._members(key, "object", list(value.items()), depth)
        if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
            return self._members(key, "array", [(None, one) for one in value], depth)
        return _leaf(key, value)

    def _members(
        self, key: str | None, kind: Kind, members: Sequence[tuple[Any, Any]], depth: int
    ) -> JsonNode:
        children = []
        for name, value in members:
            if self._left <= 0 or depth >= _DEEPEST:
                break
            children.append(self.node(None if name is None else str(name), value, depth=depth + 1))
        is_small = len(members) <= _FEW_CHILDREN and depth < _OPEN_LEVELS + 1
        return JsonNode(
            kind=kind,
            key=key,
            size=len(members),
            children=tuple(children),
            is_open=depth < _OPEN_LEVELS or is_small,
            left_out=len(members) - len(children),
        )


def _leaf(key: str | None, value: Any) -> JsonNode:
    if isinstance(value, str):
        return JsonNode("text", key, value[:_LONGEST_TEXT], len(value))
    if isinstance(value, bytes | bytearray):
        return JsonNode("text", key, bytes(value[:_LONGEST_TEXT]).hex(), len(value))
    if isinstance(value, bool) or value is None:
        return JsonNode("word", key, {True: "true", False: "false", None: "null"}[value])
    return JsonNode("number", key, repr(value))
