"""What a comparison's address says: which rows, which one is open, how texts are laid out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from hansard_web.ui.format import natural

_MOST_ROW = 1_000_000


@dataclass(frozen=True, slots=True)
class DiffState:
    """The state of one page; every part of it is in the address."""

    left: str
    right: str
    everything: bool = False  # also what is the same
    row: int | None = None  # number of the aligned step whose detail is shown
    first: int = 0  # number of the first row of the window
    two_columns: bool = False

    @property
    def path(self) -> str:
        return f"/diff/{self.left}/{self.right}"

    def href(self, **changes: object) -> str:
        """Return the address of this state, or of one that differs from it."""
        state = replace(self, **changes)  # type: ignore[arg-type]  # names of fields
        pairs = {
            "show": "all" if state.everything else "",
            "row": "" if state.row is None else str(state.row),
            "from": str(state.first) if state.first else "",
            "layout": "two" if state.two_columns else "",
        }
        query = urlencode({name: value for name, value in pairs.items() if value})
        return f"{state.path}?{query}" if query else state.path


def parse_diff_state(left: str, right: str, query: Mapping[str, str]) -> DiffState:
    """Read a state; what cannot be meant is left out."""
    return DiffState(
        left,
        right,
        everything=query.get("show") == "all",
        row=_number(query.get("row", "")),
        first=_number(query.get("from", "")) or 0,
        two_columns=query.get("layout") == "two",
    )


def _number(text: str) -> int | None:
    found = natural(text, digits=len(str(_MOST_ROW)))
    return None if found is None else min(found, _MOST_ROW)
