"""What the address of the memory page says: filters, sort, and where it is read on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote, urlencode

FIELDS: Final = (
    "q", "layer", "state", "type", "project", "user", "agent", "writer", "slot", "tag", "run",
    "approval", "min_confidence", "fresh_since", "unread_since", "sort", "cursor",
)  # fmt: skip
_LONGEST: Final = 512
# `kind:constraint` typed among the words is the filter of that name.
_TYPED: Final = re.compile(
    r"\b(kind|type|writer|project|user|agent|tag|state|run|approval|slot|confidence):>?(\"[^\"]*\"|\S+)"
)
_NAMES: Final = {"kind": "type", "confidence": "min_confidence"}


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The filters that are on, by their names in the address."""

    given: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str:
        return self.given.get(name, "")

    def address(self, memory_id: str = "", verb: str = "") -> str:
        """Return the page with these filters, and a record beside it; or where its form goes."""
        path = "/".join(("/memory", *(quote(one) for one in (memory_id, verb) if one)))
        return f"{path}?{urlencode(self.given)}" if self.given else path

    def having(self, **changes: str) -> MemoryState:
        """Return the same from its first page, with filters put on, or taken off by ""."""
        kept = {**self.given, "cursor": "", **changes}
        return replace(self, given={key: value for key, value in kept.items() if value})


def read_state(query: Mapping[str, str]) -> MemoryState:
    """Return the state that an address tells; filters typed among the words are taken out."""
    given = {name: query.get(name, "").strip()[:_LONGEST] for name in FIELDS}
    for name, value in _TYPED.findall(given["q"]):
        given[_NAMES.get(name, name)] = value.strip('"')
    given["q"] = " ".join(_TYPED.sub(" ", given["q"]).split())
    return MemoryState({name: value for name, value in given.items() if value})
