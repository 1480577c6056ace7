"""A run that began in the transaction that runs: all of it is in memory, no table need be read.

Most runs arrive whole, in one request. What the rules of counting ask of such a run (what is above
and below a step, which tool call waits for its other half, below which step a usage was counted) is
answered here, where a stored run costs five queries a span. The first change that takes something
back writes down what was held and leaves: from then on the tables are read, as for any run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import apsw

from hansard_store.ingest.derived_rows import ToolProjection

# How far apart in the tree two spans about one call may stand: wrapper, retry, client.
REACH = 3
_MOST_PARENTS = 64
_MOST_CHILDREN = 64  # more than that below one call and it is a sum, whatever the rest is

_KIN = """
SELECT sort_ns, id, span_id, parent_span_id, role, tool_name, tool_call_id FROM span
"""
_ABOVE = _KIN + "WHERE trace_id = ? AND span_id = ?"
_BELOW = _KIN + f"WHERE trace_id = ? AND parent_span_id = ? LIMIT {_MOST_CHILDREN}"
ToolHalf = Literal["requested", "ran"]  # of a tool call: by a model, and by a step
TOOL_HALVES: tuple[ToolHalf, ...] = get_args(ToolHalf)
_MOST_TWINS = 8
_MOST_TOOLS = 500  # waiting halves are looked for one by one

_MARK = "INSERT OR IGNORE INTO usage_below (trace_id, span_id) VALUES (?, ?)"
_ADD_TOOL = "INSERT INTO tool_event (run, call_id, name, requested, ran) VALUES (?, ?, ?, ?, ?)"


class Near(NamedTuple):
    """A span close above or below."""

    span: int
    role: str
    tool_name: str | None
    call_id: str | None  # of a tool step
    level: int  # how many levels apart


class Kin(NamedTuple):
    """A step as its neighbours see it; sorted, in the order in which they meet it."""

    sort_ns: int
    span: int
    span_id: bytes
    parent_span_id: bytes | None
    role: str
    tool_name: str | None
    call_id: str | None

    def near(self, level: int) -> Near:
        return Near(self.span, self.role, self.tool_name, self.call_id, level)


@dataclass(slots=True)
class _ToolEvent:
    """A row of `tool_event` that is not written yet."""

    call_id: str | None
    name: str | None
    requested: int | None = None
    ran: int | None = None


class FreshRun:
    """The steps, tool calls and marks of one new run; belongs to its transaction."""

    def __init__(self) -> None:
        self._steps: dict[bytes, Kin] = {}
        self._children: defaultdict[bytes, list[Kin]] = defaultdict(list)
        self._tools: list[_ToolEvent] = []
        self._by_call_id: dict[str, _ToolEvent] = {}
        self._responses: defaultdict[str, list[int]] = defaultdict(list)
        self._response_of: dict[int, str] = {}
        self._marks: set[bytes] = set()
        self._sums: set[int] = set()
        self.has_usage_alone = False  # whether a step says of a call nothing but its usage

    # ---- the tree

    def add(self, step: Kin) -> bool:
        """Add a step; False when the tables must be read from now on.

        That is when a SERVER and a CLIENT share an id, and when there are too many tool calls.
        """
        if step.span_id in self._steps or len(self._tools) > _MOST_TOOLS:
            return False
        self._steps[step.span_id] = step
        if step.parent_span_id is not None:
            self._children[step.parent_span_id].append(step)
        return True

    def above(self, parent_span_id: bytes | None) -> Iterator[Near]:
        """Yield what `near_above` yields of a stored run."""
        return _above(parent_span_id, self._steps.get)

    def below(self, span_id: bytes) -> Iterator[Near]:
        """Yield what `near_below` yields of a stored run."""
        return _below(span_id, self._children_of)

    def _children_of(self, span_id: bytes) -> list[Kin]:
        children = self._children.get(span_id)
        return sorted(children)[:_MOST_CHILDREN] if children else []

    # ---- usage

    def add_sum(self, span: int) -> None:
        """Note that a step repeats a sum, which a usage below it would take back."""
        self._sums.add(span)

    def is_marked(self, span_id: bytes) -> bool:
        """Return whether something below this step has a counted usage."""
        return span_id in self._marks

    def mark_above(self, parent_span_id: bytes | None) -> Iterator[int]:
        """Mark a usage's ancestors that are not marked yet; yield those that repeat a sum."""
        while parent_span_id is not None and parent_span_id not in self._marks:
            self._marks.add(parent_span_id)
            step = self._steps.get(parent_span_id)
            if step is None:
                return
            if step.span in self._sums:
                yield step.span
            parent_span_id = step.parent_span_id

    # ---- calls and tools

    def add_response(self, response_id: str, span: int) -> None:
        """Note the response id that a call tells."""
        self._responses[response_id].append(span)
        self._response_of[span] = response_id

    def same_response(self, span: int) -> list[int]:
        """Return the first other calls that tell the response id that this one tells."""
        response_id = self._response_of.get(span)
        if response_id is None:
            return []
        return [other for other in self._responses[response_id] if other != span][:_MOST_TWINS]

    def add_half(self, half: ToolHalf, tool: ToolProjection, *, span: int) -> int:
        """Note that a step requested or ran a tool; return 1 for a tool call that is new."""
        event = self._find(half, tool)
        if event is None:
            event = _ToolEvent(tool.call_id, tool.name)
            setattr(event, half, span)
            self._tools.append(event)
            if event.call_id is not None:
                self._by_call_id[event.call_id] = event
            return 1
        if getattr(event, half) is None:
            setattr(event, half, span)
        return 0

    def _find(self, half: ToolHalf, tool: ToolProjection) -> _ToolEvent | None:
        """Return the event of a call id; without one on either side, the next of the tool's name.

        As in `tool_calls`: of those that lack the half, the ones without a call id come first.
        """
        found = None if tool.call_id is None else self._by_call_id.get(tool.call_id)
        if found is not None or tool.name is None:
            return found
        named = [one for one in self._tools if one.name == tool.name and getattr(one, half) is None]
        if tool.call_id is not None:
            named = [one for one in named if one.call_id is None]
        return min(named, key=_call_id_order, default=None)

    # ---- the end

    def write(self, connection: apsw.Connection, *, run: int, trace_id: bytes) -> None:
        """Write the rows held back: before the commit, or before a table is read."""
        connection.executemany(_MARK, [(trace_id, span_id) for span_id in self._marks])
        connection.executemany(
            _ADD_TOOL, [(run, one.call_id, one.name, one.requested, one.ran) for one in self._tools]
        )


