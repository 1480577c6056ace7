"""The table of pages: the navigation, the `g` keys, the palette and the tests of all pages read it.

A new page gets a line here, at the place where it stands in the bar or in the menu "More", and
passes `here=NAME` to `Renderer.page`. Nothing else is needed: the bar, the
menu, `g KEY`, the palette (Ctrl-K), `hansard find` and the browser test over every page at four
widths take it from the table. `name` and `key` are unique (a test holds that); `hint` is the
second line of the palette and the words that find the page there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Place:
    """A page of the navigation; `g` and then `key` goes there."""

    name: str
    label: str
    href: str
    key: str
    hint: str
    is_more: bool = False  # in the menu "More"; a phone's menu lists all


PLACES: Final = (
    Place("overview", "Overview", "/overview", "o", "cost, latency and errors over time"),
    Place("runs", "Runs", "/", "r", "every run, filtered and compared; traces"),
    Place("errors", "Errors", "/errors", "e", "failed steps by cause; exceptions, issues"),
    Place("conversations", "Conversations", "/conversations", "c", "sessions, threads of runs"),
    Place("users", "Users", "/users", "p", "people: runs, cost, errors and scores by user id"),
    Place("approvals", "Approvals", "/approvals", "a", "actions that wait for a decision"),
    Place("memory", "Memory", "/memory", "m", "what agents remember"),
    Place("usage", "Usage", "/usage", "u", "tokens and cost by model and agent"),
    Place(
        "latency", "Latency", "/latency", "l", "p50 p95 p99 by model, tool and agent", is_more=True
    ),
    Place("search", "Search", "/search", "s", "words in any message", is_more=True),
    Place("tasks", "Reviews", "/tasks", "t", "recurring issues to decide", is_more=True),
    Place("reports", "Reports", "/reports", "w", "written summaries of a period", is_more=True),
    Place("events", "Audit log", "/events", "d", "the hash chain of decisions", is_more=True),
    Place("receipts", "Receipts", "/receipts", "k", "files and calls of a run", is_more=True),
    Place(
        "notifications",
        "Notifications",
        "/notifications",
        "i",
        "what webhooks were sent",
        is_more=True,
    ),
    Place("health", "Health", "/health", "h", "ingest, storage and endpoints", is_more=True),
)
PRIMARY: Final = tuple(place for place in PLACES if not place.is_more)
MORE: Final = tuple(place for place in PLACES if place.is_more)
