"""Heads of columns that a list can be sorted by: an address each, and which way it goes now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SortedColumn:
    """The head of a column; following `url` sorts by it, or turns its order around."""

    url: str
    sorting: str  # aria-sort: "ascending", "descending" or ""


def sorted_columns(
    first_orders: Mapping[str, str], current: str, url_of: Callable[[str], str]
) -> dict[str, SortedColumn]:
    """Return the heads of a list. `first_orders`: column -> its first order, as `-cost_usd`.

    `current` is the order of the list; `url_of` returns the address of an order.
    """
    columns = {}
    for name, order in first_orders.items():
        key = order.removeprefix("-")
        if current.removeprefix("-") != key:
            columns[name] = SortedColumn(url_of(order), "")
        elif current.startswith("-"):
            columns[name] = SortedColumn(url_of(key), "descending")
        else:
            columns[name] = SortedColumn(url_of(f"-{key}"), "ascending")
    return columns
