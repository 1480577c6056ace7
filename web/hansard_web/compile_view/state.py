"""What the page of a compile shows, as its address says it: `?decision= q= order= group= item= …`.

Values that make no sense (a hand-edited address) fall back to their default; a page is never
refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from hansard_web.ui.format import natural

ORDERS: Final = {
    "place": "place in the prompt",
    "score": "score",
    "tokens": "tokens",
    "missed": "missed by",
    "item": "name",
}
GROUPS: Final = {
    "place": "section",
    "decision": "decision",
    "reason": "reason",
    "pass": "pass",
    "kind": "kind",
    "none": "nothing",
}
TEXTS: Final = ("changes", "sent", "original")
PAGE_ROWS: Final = 40  # three screens; each has its score written out: more take longer to paint
_LONGEST = 512  # of what an address may name: an item's id


@dataclass(frozen=True, slots=True)
class ContextState:
    """The state of a compile's page. Filters are empty where they let everything through."""

    decision: str = ""
    reason: str = ""
    at_pass: str = ""
    kind: str = ""
    find: str = ""
    order: str = "place"
    is_reversed: bool = False
    group: str = "place"
    item: str = ""  # id of the item that is looked at closely
    text: str = TEXTS[0]
    first: int = 0  # rows before the page
    shows_request: bool = False  # what was sent is unfolded

    @property
    def is_filtered(self) -> bool:
        return bool(self.decision or self.reason or self.at_pass or self.kind or self.find)

    def pairs(self) -> list[tuple[str, str]]:
        """Return the canonical query: defaults are left out, the order is fixed."""
        order = ("-" if self.is_reversed else "") + self.order
        found = [
            ("decision", self.decision),
            ("reason", self.reason),
            ("pass", self.at_pass),
            ("kind", self.kind),
            ("q", self.find),
            ("order", "" if order == "place" else order),
            ("group", "" if self.group == "place" else self.group),
            ("first", str(self.first) if self.first else ""),
            ("item", self.item),
            ("text", "" if self.text == TEXTS[0] or not self.item else self.text),
            ("show", "request" if self.shows_request else ""),
        ]
        return [(key, value) for key, value in found if value]

    def but(self, **changes: Any) -> ContextState:
        """Return this state with some fields changed; the page is kept only with the item."""
        keeps_page = changes.keys() <= {"item", "text", "shows_request"}
        return replace(self, **({} if keeps_page else {"first": 0}) | changes)

    def address(self, path: str, **changes: Any) -> str:
        """Return the address of the page in this state, with some fields changed."""
        query = urlencode(self.but(**changes).pairs())
        return f"{path}?{query}" if query else path


def parse_context_state(query: Mapping[str, str]) -> ContextState:
    """Read the state from a query; what makes no sense is left at its default."""
    order = query.get("order", "")
    name = order.removeprefix("-")
    return ContextState(
        decision=_text(query, "decision"),
        reason=_text(query, "reason"),
        at_pass=_text(query, "pass"),
        kind=_text(query, "kind"),
        find=" ".join(_text(query, "q").split()),
        order=name if name in ORDERS else "place",
        is_reversed=name in ORDERS and order.startswith("-"),
        group=query["group"] if query.get("group") in GROUPS else "place",
        item=_text(query, "item"),
        text=query["text"] if query.get("text") in TEXTS else TEXTS[0],
        first=natural(query.get("first", ""), digits=7) or 0,
        shows_request=query.get("show") == "request",
    )


def _text(query: Mapping[str, str], name: str) -> str:
    return query.get(name, "")[:_LONGEST]
