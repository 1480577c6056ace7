"""What a compile's table is filtered, ordered and turned with: links, each with its address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hansard_web.compile_view.labels import DECISIONS, kind_words, meaning, pass_words
from hansard_web.compile_view.rows import Listing
from hansard_web.compile_view.state import PAGE_ROWS, ContextState
from hansard_web.ui.format import count


@dataclass(frozen=True, slots=True)
class Choice:
    """A filter by decision."""

    label: str
    icon: str
    href: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is on."""

    label: str
    value: str
    href: str  # of the page without it


@dataclass(frozen=True, slots=True)
class Sort:
    """A column that the table can be ordered by."""

    label: str
    href: str
    aria: str  # ascending descending none


@dataclass(frozen=True, slots=True)
class Paging:
    """The pages before and after."""

    say: str
    previous_href: str | None
    next_href: str | None


def choices(
    said: Sequence[tuple[str, str, int]], total: int, state: ContextState, path: str
) -> tuple[Choice, ...]:
    """Return the filters by decision, with how many each would show."""
    found = [
        Choice(f"All {count(total)}", "", state.address(path, decision=""), not state.decision)
    ]
    for name, word, number in said:
        if number or state.decision == name:
            label = f"{word.capitalize()} {count(number)}"
            href = state.address(path, decision=name)
            icon = name if name in DECISIONS else "other"
            found.append(Choice(label, icon, href, state.decision == name))
    return tuple(found)


def chips(state: ContextState, path: str) -> tuple[Chip, ...]:
    """Return the filters that are on; of decisions only a word that none of the choices shows."""
    odd = state.decision not in ("", *DECISIONS)
    found = (
        ("decision", f"“{state.decision}”" if odd else "", {"decision": ""}),
        ("reason", meaning(state.reason) if state.reason else "", {"reason": ""}),
        ("pass", pass_words(state.at_pass), {"at_pass": ""}),
        ("kind", kind_words(state.kind) if state.kind else "", {"kind": ""}),
        ("with", f"“{state.find}”" if state.find else "", {"find": ""}),
    )
    return tuple(
        Chip(label, value, state.address(path, **without))
        for label, value, without in found
        if value
    )


def sorts(state: ContextState, path: str) -> dict[str, Sort]:
    """Return the columns that the table can be ordered by; a second time turns the order."""
    found = {}
    for order, label in (("item", "Item and source"), ("tokens", "Tokens"), ("score", "Score"),
                         ("missed", "Why")):  # fmt: skip
        is_on = state.order == order
        turned = is_on and not state.is_reversed
        ascends = (order in ("item", "missed")) != state.is_reversed
        aria = ("ascending" if ascends else "descending") if is_on else "none"
        found[order] = Sort(label, state.address(path, order=order, is_reversed=turned), aria)
    return found


def paging(listed: Listing, state: ContextState, path: str) -> Paging | None:
    """Return the ways to the other pages; None where there is only one."""
    if listed.found <= PAGE_ROWS:
        return None
    last = listed.first + listed.shown

    def at(first: int) -> str:
        return state.address(path, first=first, item="")

    return Paging(
        say=f"{count(listed.first + 1)} to {count(last)} of {count(listed.found)}",
        previous_href=at(max(listed.first - PAGE_ROWS, 0)) if listed.first else None,
        next_href=at(last) if last < listed.found else None,
    )
