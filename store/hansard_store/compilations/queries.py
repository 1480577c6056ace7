"""Compilations: one compile of a context each, found by its id or by the steps around it.

A compilation's own id is that of its input and its outcome: the same compile made twice in one
step has one id and two rows. Inside the store the span that tells it is its key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.ingest.derived_rows import CompilationProjection, CompilationRow
from hansard_store.runs.projection import RunState
from hansard_store.search.attributes import attribute_token
from hansard_store.steps.shared_span_ids import shared_side, step_id_of

ID_KEY = "hansard.compilation.id"
RECEIPT_COLUMNS = (
    "ordinal", "item_id", "kind", "decision", "pass", "reason", "source_type", "source", "section",
    "tokens_before", "tokens_after", "score_nano", "missed_tokens", "missed_score_nano",
    "related", "rule_ids", "original_ref", "final_ref",
)  # fmt: skip
_LEAST_PREFIX = 8  # characters of an id, to be found by its beginning
_SHOWN_MATCHES = 5
_AFTER_ALL = "\U0010ffff"  # sorts after every other character
_MOST_STEPS = 100  # that name one compilation

_COLUMNS = tuple(CompilationRow._fields)


def _insert(table: str, columns: Sequence[str], *, rows: int = 1) -> str:
    places = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([places] * rows)}"


_ADD = _insert("compilation", ("span", "run", *_COLUMNS))
_WIDTH = 1 + len(RECEIPT_COLUMNS)
_ROWS_AT_ONCE = 20  # of one statement: a third less time than row by row, and more gain nothing
_DROP = (
    "DELETE FROM receipt WHERE span = ?",
    "DELETE FROM compilation WHERE span = ?",
)
_HAS_RECEIPTS = "SELECT 1 FROM compilation WHERE run = ? AND receipt_count > 0 LIMIT 1"
_IS_ANY_CUT = """
SELECT 1 FROM compilation INDEXED BY compilation_cut WHERE receipt_count < item_total LIMIT 1
"""
_AWAITING = "SELECT span FROM compilation WHERE result_ref = ? AND receipt_count < item_total"
_ONE_OF_RUN = "SELECT span FROM compilation WHERE run = ? ORDER BY span LIMIT 1"
_SOME_RECEIPTS = """
DELETE FROM receipt WHERE span = :span
AND ordinal IN (SELECT ordinal FROM receipt WHERE span = :span LIMIT :most)
"""


# ---- writing, inside a transaction


def add_compilation(
    connection: apsw.Connection, run: RunState, made: CompilationProjection, *, span: int
) -> None:
    """Write what one compile span tells: 0.4 ms for 200 receipts."""
    connection.execute(_ADD, (span, run.id, *made.row))
    _add_receipts(connection, made.receipts, span=span)
    if made.row.receipt_count:
        run.has_receipts = 1


def _add_receipts(
    connection: apsw.Connection, columns: Sequence[Sequence[Any]], *, span: int
) -> None:
    # Each column is laid into its places in all rows: tuples of rows take three times as long.
    values = [span] * (_WIDTH * len(columns[0]))
    for position, column in enumerate(columns, start=1):
        values[position::_WIDTH] = column
    size = _WIDTH * _ROWS_AT_ONCE
    for at in range(0, len(values), size):
        some = values[at : at + size]
        connection.execute(_receipts_sql(len(some) // _WIDTH), some)


@cache
def _receipts_sql(rows: int) -> str:
    return _insert("receipt", ("span", *RECEIPT_COLUMNS), rows=rows)


def remove_compilation(connection: apsw.Connection, run: RunState, *, span: int) -> None:
    """Take back what a compile span reported."""
    for sql in _DROP:
        connection.execute(sql, (span,))
    if run.has_receipts:
        run.has_receipts = int(connection.execute(_HAS_RECEIPTS, (run.id,)).get or 0)


def spans_awaiting(connection: apsw.Connection, result_refs: Sequence[str]) -> list[int]:
    """Return the compile spans that hold a part of their receipts, and name one of these results.

    Costs one look at an index that is empty unless a compile was cut.
    """
    if not result_refs or connection.execute(_IS_ANY_CUT).get is None:
        return []
    return [span for ref in result_refs for (span,) in connection.execute(_AWAITING, (ref,))]


def release_receipts(connection: apsw.Connection, run: int, *, most: int) -> int:
    """Delete some receipts of a run, and each compilation with its last one; 0: none is left."""
    span = connection.execute(_ONE_OF_RUN, (run,)).get
    if span is None:
        return 0
    connection.execute(_SOME_RECEIPTS, {"span": span, "most": most})
    gone = connection.changes()
    if gone < most:
        for sql in _DROP:
            connection.execute(sql, (span,))
    return gone + 1


# ---- reading


@dataclass(frozen=True, slots=True)
class Compilation:
    """A compile as its span tells it, and the run and step it stands in."""

    span: int  # span.id of the compile step
    run: int
    step_id: str
    run_id: str
    run_name: str
    parent_span_id: str | None
    row: CompilationRow


_SELECT = f"""
SELECT compilation.span, compilation.run, span.trace_id, span.span_id, {shared_side("span")},
  span.parent_span_id, run.name, {", ".join(f"compilation.{name}" for name in _COLUMNS)}