def _call_id_order(event: _ToolEvent) -> tuple[bool, str]:
    return event.call_id is not None, event.call_id or ""


# What stands close to a step, wherever its run is.


def near_above(
    connection: apsw.Connection, trace_id: bytes, parent_span_id: bytes | None
) -> Iterator[Near]:
    """Yield the ancestors at most `REACH` levels up, nearest first."""

    def find(span_id: bytes) -> Kin | None:
        row: Any = connection.execute(_ABOVE, (trace_id, span_id)).fetchone()
        return None if row is None else Kin._make(row)

    return _above(parent_span_id, find)


def near_below(connection: apsw.Connection, trace_id: bytes, span_id: bytes) -> Iterator[Near]:
    """Yield the descendants at most `REACH` levels down, level by level."""
    execute = connection.execute
    return _below(span_id, lambda above: map(Kin._make, execute(_BELOW, (trace_id, above))))


def _above(parent_span_id: bytes | None, find: Callable[[bytes], Kin | None]) -> Iterator[Near]:
    for level in range(1, REACH + 1):
        step = None if parent_span_id is None else find(parent_span_id)
        if step is None:
            return
        yield step.near(level)
        parent_span_id = step.parent_span_id


def _below(span_id: bytes, children_of: Callable[[bytes], Iterable[Kin]]) -> Iterator[Near]:
    parents = [span_id]
    for level in range(1, REACH + 1):
        found = [kin for above in parents for kin in children_of(above)]
        for kin in found:
            yield kin.near(level)
        parents = [kin.span_id for kin in found if kin.span_id not in parents][:_MOST_PARENTS]
        if not parents:
            return
