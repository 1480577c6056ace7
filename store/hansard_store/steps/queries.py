"""Steps: the tree of a run, windows of its rows, one step with what hangs on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.database.transactions import snapshot
from hansard_store.runs.queries import find_trace_id
from hansard_store.runs.status import (
    ALIVE_UNTIL,
    STEP_WAITS_UNTIL,
    TokenSums,
    step_status,
    token_sums,
)
from hansard_store.runs.tombstones import RunDeletedError
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.shared_span_ids import shared_side, step_id_of
from hansard_store.steps.tree import Node, Tree, TreeCache, TreeMark, build_tree

_SHOWN_MATCHES = 5  # of an ambiguous prefix
_SERVER = ".server"


@dataclass(frozen=True, slots=True)
class StepSkeleton:
    """What a row of the tree shows of a step; times are Unix nanoseconds."""

    id: int  # span.id, the order of ingest
    side: int  # 1: a SERVER span, which may share its id with a CLIENT
    span_name: str  # as sent
    kind: int
    role: str
    dialect: str
    start_ns: int | None
    end_ns: int | None
    sort_ns: int
    flags: int  # SpanFlag bits
    resource: int
    scope: int
    agent_name: str | None
    tool_name: str | None
    model: str | None
    cost_usd_nano: int | None
    summary: str | None
    step_id: str
    run_id: str
    span_id: str
    parent_span_id: str | None
    name: str  # the dialect's name for it, else the span's
    status: str  # ok unset error cancelled open no_end blocked
    tokens: TokenSums | None

    @property
    def duplicate(self) -> bool:
        return bool(self.flags & (SpanFlag.DUPLICATE | SpanFlag.REPORTED_ELSEWHERE))

    @property
    def duration_ns(self) -> int | None:
        """None while open or where a time is unknown; 0 where the end is before the start."""
        if self.start_ns is None or self.end_ns is None:
            return None
        return max(self.end_ns - self.start_ns, 0)


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A step and its place in the tree."""

    step: StepSkeleton
    row: int  # number of this row in the whole tree
    depth: int
    has_children: bool
    orphan: bool  # its parent is not here; it stands at the top
    loop: bool  # it was its own ancestor; the loop was cut here


@dataclass(frozen=True, slots=True)
class RunTree:
    """The tree of one run at one version."""

    run: int  # run.id
    run_id: str
    version: int
    last_received_ns: int
    tree: Tree


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """The other end of a link between spans; `step` is None when it is not stored here."""

    run_id: str
    span_id: str
    step: StepSkeleton | None


_RUN = "SELECT id, trace_id, version, last_received_ns FROM run WHERE trace_id = ?"
_NODES = f"""
SELECT id, span_id, {shared_side("span")}, parent_span_id, resource, start_ns, end_ns, sort_ns,
  status, role, flags, likeness
FROM span WHERE trace_id = ?
"""
_COLUMNS = f"""
  span.id, span.side, span.name, span.kind, span.role, span.dialect, span.start_ns, span.end_ns,
  span.sort_ns, span.flags, span.resource, span.scope, span.agent_name, span.tool_name, span.model,
  span.cost_usd_nano, span.summary,
  span.trace_id, span.span_id, span.parent_span_id, span.label, span.status, span.tokens_input,
  span.tokens_output, span.tokens_cache_read, span.tokens_cache_write, span.tokens_reasoning,
  coalesce((SELECT alive_until_ns FROM process_keepalive AS alive
    WHERE alive.resource = span.resource), {ALIVE_UNTIL}),
  {shared_side("span")}, {STEP_WAITS_UNTIL}
"""
_PLAIN = 17  # columns that a step shows as they are; they come first
_make: Callable[..., StepSkeleton] = StepSkeleton  # mypy cannot count the values of a slice
_STEPS = f"""
SELECT {_COLUMNS}
FROM json_each(:spans) AS wanted CROSS JOIN span ON span.id = wanted.value
  CROSS JOIN run ON run.id = span.run
"""
_STEP = f"""
SELECT {_COLUMNS} FROM span CROSS JOIN run ON run.id = span.run
WHERE span.trace_id = :trace AND span.span_id BETWEEN :low AND :high
ORDER BY span.span_id, span.side LIMIT :limit
"""
_LINKS = f"""
SELECT {_COLUMNS} FROM span_link CROSS JOIN span ON span.id = span_link.span
  CROSS JOIN run ON run.id = span.run
WHERE span_link.to_trace_id = :trace AND {{end}} ORDER BY span.id LIMIT :limit
"""
_LINKS_TO = _LINKS.format(end="span_link.to_span_id = :span")
_LINKS_TO_RUN = _LINKS.format(end="span.trace_id <> :trace")
_LINKS_FROM = """
SELECT to_trace_id, to_span_id
FROM json_each(:spans) AS wanted CROSS JOIN span_link ON span_link.span = wanted.value
ORDER BY span_link.span, span_link.ordinal LIMIT :limit
"""
_DURATIONS = """
SELECT end_ns - start_ns FROM span
WHERE name = :name AND id <> :id AND start_ns IS NOT NULL AND end_ns >= start_ns
ORDER BY id DESC LIMIT :limit
"""


