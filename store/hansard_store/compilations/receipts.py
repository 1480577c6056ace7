"""Receipts: what compiles did with items, and why, across all runs or of one compile.

Newest compile first, and within one in the order in which its candidates came. Every filter is
driven by an index: a run by its compiles, and anything else by the compile spans in whose
attributes it stands. An index of the receipts' own would write a page for each value of a compile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, get_args

import apsw

from hansard_compiler.compile.models import SourceType
from hansard_store.compilations.queries import RECEIPT_COLUMNS
from hansard_store.database.cursors import Page, decode_cursor, encode_cursor
from hansard_store.database.transactions import snapshot
from hansard_store.runs.queries import find_trace_id
from hansard_store.search.attributes import attribute_token
from hansard_store.steps.shared_span_ids import shared_side, step_id_of

_MAX = (1 << 63) - 1
SOURCE_TYPES: tuple[str, ...] = get_args(SourceType)
MOST_NAME_CHARS, MOST_TEXT_CHARS = 128, 512  # of names; of ids and sources. Longer ones are cut
ITEMS_KEY, SOURCES_KEY = "hansard.item.ids", "hansard.item.sources"
# What a receipt may be requested by, and under which key `attribute_fts` has it. The last two are
# no attributes: those hold the rules of an item in one text, and types of sources with places.
FACET_KEYS: Mapping[str, str] = {
    "kind": "hansard.item.kinds",
    "decision": "hansard.item.decisions",
    "pass": "hansard.item.passes",
    "reason": "hansard.item.reasons",
    "rule": "hansard.item.rule",
    "source_type": "hansard.item.source_type",
}
_NAMES = ("kind", "decision", "pass", "reason")
_AT_ONCE = 64  # compile spans whose receipts are looked through together


@dataclass(frozen=True, slots=True)
class ReceiptFilter:
    """What is requested; None = anything. `pass_name` and `rule` are names, times Unix ns."""

    item: str | None = None
    reason: str | None = None
    rule: str | None = None
    pass_name: str | None = None
    decision: str | None = None
    kind: str | None = None
    source: str | None = None  # a type, a place, or both: `file docs/a.md`
    run: str | None = None  # id, or a unique beginning of it
    since_ns: int | None = None  # when the compile began
    until_ns: int | None = None


class StoredReceipt(NamedTuple):
    """What one compile did with one item; None is unknown, never zero.

    A tuple, since pages of large compiles read thousands: a frozen dataclass takes ten times as
    long to make.
    """

    span: int  # span.id of the compile step
    ordinal: int
    item_id: str
    kind: str | None
    decision: str
    pass_name: str | None
    reason: str
    source_type: str | None
    source: str | None
    section: str | None
    tokens_before: int | None
    tokens_after: int | None
    score_nano: int | None
    missed_tokens: int | None
    missed_score_nano: int | None
    related: str | None
    rule_ids: str | None
    original: bytes | None
    other_final: bytes | None  # what was sent, where that is not the original

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(self.rule_ids.split(",")) if self.rule_ids else ()

    @property
    def final(self) -> bytes | None:
        """Return the digest of what was sent; None when nothing was, or it is not known."""
        if self.other_final is not None or self.section is None:
            return self.other_final
        return self.original


@dataclass(frozen=True, slots=True)
class FoundReceipt:
    """A receipt and the compile it is of."""

    receipt: StoredReceipt
    compilation_id: str
    step_id: str
    run_id: str
    run_name: str
    started_ns: int
    model: str | None


_RECEIPT = ", ".join(f"receipt.{column}" for column in ("span", *RECEIPT_COLUMNS))
_WIDTH = len(StoredReceipt._fields)
_OF_SPAN = f"SELECT {_RECEIPT} FROM receipt WHERE receipt.span = :span ORDER BY receipt.ordinal"
_FOUND = f"""
SELECT {_RECEIPT}, compilation.id, span.trace_id, span.span_id, {shared_side("span")}, run.name,
  compilation.started_ns, compilation.model
FROM {{tables}}
  CROSS JOIN span ON span.id = receipt.span
  CROSS JOIN run ON run.id = compilation.run
