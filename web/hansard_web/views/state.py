"""A saved view as a state of the run list, and a state as what a view stores."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple
from urllib.parse import parse_qsl

from hansard_store.errors import InvalidQueryError
from hansard_store.runs.filters import parse_sort
from hansard_store.runs.saved_views import SavedView
from hansard_web.runs.columns import unknown_columns
from hansard_web.runs.filters import ListState, read_state


class ViewParts(NamedTuple):
    """What a view stores of a state."""

    query: str
    sort: str
    columns: str


def parts_of(query: str, *, sort: str = "", columns: str = "") -> ViewParts:
    """Return what a view stores of an address; `sort` and `columns` count before those in it.

    Raises InvalidQueryError for a parameter, an order or a column that the list does not have.
    """
    state = read_state(parse_qsl(query.removeprefix("/").removeprefix("?")))
    if unknown := [*state.unknown, *unknown_columns(columns)]:
        raise InvalidQueryError("query", f"a run list has no {unknown[0]!r}")
    sort = sort or state.sort
    if sort:
        parse_sort(sort)
    kept = replace(state, sort="", columns=(), view="", cursor="", compare=())
    return ViewParts(kept.query, sort, columns or ",".join(state.columns))


def state_of(view: SavedView) -> ListState:
    """Return the state of the list that a view describes."""
    pairs = [*parse_qsl(view.query), ("sort", view.sort), ("columns", view.columns)]
    return read_state([*pairs, ("view", view.name)])