def get_tree(
    connection: apsw.Connection, run_id: str, *, cache: TreeCache | None = None
) -> RunTree:
    """Return the tree of a run by its id or a unique prefix.

    Reads every span's skeleton (50,000 in a fifth of a second) unless the cache holds this version.
    Raises NotFoundError or AmbiguousIdError.
    """
    with snapshot(connection):
        trace_id = find_trace_id(connection, run_id)
        row: Any = connection.execute(_RUN, (trace_id,)).fetchone()
        if row is None:
            raise NotFoundError("run", run_id)
        run, _, version, last_received_ns = row
        tree = cache.find(run, version) if cache is not None else None
        if tree is None:
            make = Node._make
            tree = build_tree([make(node) for node in connection.execute(_NODES, (trace_id,))])
            if cache is not None:
                cache.keep(run, version, tree)
    return RunTree(run, trace_id.hex(), version, last_received_ns, tree)


def tree_rows(
    connection: apsw.Connection, tree: RunTree, rows: Sequence[int], *, now_ns: int
) -> list[TreeRow]:
    """Return the given rows of a tree with their steps; a step deleted meanwhile is left out."""
    shape = tree.tree
    steps = steps_by_number(connection, [shape.nodes[row].id for row in rows], now_ns=now_ns)
    return [
        TreeRow(
            step,
            row,
            depth=shape.depths[row],
            has_children=shape.has_children(row),
            orphan=bool(shape.marks[row] & TreeMark.ORPHAN),
            loop=bool(shape.marks[row] & TreeMark.LOOP),
        )
        for row in rows
        if (step := steps.get(shape.nodes[row].id)) is not None
    ]


def steps_by_number(
    connection: apsw.Connection, spans: Sequence[int], *, now_ns: int
) -> dict[int, StepSkeleton]:
    """Return skeletons by span.id; those that are gone are left out."""
    rows = connection.execute(_STEPS, {"spans": json.dumps(list(spans))})
    return {row[0]: _skeleton(row, now_ns=now_ns) for row in rows}


def get_step(connection: apsw.Connection, step_id: str, *, now_ns: int) -> StepSkeleton:
    """Return a step by `<trace>-<span>`, `<trace>-<span>.server` or a unique prefix of one.

    A SERVER span is `.server` while a CLIENT span has its id, too; both forms find it when it is
    alone. Raises NotFoundError or AmbiguousIdError.
    """
    trace, _, span = step_id.lower().partition("-")
    is_server = span.endswith(_SERVER)
    digits = span.removesuffix(_SERVER)
    if len(digits) > 16 or any(digit not in "0123456789abcdef" for digit in digits):
        raise NotFoundError("step", step_id)
    try:
        trace_id = find_trace_id(connection, trace)
    except RunDeletedError:
        raise
    except NotFoundError as error:
        raise NotFoundError("step", step_id) from error
    bounds = {
        "trace": trace_id,
        "low": bytes.fromhex(digits.ljust(16, "0")),
        "high": bytes.fromhex(digits.ljust(16, "f")),
        "limit": _SHOWN_MATCHES,
    }
    found = [_skeleton(row, now_ns=now_ns) for row in connection.execute(_STEP, bounds)]
    if is_server:
        found = [step for step in found if step.side]
    elif len(digits) == 16:
        found = found[:1]  # the CLIENT half comes first
    if not found:
        raise NotFoundError("step", step_id)
    if len(found) > 1:
        raise AmbiguousIdError("step", step_id, [step.step_id for step in found])
    return found[0]


