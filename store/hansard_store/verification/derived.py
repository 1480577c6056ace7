"""Derived rows of two databases against one another: as they are, and as they are derived again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import apsw
from apsw.ext import query_info

_MOST_OF_TABLE: Final = 50
_AT_ONCE: Final = 10_000  # differing rows of a table that are told apart
_SHOWN: Final = 60  # characters of a value

Found = Iterator[tuple[str, str, str]]  # table, row, message
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class _Derived:
    """Rows by names that do not depend on the order in which they were derived."""

    keys: int  # the columns that name a row come first
    columns: str
    tables: str = ""  # FROM, where it is not the table alone


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
        "tokens_cache_read, tokens_cache_write, tokens_reasoning, cost_usd_nano, summary, notes",
    ),
    "run": _Derived(
        1,
        "id, trace_id, synthetic, root_span, root_rank, name, agent_name, domain, status, "
        "times_rank, started_ns, ended_ns, span_count, step_count, open_count, error_count, "
        "model_calls, tool_calls, tokens_input, tokens_output, tokens_cache_read, "
        "tokens_cache_write, tokens_reasoning, cost_usd_nano, conversation_id, user_id, "
        "first_input, last_output, agent_span, domain_span, conversation_span, user_span, "
        "first_input_span, last_output_span, has_receipts, notes, work_count, "
        "prompt_id, last_prompt_id, group_id, user_goal, user_goal_span",
    ),
    "run_facet": _Derived(3, "kind, value, run"),
    "call": _Derived(
        1,
        _CALL,
        "call LEFT JOIN message_prefix AS of_input ON of_input.id = input_prefix "
        "LEFT JOIN message_prefix AS of_output ON of_output.id = output_prefix",
    ),
    "usage_sum": _Derived(1, "*"),
    "usage_below": _Derived(2, "*"),
    "text": _Derived(1, "hash, field, role, match_hash"),
    "text_use": _Derived(2, "hash, run", "text_use JOIN text ON text.id = text"),
    "message_prefix": _Derived(1, "hash, depth"),
    "tool_event": _Derived(5, "run, call_id, name, requested, ran"),
    "compilation": _Derived(1, "*"),
    "receipt": _Derived(2, "*"),
    "span_link": _Derived(2, "*"),
    "session_log": _Derived(1, "*"),
}


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
                    yield table, f"{column} {number}", f"is of a {parent} that is not there"
    for trace_id, span_id in connection.execute(_MARKS_OF_NO_RUN, (_MOST_OF_TABLE,)):
        yield "usage_below", f"{trace_id.hex()}.{span_id.hex()}", "is of a run that is not there"


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
    missing: dict[Any, Any] = {}
    extra: dict[Any, Any] = {}
    columns, olds, news = *_rows(name, old), _rows(name, new)[1]
    for row, is_old in islice(_unmatched(olds, news), _AT_ONCE):
        (extra if is_old else missing)[row[:keys]] = row
    for key in sorted({*missing, *extra}, key=repr):
        row = ",".join(_text(one) for one in key)
        if key not in extra:
            yield name, row, "is gone: its spans give it"
        elif key not in missing:
            yield name, row, "was added: its spans do not give it"
        else:
            told = [
                f"{column} {_text(found)}, and {_text(given)}"
                for column, found, given in zip(columns, extra[key], missing[key], strict=True)
                if found != given
            ]
            yield name, row, f"has {'; '.join(told)} as its spans give it"


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