FROM compilation CROSS JOIN span ON span.id = compilation.span
  CROSS JOIN run ON run.id = compilation.run
"""
_BY_SPAN = f"{_SELECT} WHERE compilation.span = :span"
_WITH_ID = f"{_SELECT} WHERE compilation.id = :id ORDER BY compilation.span DESC LIMIT :limit"
_IDS = """
SELECT DISTINCT id FROM compilation WHERE id >= :low AND id < :high ORDER BY id LIMIT :limit
"""
_BELOW = """
SELECT compilation.span
FROM span CROSS JOIN compilation ON compilation.span = span.id
WHERE span.trace_id = :trace AND span.parent_span_id = :parent
ORDER BY span.sort_ns DESC LIMIT 1
"""
_IN_RUN = "SELECT max(span) FROM compilation WHERE id = :id AND run = :run"
_ANYWHERE = "SELECT max(span) FROM compilation WHERE id = :id"
_NAMING = """
SELECT rowid FROM attribute_fts WHERE attribute_fts MATCH :token ORDER BY rowid DESC LIMIT :limit
"""


def compilations_with_id(connection: apsw.Connection, compilation_id: str) -> list[Compilation]:
    """Return the compiles of one id, or of the one id that begins so, the newest first.

    Raises NotFoundError, or AmbiguousIdError where ids of several begin so.
    """
    is_known = connection.execute(_ANYWHERE, {"id": compilation_id}).get is not None
    found = compilation_id if is_known else _completed(connection, compilation_id)
    rows = connection.execute(_WITH_ID, {"id": found, "limit": _MOST_STEPS})
    return [_compilation(row) for row in rows]


def _completed(connection: apsw.Connection, prefix: str) -> str:
    if len(prefix) < _LEAST_PREFIX:
        raise NotFoundError("compilation", prefix)
    bounds = {"low": prefix, "high": prefix + _AFTER_ALL, "limit": _SHOWN_MATCHES}
    rows: list[Any] = connection.execute(_IDS, bounds).fetchall()
    if not rows:
        raise NotFoundError("compilation", prefix)
    if len(rows) > 1:
        raise AmbiguousIdError("compilation", prefix, [row[0] for row in rows])
    return str(rows[0][0])


def compilation_of_span(connection: apsw.Connection, span: int | None) -> Compilation | None:
    """Return the compile that a span (by span.id) tells."""
    row = connection.execute(_BY_SPAN, {"span": span}).fetchone()
    return None if row is None else _compilation(row)


def compilation_named(
    connection: apsw.Connection, compilation_id: str, *, run: int
) -> Compilation | None:
    """Return the newest compile of an id, one of this run (by run.id) before all others."""
    names = {"id": compilation_id, "run": run}
    span = connection.execute(_IN_RUN, names).get or connection.execute(_ANYWHERE, names).get
    return compilation_of_span(connection, span)


def compilation_below(
    connection: apsw.Connection, trace_id: bytes, span_id: bytes
) -> Compilation | None:
    """Return the last compile directly below a step."""
    span = connection.execute(_BELOW, {"trace": trace_id, "parent": span_id}).get
    return compilation_of_span(connection, span)


def spans_naming_compilation(connection: apsw.Connection, compilation_id: str) -> list[int]:
    """Return the spans (by span.id) that carry a compilation's id, the newest first."""
    token = {"token": attribute_token(ID_KEY, compilation_id), "limit": _MOST_STEPS}
    return [row[0] for row in connection.execute(_NAMING, token)]