def links_to_step(
    connection: apsw.Connection, step: StepSkeleton, *, now_ns: int, limit: int = 100
) -> list[StepSkeleton]:
    """Return the steps whose spans link to this one, in order of ingest."""
    trace_id, span_id = bytes.fromhex(step.run_id), bytes.fromhex(step.span_id)
    parameters = {"trace": trace_id, "span": span_id, "limit": limit}
    return [_skeleton(row, now_ns=now_ns) for row in connection.execute(_LINKS_TO, parameters)]


def links_to_run(
    connection: apsw.Connection, run_id: str, *, now_ns: int, limit: int = 100
) -> list[StepSkeleton]:
    """Return the steps of other runs that link into this one, in order of ingest."""
    parameters = {"trace": bytes.fromhex(run_id), "limit": limit}
    return [_skeleton(row, now_ns=now_ns) for row in connection.execute(_LINKS_TO_RUN, parameters)]


def links_from(
    connection: apsw.Connection, spans: Sequence[int], *, now_ns: int, limit: int = 100
) -> list[LinkEnd]:
    """Return where the links of some spans (by span.id) lead, in their order."""
    parameters = {"spans": json.dumps(list(spans)), "limit": limit}
    ends: list[Any] = connection.execute(_LINKS_FROM, parameters).fetchall()
    return [
        LinkEnd(
            run_id=trace_id.hex(),
            span_id=span_id.hex(),
            step=_find_span(connection, trace_id, span_id, now_ns=now_ns),
        )
        for trace_id, span_id in ends
    ]


def _find_span(
    connection: apsw.Connection, trace_id: bytes, span_id: bytes, *, now_ns: int
) -> StepSkeleton | None:
    parameters = {"trace": trace_id, "low": span_id, "high": span_id, "limit": 1}
    row = connection.execute(_STEP, parameters).fetchone()
    return None if row is None else _skeleton(row, now_ns=now_ns)


def recent_durations(
    connection: apsw.Connection, step: StepSkeleton, *, limit: int = 100
) -> list[int]:
    """Return how long the last spans of the same name took, in ns: «longer than 71 of 100»."""
    parameters = {"name": step.span_name, "id": step.id, "limit": limit}
    return [row[0] for row in connection.execute(_DURATIONS, parameters)]


def _skeleton(row: Any, *, now_ns: int) -> StepSkeleton:
    trace_id, span_id, parent, label, code, *tokens, alive_until_ns, side, waits_ns = row[_PLAIN:]
    status = step_status(
        code,
        flags=row[9],
        end_ns=row[7],
        alive_until_ns=alive_until_ns,
        now_ns=now_ns,
        waits_until_ns=waits_ns,
    )
    return _make(
        *row[:_PLAIN],
        step_id=step_id_of(trace_id, span_id, side),
        run_id=trace_id.hex(),
        span_id=span_id.hex(),
        parent_span_id=None if parent is None else parent.hex(),
        name=label or row[2],
        status=status,
        tokens=token_sums(tokens),
    )


# What the pane of one step needs beside its record: what was redacted, when it last came.

_COUNT_DUPLICATES = "SELECT count(*) FROM span_duplicate WHERE span = :span"


def count_other_reports(connection: apsw.Connection, span: int) -> int:
    """Return how many poorer reports of the same span are stored beside it."""
    return int(connection.execute(_COUNT_DUPLICATES, {"span": span}).get)