WHERE {{conditions}}
ORDER BY {{order}}, receipt.ordinal LIMIT :limit
"""
_RUN = "SELECT id FROM run WHERE trace_id = ?"
_FROM_COMPILATION = "compilation CROSS JOIN receipt ON receipt.span = compilation.span"
_NAMING = """
SELECT rowid FROM attribute_fts
WHERE attribute_fts MATCH :tokens AND attribute_fts.rowid <= :span
ORDER BY attribute_fts.rowid DESC LIMIT :limit
"""
_FROM_SPANS = f"json_each(:spans) AS wanted CROSS JOIN {_FROM_COMPILATION}"
_CONDITIONS = {
    # A comma is between two rules, never in one.
    "rule": """instr(',' || receipt.rule_ids || ',', ',' || :rule || ',') > 0
  AND instr(:rule, ',') = 0""",
    "reason": "receipt.reason = :reason",
    "pass": "receipt.pass = :pass",
    "kind": "receipt.kind = :kind",
    "source_type": "receipt.source_type = :source_type",
    "decision": "receipt.decision = :decision",
    "item_id": "receipt.item_id = :item_id",
    "place": "receipt.source = :place",
    "source": """:source IN
    (receipt.source, receipt.source_type, receipt.source_type || ' ' || receipt.source)""",
    "run": "compilation.run = :run",
}


def list_receipts(
    connection: apsw.Connection,
    filters: ReceiptFilter,
    *,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[FoundReceipt]:
    """Return receipts that meet a filter.

    Raises NotFoundError or AmbiguousIdError for the run, InvalidCursorError for a broken cursor.
    """
    span, ordinal = decode_cursor("receipts", cursor, count=2) if cursor else (_MAX, -1)
    position: dict[str, Any] = {"span": span, "ordinal": ordinal, "limit": limit + 1}
    with snapshot(connection):
        values = _values(filters)
        tokens = _tokens(values) if filters.run is None else None
        if tokens is not None:
            rows = list(islice(_naming(connection, filters, values, tokens, position), limit + 1))
        else:
            if filters.run is not None:
                trace_id = find_trace_id(connection, filters.run)
                values["run"] = connection.execute(_RUN, (trace_id,)).get
            after = "compilation.span <= :span"
            sql = _query(filters, values, after, _FROM_COMPILATION, "compilation.span DESC")
            rows = connection.execute(sql, values | position).fetchall()
    items = [_found(row) for row in rows[:limit]]
    more = len(rows) > limit
    return Page(tuple(items), encode_cursor("receipts", *rows[limit - 1][:2]) if more else None)


def receipts_of(connection: apsw.Connection, span: int) -> list[StoredReceipt]:
    """Return all receipts of one compile (by the span.id of its step)."""
    return list(map(StoredReceipt._make, connection.execute(_OF_SPAN, {"span": span})))


def _naming(
    connection: apsw.Connection,
    filters: ReceiptFilter,
    values: dict[str, Any],
    tokens: str,
    position: dict[str, Any],
) -> Iterator[Any]:
    """Yield rows of the compiles whose spans name what is requested, some spans at a time."""
    sql = _query(filters, values, "compilation.span = wanted.value", _FROM_SPANS, "wanted.key")
    before = position["span"]
    while True:
        page = {"tokens": tokens, "span": before, "limit": _AT_ONCE}
        spans = [row[0] for row in connection.execute(_NAMING, page)]
        yield from connection.execute(
            sql, values | position | {"spans": json.dumps(spans)}
        ).fetchall()
        if len(spans) < _AT_ONCE:
            return
        before = spans[-1] - 1


def _tokens(values: Mapping[str, Any]) -> str | None:
    """Return what finds the spans that name all that is requested; None where that is nothing."""
    names = dict(values)
    found = []
    if "place" in names:
        # Says the type as well, and spans of before there was an index of types have it too.
        line = f"{names.pop('source_type')} {names['place']}"
        found.append(attribute_token(SOURCES_KEY, line))
    found += [
        attribute_token(key, names[facet]) for facet, key in FACET_KEYS.items() if facet in names
    ]
    if "item_id" in values:
        found.append(attribute_token(ITEMS_KEY, values["item_id"]))
    if "source" in values:
        found.append(f"({' OR '.join(_tokens_of_source(values['source']))})")
    return " AND ".join(found) or None


def _tokens_of_source(source: str) -> Iterator[str]:
    """Yield tokens of a place of any type, of a type that is not known here, or of both."""
    for line in (source, *(f"{kind} {source}" for kind in SOURCE_TYPES)):
        yield attribute_token(SOURCES_KEY, line)
    yield attribute_token(FACET_KEYS["source_type"], source)


def _query(
    filters: ReceiptFilter, values: dict[str, Any], position: str, tables: str, order: str
) -> str:
    conditions = [
        *(condition for name, condition in _CONDITIONS.items() if name in values),
        *_times(filters, values),
        position,
        "(receipt.span < :span OR receipt.ordinal > :ordinal)",
    ]
    return _FOUND.format(tables=tables, conditions="\n  AND ".join(conditions), order=order)


def _values(filters: ReceiptFilter) -> dict[str, Any]:
    parameters = {
        "item_id": filters.item,
        "rule": filters.rule,
        "reason": filters.reason,
        "pass": filters.pass_name,
        "kind": filters.kind,
        "decision": filters.decision,
        **_parts_of_source(filters.source),
    }
    return {name: _as_kept(name, value) for name, value in parameters.items() if value is not None}


def _as_kept(name: str, value: str) -> str:
    """Return a value as it stands in receipts, of which it may be the beginning only."""
    return value[: MOST_NAME_CHARS if name in _NAMES else MOST_TEXT_CHARS]


def _parts_of_source(source: str | None) -> Mapping[str, str | None]:
    """Return type and place of `file docs/a.md` or `file`; anything else as it was given."""
    kind, _, path = (source or "")[:MOST_TEXT_CHARS].partition(" ")
    if kind in SOURCE_TYPES:
        return {"source_type": kind, "place": path or None}
    return {"source": source}  # a place, or something of a later version


def _times(filters: ReceiptFilter, values: dict[str, Any]) -> list[str]:
    conditions = []
    if filters.since_ns is not None:
        values["since"] = filters.since_ns
        conditions.append("compilation.started_ns >= :since")
    if filters.until_ns is not None:
        values["until"] = filters.until_ns
        conditions.append("compilation.started_ns < :until")
    return conditions


def _found(row: Any) -> FoundReceipt:
    compilation_id, trace_id, span_id, is_server, name, started_ns, model = row[_WIDTH:]
    return FoundReceipt(
        receipt=StoredReceipt._make(row[:_WIDTH]),
        compilation_id=compilation_id,
        step_id=step_id_of(trace_id, span_id, is_server),
        run_id=trace_id.hex(),
        run_name=name,
        started_ns=started_ns,
        model=model,
    )
