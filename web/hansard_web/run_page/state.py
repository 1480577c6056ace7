"""What a run page shows, as its address says it: `?view= span= tab= from= to= q= shut= …`.

Every state is in the URL, so links, Back and people without JavaScript need nothing special. Values
that make no sense (a hand-edited address) fall back to their default; a page is never refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal
from urllib.parse import urlencode

from hansard_web.ui.format import natural

View = Literal["tree", "conversation", "log", "graph"]

VIEWS: Final[tuple[View, ...]] = ("tree", "conversation", "log", "graph")
TABS: Final = ("conversation", "context", "io", "attributes", "events", "raw")
LINES: Final = ("steps", "events", "logs")
WINDOW_ROWS: Final = 200

_SPAN = re.compile(r"[0-9a-f]{16}(\.server)?")
_LONGEST_FIND = 200
_MOST_FOLDS = 400  # an address stays below what browsers and proxies take


@dataclass(frozen=True, slots=True)
class Folds:
    """Which rows are shut: the listed ones, or all with children but the listed ones."""

    inverted: bool = False
    spans: frozenset[str] = frozenset()

    def is_shut(self, span: str) -> bool:
        return (span in self.spans) != self.inverted

    def toggled(self, span: str) -> Folds:
        return replace(self, spans=self.spans ^ {span})

    def __str__(self) -> str:
        return ".".join((["all"] if self.inverted else []) + sorted(self.spans))


ALL_SHUT: Final = Folds(inverted=True)


@dataclass(frozen=True, slots=True)
class RunPageState:
    """The state of a run page. Times are nanoseconds after the start of the run."""

    view: View = "tree"
    span: str | None = None  # of the selected step; ".server" names the SERVER half
    at: str | None = None  # where the page opened by itself; not in its address
    closed: bool = False  # the pane was closed: nothing opens by itself
    tab: str = TABS[0]
    from_ns: int | None = None
    to_ns: int | None = None
    find: str = ""
    shut: Folds = Folds()
    repeats: Folds = ALL_SHUT  # which groups of repeats are shut, when they are grouped
    errors: bool = False
    critical: bool = False
    group: bool = False
    hide: frozenset[str] = frozenset()  # kinds of lines that the log leaves out
    first: int | None = None  # number of visible rows before the window; None: where the span is

    def query(self) -> str:
        """Return the canonical query: defaults are left out, the order is fixed."""
        return urlencode([(key, value) for key, value in self._pairs() if value])

    def _pairs(self) -> list[tuple[str, str]]:
        return [
            ("view", "" if self.view == "tree" else self.view),
            ("span", self.span or ""),
            ("closed", "1" if self.closed and not self.span else ""),
            ("tab", "" if self.tab == TABS[0] else self.tab),
            ("from", "" if self.from_ns is None else str(self.from_ns)),
            ("to", "" if self.to_ns is None else str(self.to_ns)),
            ("q", self.find),
            ("shut", str(self.shut)),
            ("open", ".".join(sorted(self.repeats.spans))),
            ("errors", "1" if self.errors else ""),
            ("critical", "1" if self.critical else ""),
            ("group", "1" if self.group else ""),
            ("hide", ".".join(sorted(self.hide))),
            ("first", "" if self.first is None else str(self.first)),
        ]

    def but(self, **changes: Any) -> RunPageState:
        """Return this state with some fields changed; a row window is kept only when named."""
        return replace(self, **({"first": None} | changes))


def address_of(path: str, state: RunPageState) -> str:
    """Return the address of a run's page in some state."""
    query = state.query()
    return f"{path}?{query}" if query else path


def parse_state(query: Mapping[str, str]) -> RunPageState:
    """Read the state from a query; what makes no sense is left at its default."""
    start, end = _natural(query.get("from", "")), _natural(query.get("to", ""))
    if start is not None and end is not None and end <= start:
        start = end = None
    view: View = next((view for view in VIEWS if view == query.get("view")), "tree")
    return RunPageState(
        view=view,
        span=(span := _span(query.get("span") or query.get("step", ""))),
        at=_span(query.get("at", "")),
        closed=query.get("closed") == "1" and span is None,
        tab=query["tab"] if query.get("tab") in TABS else TABS[0],
        from_ns=start,
        to_ns=end,
        find=query.get("q", "").strip()[:_LONGEST_FIND],
        shut=_folds(query.get("shut", "")),
        repeats=Folds(inverted=True, spans=_folds(query.get("open", "")).spans),
        errors=query.get("errors") == "1",
        critical=query.get("critical") == "1",
        group=query.get("group") == "1",
        hide=frozenset(query.get("hide", "").split(".")) & frozenset(LINES),
        first=_natural(query.get("first", "")),
    )


def _folds(text: str) -> Folds:
    parts = text.split(".")
    # ".server" is the end of the id before it, not a row of its own.
    spans = {
        part + (".server" if parts[at + 1 : at + 2] == ["server"] else "")
        for at, part in enumerate(parts)
        if _SPAN.fullmatch(part)
    }
    return Folds(inverted=parts[0] == "all", spans=frozenset(sorted(spans)[:_MOST_FOLDS]))


def _span(text: str) -> str | None:
    return text if _SPAN.fullmatch(text) else None


def _natural(text: str) -> int | None:
    # 18 digits: what SQLite and JavaScript's BigInt-free links can still carry as a time.
    return natural(text, digits=18)
