"""The filters of the API, parsed once from texts and refused with a message.

For queries of URLs (`params.py`), options of commands and tools alike; knows no web framework.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeVar

from apsw import Connection

from hansard_store.annotations.queries import read_scores, read_tags
from hansard_store.database.cursors import Page, decode_cursor, encode_cursor
from hansard_store.errors import InvalidQueryError
from hansard_store.runs.filters import (
    RunFilter,
    check_filters,
    parse_error,
    parse_group,
    parse_kind,
    parse_receipts,
)
from hansard_store.runs.queries import find_trace_id
from hansard_web.api.times import read_time

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
SEVERAL: Final = ("status", "agent", "model", "tool", "service", "tag", "score", "attribute")
_ABOVE_ALL = (1 << 63) - 1
_NANO = 1_000_000_000


_Item = TypeVar("_Item")
_Word = TypeVar("_Word", bound=str)


@dataclass(frozen=True, slots=True)
class Window:
    """Runs that started at or after `since_ns` and before `until_ns`."""

    since_ns: int
    until_ns: int


def limit_of(text: str | None) -> int:
    """Return how many items to answer with."""
    if text is None:
        return DEFAULT_LIMIT
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not 1 <= int(text) <= MAX_LIMIT:
        raise InvalidQueryError("limit", f"limit is {text!r}; it can be 1 to {MAX_LIMIT}")
    return int(text)


def read_word(name: str, text: str | None, words: Sequence[_Word]) -> _Word | None:
    """Return one of the words that a parameter can be; None where it is not given."""
    if text and text not in words:
        raise InvalidQueryError(name, f"{name} is {text[:40]!r}; it is one of {', '.join(words)}")
    return next((known for known in words if known == text), None)


def trace_id_of(text: str, read: Callable[[], AbstractContextManager[Connection]]) -> bytes:
    """Return a run's id; one that is whole need not be stored: it may be deleted, or yet to come.

    Raises NotFoundError, AmbiguousIdError for a beginning of one.
    """
    if re.fullmatch("[0-9a-f]{32}", text):
        return bytes.fromhex(text)
    with read() as connection:
        return find_trace_id(connection, text)


def read_numbered(
    kind: str,
    cursor: str | None,
    read: Callable[[int], Sequence[_Item]],
    *,
    limit: int,
    number: Callable[[_Item], int],
) -> Page[_Item]:
    """Return a page of a list by falling numbers; `read` returns what is below a number."""
    before = _ABOVE_ALL if cursor is None else decode_cursor(kind, cursor, count=1)[0]
    found = read(before)
    is_full = len(found) == limit
    return Page(found, encode_cursor(kind, number(found[-1])) if is_full else None)


def window_of(since: str | None, until: str | None) -> Window:
    """Return a window of time; all of it by default."""
    since_ns, until_ns = read_times(since, until)
    return Window(since_ns or 0, (1 << 63) - 1 if until_ns is None else until_ns)


def run_filter_of(values: Mapping[str, Any]) -> RunFilter:
    """Return the filter of a list of runs, of texts by name; an empty value is no filter."""
    several = {name: _distinct(values.get(name) or ()) for name in SEVERAL}
    check_filters(sum(map(len, several.values())))
    return RunFilter(
        q=(values.get("q") or "").strip(),
        kind=parse_kind(values.get("kind")),
        conversation=values.get("conversation") or None,
        group=parse_group(values.get("group")),
        error=parse_error(values.get("error")),
        user=values.get("user") or None,
        has_receipts=parse_receipts(values.get("receipts")),
        attributes=tuple(map(_attribute, several.pop("attribute"))),
        tag=read_tags(several.pop("tag")),
        score=read_scores(several.pop("score")),
        since_ns=read_time("since", values.get("since")),
        until_ns=read_time("until", values.get("until")),
        min_duration_ns=_amount(values, "min_duration_ms", unit_ns=1_000_000),
        min_cost_usd_nano=_amount(values, "min_cost", unit_ns=_NANO),
        **several,
    )


def read_times(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """Return two times as Unix nanoseconds; None where one is absent."""
    return read_time("since", since), read_time("until", until)


def _distinct(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def _attribute(text: str) -> tuple[str, str | None]:
    key, colon, value = text.partition(":")
    if not colon or not key:
        raise InvalidQueryError("attribute", f"attribute is {text!r}; write it as key:value")
    return key, None if value == "*" else value


def _amount(values: Mapping[str, Any], name: str, *, unit_ns: int) -> int | None:
    text = values.get(name)
    if not text:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("nan")
    # `not >= 0` is true for NaN as well.
    if not amount.is_finite() or amount < 0 or amount > Decimal(1 << 62) / unit_ns:
        raise InvalidQueryError(name, f"{name} is {text!r}; it is a number, 0 or more")
    return int(amount * unit_ns)
