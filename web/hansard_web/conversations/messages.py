"""The messages of a conversation: those of all its runs in order, each once.

An agent sends the history again with each run, and runs share the nodes of the message tree as far
as their prompts are equal: what was shown in a run before is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import apsw

from hansard_collector.derivation.stored_span import read_step
from hansard_compiler.calls import Message
from hansard_store.content.messages import CallRow, list_tool_events, read_messages
from hansard_store.database.cursors import Page
from hansard_store.runs.filters import RunCursor, RunFilter, RunSort
from hansard_store.runs.queries import RunItem, list_runs
from hansard_store.steps.flags import SpanFlag
from hansard_web.approvals.step_history import calls_not_run
from hansard_web.run_page.conversation import (
    TalkCall,
    is_in_a_card,
    model_calls,
    requested_calls,
    talk_of,
)
from hansard_web.runs.rows import RunRow, run_rows
from hansard_web.steps.facts import StepProblem, problem_of
from hansard_web.ui.messages import (
    ShownCall,
    ShownMessage,
    ToolCard,
    results_by_call,
    show_message,
)

RUNS_A_PAGE: Final = 10
_MOST: Final = 40  # of all its runs; a run with more shows its first
_RUNS_BEFORE: Final = 3  # whose messages a page does not repeat
FIRST_TO_LAST: Final = RunSort("started_at", descending=False)
LAST_TO_FIRST: Final = RunSort("started_at")


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """Tool calls between two messages, folded to one line."""

    cards: tuple[ToolCard, ...]

    @property
    def names(self) -> str:
        """The tools in order, equal neighbours as one: `search × 3, get_order`."""
        runs = [(name, len(list(same))) for name, same in groupby(c.name for c in self.cards)]
        return ", ".join(f"{name} × {times}" if times > 1 else name for name, times in runs[:8])

    @property
    def failed(self) -> int:
        return sum(bool(card.error) for card in self.cards)


@dataclass(frozen=True, slots=True)
class Entry:
    """A message, a group of tool calls, or why a model call failed; one of them is there."""

    message: ShownMessage | None = None
    tools: ToolGroup | None = None
    problem: StepProblem | None = None
    href: str = ""  # of the step of a problem


@dataclass(frozen=True, slots=True)
class RunMessages:
    """A run as a part of a conversation."""

    row: RunRow
    entries: tuple[Entry, ...]
    more_calls: int  # further model calls, which the run's page shows


@dataclass(frozen=True, slots=True)
class MessagesPage:
    runs: tuple[RunMessages, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class RunCalls:
    """A run of a conversation with the model calls of a page, and what each added."""

    run: RunItem
    calls: tuple[TalkCall, ...]
    more_calls: int


def conversation_calls(
    connection: apsw.Connection, conversation_id: str, *, now_ns: int, cursor: str | None = None
) -> Page[RunCalls]:
    """Return some runs with their model calls, the first run first; raises InvalidCursorError.

    A page ends before the run with which it would have over 40 model calls. No text is read.
    """
    filters = RunFilter(conversation=conversation_id)
    found = list_runs(
        connection,
        filters,
        now_ns=now_ns,
        sort=FIRST_TO_LAST,
        limit=RUNS_A_PAGE + 1,
        cursor=cursor,
    ).items
    shown, calls = _page_of(connection, found)
    before = _calls_before(connection, filters, shown[:1], now_ns=now_ns)
    talk = talk_of(connection, [*before, *(one for run in shown for one in calls[run.id][:_MOST])])
    rest = iter(talk[len(before) :])
    runs = []
    for run in shown:
        count = len(calls[run.id])
        own = tuple(next(rest) for _ in range(min(count, _MOST)))
        runs.append(RunCalls(run, own, count - len(own)))
    if len(shown) == len(found):
        return Page(runs, None)
    last = shown[-1]
    return Page(runs, RunCursor(last.started_ns, last.id).encode(FIRST_TO_LAST))


def conversation_messages(
    connection: apsw.Connection, conversation_id: str, *, now_ns: int, cursor: str | None = None
) -> MessagesPage:
    """Return the messages of some runs as a page shows them; raises InvalidCursorError."""
    found = conversation_calls(connection, conversation_id, now_ns=now_ns, cursor=cursor)
    rows = run_rows(connection, [one.run for one in found.items], now_ns=now_ns)
    runs = (
        _run_messages(connection, row, one.calls, more_calls=one.more_calls)
        for row, one in zip(rows, found.items, strict=True)
    )
    return MessagesPage(tuple(runs), found.next_cursor)


def _page_of(
    connection: apsw.Connection, found: Sequence[RunItem]
) -> tuple[list[RunItem], dict[int, list[CallRow]]]:
    """Return the runs of a page, at least one where there is one, with their model calls."""
    shown: list[RunItem] = []
    calls: dict[int, list[CallRow]] = {}
    room = _MOST
    for run in found[:RUNS_A_PAGE]:
        own = model_calls(connection, run.id)
        if shown and len(own) > room:
            break
        shown.append(run)
        calls[run.id] = own
        room -= len(own)
        if room <= 0:
            break
    return shown, calls


def _calls_before(
    connection: apsw.Connection, filters: RunFilter, first: Sequence[RunItem], *, now_ns: int
) -> list[CallRow]:
    """Return the last calls of the runs before a page, in order: their messages are known."""
    for run in first:
        cursor = RunCursor(run.started_ns, run.id).encode(LAST_TO_FIRST)
        earlier = list_runs(
            connection,
            filters,
            now_ns=now_ns,
            sort=LAST_TO_FIRST,
            limit=_RUNS_BEFORE,
            cursor=cursor,
        ).items
        calls = [model_calls(connection, one.id)[-_MOST:] for one in reversed(earlier)]
        return [call for own in calls for call in own]
    return []


def _run_messages(
    connection: apsw.Connection,
    row: RunRow,
    talk: Sequence[TalkCall],
    *,
    more_calls: int,
) -> RunMessages:
    texts = {ref.text for one in talk for ref in (*one.new, *one.answer)}
    bodies = read_messages(connection, texts)
    spoken = [bodies[ref.text] for one in talk for ref in one.new]
    facts = ShownCall(
        list_tool_events(connection, row.run.id),
        results_by_call(spoken),
        calls_not_run(connection, row.run.run_id),
    )
    entries = list(_entries(connection, talk, bodies, facts))
    return RunMessages(row, tuple(_folded(entries)), more_calls)


def _entries(
    connection: apsw.Connection,
    talk: Sequence[TalkCall],
    bodies: Mapping[int, Message],
    facts: ShownCall,
) -> Iterator[Entry]:
    requested = requested_calls(bodies.values())
    for one in talk:
        agent = (one.call.agent_name[:60],) if one.call.agent_name else ()
        for ref in one.new:
            if not is_in_a_card(bodies[ref.text], requested):
                yield from _parts(show_message(bodies[ref.text], calls=facts))
        for ref in one.answer:
            yield from _parts(show_message(bodies[ref.text], facts=agent, calls=facts))
        if one.call.flags & SpanFlag.ERROR:
            problem = problem_of(read_step(connection, one.call.span))
            yield Entry(problem=problem, href=f"/steps/{one.call.step_id}")


def _parts(shown: ShownMessage) -> Iterator[Entry]:
    """Yield a message without its tool calls, then those."""
    cards = tuple(block for block in shown.blocks if isinstance(block, ToolCard))
    others = tuple(block for block in shown.blocks if not isinstance(block, ToolCard))
    if others or not cards:
        yield Entry(message=replace(shown, blocks=others))
    if cards:
        yield Entry(tools=ToolGroup(cards))


def _folded(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield entries with neighbouring groups of tool calls as one."""
    for is_tools, some in groupby(entries, key=lambda entry: entry.tools is not None):
        if is_tools:
            groups = [entry.tools for entry in some if entry.tools is not None]
            yield Entry(tools=ToolGroup(tuple(card for one in groups for card in one.cards)))
        else:
            yield from some