def _compilation(row: Any) -> Compilation:
    span, run, trace_id, span_id, is_server, parent, name, *rest = row
    return Compilation(
        span=span,
        run=run,
        step_id=step_id_of(trace_id, span_id, is_server),
        run_id=trace_id.hex(),
        run_name=name,
        parent_span_id=None if parent is None else parent.hex(),
        row=CompilationRow(*rest),
    )


# What the compiles of a run came to, digested: equal outcomes, equal digests.
#
# A compile's own hash covers the moment it was made; two runs of one program never share it.

_OUTCOMES = """
SELECT compilation.span, compilation.budget_tokens, compilation.budget_reserve,
  compilation.item_total, receipt.item_id, receipt.decision, receipt.reason, receipt.section,
  receipt.tokens_after, receipt.original_ref, receipt.final_ref, receipt.rule_ids
FROM compilation LEFT JOIN receipt ON receipt.span = compilation.span
WHERE compilation.run = :run
ORDER BY compilation.span, receipt.item_id
"""


def compile_outcomes(connection: apsw.Connection, run: int) -> dict[int, str]:
    """Return a digest of budget and decisions by span.id of the compile step."""
    rows = connection.execute(_OUTCOMES, {"run": run})
    found = {}
    for span, group in groupby(rows, key=itemgetter(0)):
        digest = hashlib.sha256()
        for row in group:
            digest.update(repr(row[1:]).encode("utf-8", "surrogatepass"))
        found[span] = digest.hexdigest()
    return found


# What stands around a compile in its run: the ones before and after it, its policy checks.

_NEIGHBOUR = """
SELECT span FROM compilation
WHERE run = :run AND (started_ns, span) {side} (:started_ns, :span) AND model IS :model
ORDER BY started_ns {order}, span {order} LIMIT 1
"""
_BEFORE = _NEIGHBOUR.format(side="<", order="DESC")
_AFTER = _NEIGHBOUR.format(side=">", order="ASC")
_POLICY_BELOW = """
SELECT policy.id FROM span AS compile CROSS JOIN span AS policy
  ON policy.trace_id = compile.trace_id AND policy.parent_span_id = compile.span_id
WHERE compile.id = :span AND policy.role = 'policy'
ORDER BY policy.sort_ns, policy.id LIMIT 8
"""


def compilation_before(connection: apsw.Connection, made: Compilation) -> Compilation | None:
    """Return the compile of the same run and model that was made before this one."""
    return _neighbour(connection, _BEFORE, made)


def compilation_after(connection: apsw.Connection, made: Compilation) -> Compilation | None:
    """Return the compile of the same run and model that was made after this one."""
    return _neighbour(connection, _AFTER, made)


def policy_spans_of(connection: apsw.Connection, made: Compilation) -> list[int]:
    """Return the spans (by span.id) that tell what policy decided during a compile, at most 8."""
    return [row[0] for row in connection.execute(_POLICY_BELOW, {"span": made.span})]


def _neighbour(connection: apsw.Connection, sql: str, made: Compilation) -> Compilation | None:
    parameters: dict[str, Any] = {
        "run": made.run,
        "span": made.span,
        "started_ns": made.row.started_ns,
        "model": made.row.model,
    }
    span = connection.execute(sql, parameters).get
    return compilation_of_span(connection, span)
