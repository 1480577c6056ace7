"""Derived rows of two databases against one another: as they are, and as they are derived again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import apsw
from apsw.ext import query_info

from hansard_store.database.connections import open_for_maintenance, without_foreign_keys
from hansard_store.database.data_folder import DataFolder

_MOST_OF_TABLE: Final = 50
_AT_ONCE: Final = 10_000  # differing rows of a table that are compared
_SHOWN: Final = 60  # characters of a value

Progress = Callable[[str, int, int], None]


class Difference(NamedTuple):
    """A row that is not what was derived again."""

    table: str
    row: str
    message: str
    is_certain: bool = True  # False: a report that was replaced since may have left it, too


Found = Iterator[Difference]
# Rows that stay after a report of words that its successor does not repeat.
_ADDED_OR_LEFT: Final = (
    "was added, or left by a report that was replaced: its spans do not give it; "
    "`hansard rebuild` removes it"
)
_LEFT_OVER: Final = ("text", "text_use")


@dataclass(frozen=True, slots=True)
class _Derived:
    """Rows by names that do not depend on the order in which they were derived."""

    keys: int  # the columns that name a row come first
    columns: str
    tables: str = ""  # FROM, where it is not the table alone
    is_too: Mapping[str, Any] = field(default_factory=dict)  # a stored value that differs by right


# Of a run that is being deleted, some spans are gone: what is left is not derived again.
_BEING_DELETED: Final = "SELECT run.id FROM run JOIN tombstone USING (trace_id)"
# Texts and prefixes that nothing leads to any more wait for gc.
_REACHED: Final = f"""
WITH RECURSIVE leading (input, output) AS (
  SELECT input_prefix, output_prefix FROM call WHERE run NOT IN ({_BEING_DELETED})
), reached (id) AS (
  SELECT input FROM leading UNION SELECT output FROM leading
  UNION SELECT parent FROM message_prefix JOIN reached USING (id)
)
SELECT id FROM reached
"""
_USED: Final = f"""
SELECT text FROM text_use WHERE run NOT IN ({_BEING_DELETED})
UNION SELECT text FROM message_prefix WHERE id IN ({_REACHED})
"""
_CALL = """
span, run, candidate, counted, operation, provider, request_model, response_model, response_id,
finish_reason, of_input.hash AS input, of_output.hash AS output, input_is_delta, tokens_input,
tokens_output, tokens_cache_read, tokens_cache_write, tokens_reasoning, cost_usd_nano, cost_source,
first_token_ms
"""
_DERIVED: Final = {
    "span": _Derived(
        1,
        "id, parent_span_id, name, label, kind, start_ns, end_ns, sort_ns, status, role, dialect, "
        "flags, agent_name, tool_name, tool_call_id, model, tokens_input, tokens_output, "
        "tokens_cache_read, tokens_cache_write, tokens_reasoning, cost_usd_nano, summary, notes, "
        "derived_version, likeness",
        is_too={"likeness": None},  # of a version before the column
    ),
    "run": _Derived(
        1,
        "id, trace_id, synthetic, root_span, root_rank, name, agent_name, domain, status, "
        "times_rank, started_ns, ended_ns, span_count, step_count, open_count, error_count, "
        "model_calls, tool_calls, tokens_input, tokens_output, tokens_cache_read, "
        "tokens_cache_write, tokens_reasoning, cost_usd_nano, conversation_id, user_id, "
        "first_input, last_output, agent_span, domain_span, conversation_span, user_span, "
        "first_input_span, last_output_span, has_receipts, notes, work_count, "
        "prompt_id, last_prompt_id, prompt_span, last_prompt_span, group_id, user_goal, "
        "user_goal_span, call_scope",
        is_too={"call_scope": 0},  # several: a report of another scope was replaced since
    ),
    "run_facet": _Derived(3, "kind, value, run"),
    "call": _Derived(
        1,
        _CALL,
        "call LEFT JOIN message_prefix AS of_input ON of_input.id = input_prefix "
        "LEFT JOIN message_prefix AS of_output ON of_output.id = output_prefix "
        f"WHERE run NOT IN ({_BEING_DELETED})",
    ),
    "error_step": _Derived(1, "*"),
    "usage_sum": _Derived(1, "*"),
    "usage_below": _Derived(2, "*"),
    "text": _Derived(1, "hash, field, role, match_hash", f"text WHERE id IN ({_USED})"),
    "text_use": _Derived(
        2,
        "hash, run",
        f"text_use JOIN text ON text.id = text WHERE run NOT IN ({_BEING_DELETED})",
    ),
    "message_prefix": _Derived(1, "hash, depth", f"message_prefix WHERE id IN ({_REACHED})"),
    "tool_event": _Derived(5, "run, call_id, name, requested, ran"),
    "compilation": _Derived(1, "*"),
    "receipt": _Derived(2, "*"),
    "span_link": _Derived(2, "*"),
    "session_log": _Derived(1, "*"),
}
# What a rebuild adds only where it is missing. The other rows it takes back run by run.
_FORGET: Final = """
INSERT INTO text_fts (text_fts) VALUES ('delete-all');
DELETE FROM text;
DELETE FROM message_prefix;
DELETE FROM content_use WHERE run < 0 AND run % 2 = 0;
"""


# What a column of a derived row refers to, wherever a table has one of that name.
_PARENTS: Final = {
    "run": "run",
    "span": "span",
    "requested": "span",  # the call and the step of a tool event
    "ran": "span",
    "text": "text",
    "log": "log_record",
}

_MARKS_OF_NO_RUN: Final = """
SELECT trace_id, span_id FROM usage_below
WHERE NOT EXISTS (SELECT 1 FROM run WHERE run.trace_id = usage_below.trace_id) LIMIT ?
"""


def forget_derived(folder: DataFolder) -> None:
    """Remove, of a copy, what a rebuild would find and leave as it is.

    Otherwise such rows would be compared with themselves.
    """
    with closing(open_for_maintenance(folder)) as connection, without_foreign_keys(connection):
        connection.execute(_FORGET)


def find_orphans(connection: apsw.Connection) -> Found:
    """Yield the derived rows of runs, spans, texts and logs that are not there.

    A rebuild goes from run to run, so it neither makes nor removes them.
    """
    for table in _DERIVED:
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for column, parent in _PARENTS.items():
            if column in columns:
                sql = (
                    f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL AND NOT "
                    f"EXISTS (SELECT 1 FROM {parent} WHERE {parent}.id = {table}.{column}) LIMIT ?"
                )
                for (number,) in connection.execute(sql, (_MOST_OF_TABLE,)):
                    yield Difference(
                        table, f"{column} {number}", f"is of a {parent} that is not there"
                    )
    for trace_id, span_id in connection.execute(_MARKS_OF_NO_RUN, (_MOST_OF_TABLE,)):
        row = f"{trace_id.hex()}.{span_id.hex()}"
        yield Difference("usage_below", row, "is of a run that is not there")


def compare_derived(
    old: apsw.Connection,
    new: apsw.Connection,
    *,
    progress: Progress = lambda _what, _done, _total: None,
) -> Found:
    """Yield the rows that are not what was derived again, at most 50 of each table."""
    for number, name in enumerate(_DERIVED, start=1):
        yield from islice(_differences(name, old, new), _MOST_OF_TABLE)
        progress("compared", number, len(_DERIVED))


def _differences(name: str, old: apsw.Connection, new: apsw.Connection) -> Found:
    """Yield what differs of a table; rows come sorted, and are merged."""
    keys = _DERIVED[name].keys
    is_too = _DERIVED[name].is_too
    missing: dict[Any, Any] = {}
    extra: dict[Any, Any] = {}
    columns, olds, news = *_rows(name, old), _rows(name, new)[1]
    for row, is_old in islice(_unmatched(olds, news), _AT_ONCE):
        (extra if is_old else missing)[row[:keys]] = row
    for key in sorted({*missing, *extra}, key=repr):
        row = ",".join(_text(one) for one in key)
        if key not in extra:
            yield Difference(name, row, "is gone: its spans give it")
        elif key not in missing and name in _LEFT_OVER:
            yield Difference(name, row, _ADDED_OR_LEFT, is_certain=False)
        elif key not in missing:
            yield Difference(name, row, "was added: its spans do not give it")
        else:
            names = differences(columns, extra[key], missing[key], is_too=is_too)
            if names:
                yield Difference(name, row, f"has {names} as its spans give it")


def differences(
    columns: Sequence[str],
    found: Sequence[Any],
    expected: Sequence[Any],
    *,
    is_too: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """Name the columns of a row that differ from the expected ones; "" where none does.

    `is_too`: values that a column may have beside the expected one.
    """
    return "; ".join(
        f"{column} {_text(one)}, and {_text(other)}"
        for column, one, other in zip(columns, found, expected, strict=True)
        if one != other and (column not in is_too or one != is_too[column])
    )


def _rows(name: str, connection: apsw.Connection) -> tuple[list[str], Iterator[Any]]:
    derived = _DERIVED[name]
    sql = f"SELECT {derived.columns} FROM {derived.tables or name}"
    columns = [str(one[0]) for one in query_info(connection, sql).description]
    order = ", ".join(str(number + 1) for number in range(len(columns)))
    return columns, iter(connection.execute(f"{sql} ORDER BY {order}"))


def _unmatched(olds: Iterator[Any], news: Iterator[Any]) -> Iterator[tuple[Any, bool]]:
    """Yield rows of one side that the other one lacks; True: of the first."""
    old, new = next(olds, None), next(news, None)
    while old is not None or new is not None:
        if old == new:
            old, new = next(olds, None), next(news, None)
        elif new is None or (old is not None and _order(old) < _order(new)):
            yield old, True
            old = next(olds, None)
        else:
            yield new, False
            new = next(news, None)


def _order(row: Any) -> tuple[Any, ...]:
    """Return a row as SQLite sorts it: NULL, numbers, texts by their bytes, blobs."""
    return tuple(_rank(one) for one in row)


def _rank(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    if isinstance(value, int | float):
        return 1, value
    return (2, value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else (3, value)


def _text(value: Any) -> str:
    text = value.hex() if isinstance(value, bytes) else "none" if value is None else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


# Log records and metric points with the columns that are read from their records.

_LOG_COLUMNS: Final = (
    "trace_id",
    "span_id",
    "severity",
    "event_name",
    "session",
    "body_text",
    "notes",
)
_LOGS: Final = f"""
SELECT log_record.id, record, resource, scope, session_log.log IS NOT NULL, session_log.trace_id,
  {", ".join(f"log_record.{one}" for one in _LOG_COLUMNS)}
FROM log_record LEFT JOIN session_log ON session_log.log = log_record.id
"""
_POINT_COLUMNS: Final = ("name", "unit", "kind", "value")
_POINTS: Final = f"SELECT id, record, {', '.join(_POINT_COLUMNS)} FROM metric_point"


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A log record, and its columns by name."""

    id: int
    record: bytes
    resource: int
    scope: int
    is_of_session: bool  # the record of an agent that is read by its log records
    home: bytes | None  # the trace that such a record belongs to
    columns: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A metric point, and its columns by name."""

    id: int
    record: bytes
    columns: dict[str, Any]


def iter_logs(connection: apsw.Connection) -> Iterator[StoredLog]:
    """Yield all log records."""
    for number, record, resource, scope, is_of_session, home, *values in connection.execute(_LOGS):
        columns = dict(zip(_LOG_COLUMNS, values, strict=True))
        yield StoredLog(number, record, resource, scope, bool(is_of_session), home, columns)


def iter_points(connection: apsw.Connection) -> Iterator[StoredPoint]:
    """Yield all metric points."""
    for number, record, *values in connection.execute(_POINTS):
        yield StoredPoint(number, record, dict(zip(_POINT_COLUMNS, values, strict=True)))
