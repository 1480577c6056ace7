"""What stands between a run's header and its reading: the readings, the find box, the filters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import apsw

from hansard_store.runs.queries import RunItem
from hansard_store.steps.flags import SpanFlag
from hansard_web.run_page.arrangement import Arrangement
from hansard_web.run_page.log import LogView
from hansard_web.run_page.picture import span_key
from hansard_web.run_page.picture_cache import ShownRun
from hansard_web.run_page.state import ALL_SHUT, LINES, RunState, View, address_of
from hansard_web.run_page.tree import find_matches

_ERROR = int(SpanFlag.ERROR)  # a plain int: see picture.py
_READINGS: tuple[tuple[View, str], ...] = (
    ("tree", "Tree"),
    ("conversation", "Conversation"),
    ("log", "Log"),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One of the three ways to read a run."""

    label: str
    icon: str
    href: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Pill:
    """A filter that is on or off by following its address."""

    label: str
    href: str
    is_on: bool
    icon: str = ""
    count: int | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Find:
    """The find box of the run."""

    text: str
    count: int
    previous_href: str | None
    next_href: str | None
    clear_href: str
    kept: tuple[tuple[str, str], ...]  # the rest of the state, as hidden fields


def readings_of(path: str, state: RunState) -> tuple[Reading, ...]:
    return tuple(
        Reading(label, view, address_of(path, state.but(view=view)), view == state.view)
        for view, label in _READINGS
    )


def pills_of(path: str, state: RunState, found: RunItem, log: LogView | None) -> tuple[Pill, ...]:
    def pill(label: str, *, is_on: bool, changes: dict[str, Any], **more: Any) -> Pill:
        return Pill(label, address_of(path, state.but(**changes)), is_on, **more)

    errors = pill(
        "errors",
        is_on=state.errors,
        changes={"errors": not state.errors},
        icon="error",
        count=found.error_count,
        title="Only steps that failed, and what leads to them",
    )
    failures = (errors,) if found.error_count or state.errors else ()
    if state.view == "conversation":
        return ()
    if log is not None:
        kinds = [
            pill(
                kind,
                is_on=kind not in state.hide,
                changes={"hide": state.hide ^ {kind}},
                count=log.counts[kind],
            )
            for kind in LINES
            if log.counts[kind]
        ]
        return (*failures, *kinds)
    return (
        *failures,
        pill(
            "critical path",
            is_on=state.critical,
            changes={"critical": not state.critical},
            title="Only the steps that the length of the run hangs on",
        ),
        pill(
            "group repeats",
            is_on=state.group,
            changes={"group": not state.group, "repeats": ALL_SHUT},
            title="Three or more steps of one name in a row become one line",
        ),
    )


def find_of(
    connection: apsw.Connection,
    shown: ShownRun,
    arrangement: Arrangement,
    state: RunState,
    *,
    path: str,
) -> Find:
    matches = find_matches(connection, shown, state)
    ways: dict[bool, str | None] = {True: None, False: None}
    for is_back in ways:
        line = next_line(shown, arrangement, matches, after=state.span, is_back=is_back)
        if line is not None:
            node = shown.tree.tree.nodes[arrangement.rows[line]]
            ways[is_back] = address_of(path, state.but(span=span_key(node)))
    kept = parse_qsl(state.but(find="").query())
    return Find(
        text=state.find,
        count=len(matches),
        previous_href=ways[True],
        next_href=ways[False],
        clear_href=address_of(path, state.but(find="")),
        kept=tuple(kept),
    )


def failed_spans(shown: ShownRun) -> frozenset[int]:
    return frozenset(node.id for node in shown.tree.tree.nodes if node.flags & _ERROR)


def next_line(
    shown: ShownRun,
    arrangement: Arrangement,
    wanted: Collection[int],
    *,
    after: str | None,
    is_back: bool,
) -> int | None:
    """Return the next visible line with one of these spans, going round at the end."""
    if not wanted:
        return None
    nodes = shown.tree.tree.nodes
    lines = [
        line
        for line, row in enumerate(arrangement.rows)
        if line not in arrangement.groups and nodes[row].id in wanted
    ]
    if not lines:
        return None
    row = None if after is None else shown.picture.row_of(after)
    here = None if row is None else arrangement.line_showing(row)
    if is_back:
        before = [line for line in lines if here is not None and line < here]
        return before[-1] if before else lines[-1]
    return next((line for line in lines if here is None or line > here), lines[0])
