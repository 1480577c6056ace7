"""What can be asked in a query string, read once and refused in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Annotated

from fastapi import Query

from hansard_store.annotation_filters import read_scores, read_tags
from hansard_store.errors import BadQueryError
from hansard_store.run_filters import RunFilter
from hansard_web.api.answers import SCHEMA_VERSION

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
_NANO = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:[Tt ](?P<clock>\d\d:\d\d(?::\d\d)?)(?:\.(?P<fraction>\d{1,9}))?"
    r"(?:(?P<utc>[Zz])|(?P<sign>[+\- ])(?P<hours>\d\d):?(?P<minutes>\d\d))?)?",
    re.ASCII,
)


class UnknownSchemaError(BadQueryError):
    """The client was written for another version of the API."""

    code = "schema_version_unknown"

    def __init__(self, wanted: str) -> None:
        super().__init__(
            "schema_version",
            f"schema_version {wanted!r} is not known; this API speaks {SCHEMA_VERSION!r}",
        )


def check_schema_version(
    schema_version: Annotated[
        str, Query(description="the version the client was written for; another is refused")
    ] = SCHEMA_VERSION,
) -> None:
    """Refuse a client that says it speaks a version this API does not."""
    if schema_version != SCHEMA_VERSION:
        raise UnknownSchemaError(schema_version)


def read_limit(
    limit: Annotated[
        str | None,
        Query(description=f"1 to {MAX_LIMIT}; {DEFAULT_LIMIT} unless given"),
    ] = None,
) -> int:
    """Return how many items to answer with."""
    if limit is None:
        return DEFAULT_LIMIT
    if not re.fullmatch(r"\d{1,9}", limit, re.ASCII) or not 1 <= int(limit) <= MAX_LIMIT:
        raise BadQueryError("limit", f"limit is {limit!r}; it can be 1 to {MAX_LIMIT}")
    return int(limit)


def read_run_filter(
    q: Annotated[str, Query(description="words, phrases, prefix*, -word")] = "",
    status: Annotated[list[str], Query(description="any of these")] = [],  # noqa: B006
    agent: Annotated[list[str], Query()] = [],  # noqa: B006
    model: Annotated[list[str], Query()] = [],  # noqa: B006
    tool: Annotated[list[str], Query()] = [],  # noqa: B006
    service: Annotated[list[str], Query()] = [],  # noqa: B006
    tag: Annotated[list[str], Query(description="stands on the run or a step; each of these")] = [],  # noqa: B006
    score: Annotated[
        list[str], Query(description="name, name:label, name>=0.5 or another comparison; each")
    ] = [],  # noqa: B006
    conversation: Annotated[str | None, Query()] = None,
    user: Annotated[str | None, Query()] = None,
    attribute: Annotated[
        list[str], Query(description="key:value, each on some span; key:* asks for the key alone")
    ] = [],  # noqa: B006
    since: Annotated[str | None, Query(description="started at or after: RFC 3339 or ns")] = None,
    until: Annotated[str | None, Query(description="started before: RFC 3339 or ns")] = None,
    min_duration_ms: Annotated[str | None, Query()] = None,
    min_cost: Annotated[str | None, Query(description="US dollars")] = None,
) -> RunFilter:
    """Return the filter of a list of runs; an empty value means that it was not given."""
    return RunFilter(
        q=q.strip(),
        status=_given(status),
        agent=_given(agent),
        model=_given(model),
        tool=_given(tool),
        service=_given(service),
        conversation=conversation or None,
        user=user or None,
        attributes=tuple(map(_attribute, _given(attribute))),
        tag=read_tags(_given(tag)),
        score=read_scores(_given(score)),
        since_ns=_time("since", since),
        until_ns=_time("until", until),
        min_duration_ns=_amount("min_duration_ms", min_duration_ms, unit_ns=1_000_000),
        min_cost_usd_nano=_amount("min_cost", min_cost, unit_ns=_NANO),
    )


@dataclass(frozen=True, slots=True)
class Window:
    """Runs that started at or after `since_ns` and before `until_ns`."""

    since_ns: int
    until_ns: int


def read_window(
    since: Annotated[str | None, Query(description="started at or after: RFC 3339 or ns")] = None,
    until: Annotated[str | None, Query(description="started before: RFC 3339 or ns")] = None,
) -> Window:
    """Return a window of time; all of it unless given."""
    since_ns, until_ns = _time("since", since), _time("until", until)
    return Window(since_ns or 0, (1 << 63) - 1 if until_ns is None else until_ns)


def read_times(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """Return two times as Unix nanoseconds; None where one is not given."""
    return _time("since", since), _time("until", until)


def _given(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(value for value in values if value)


def _attribute(text: str) -> tuple[str, str | None]:
    key, colon, value = text.partition(":")
    if not colon or not key:
        raise BadQueryError("attribute", f"attribute is {text!r}; write it as key:value")
    return key, None if value == "*" else value


def _amount(name: str, text: str | None, *, unit_ns: int) -> int | None:
    if not text:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("nan")
    # `not >= 0` is true for NaN as well.
    if not amount.is_finite() or amount < 0 or amount > Decimal(1 << 62) / unit_ns:
        raise BadQueryError(name, f"{name} is {text!r}; it is a number, 0 or more")
    return int(amount * unit_ns)


def _time(name: str, text: str | None) -> int | None:
    if not text:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        raise BadQueryError(
            name,
            f"{name} is {text!r}; write it as 2026-01-31T12:00:00.5Z, 2026-01-31 or nanoseconds",
        ) from error


def parse_time(text: str) -> int:
    """Return Unix nanoseconds of an RFC 3339 time, a day (its first moment in UTC), or digits.

    Without an offset it is UTC. Raises ValueError. A space stands for `+`, which is what an
    unescaped plus in a query string arrives as.
    """
    if re.fullmatch(r"\d{1,19}", text, re.ASCII) and int(text) < 1 << 63:
        return int(text)
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(text)
    clock = found["clock"] or "00:00:00"
    moment = datetime.fromisoformat(f"{found['day']}T{clock}").replace(tzinfo=_offset(found))
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    nanoseconds = seconds * _NANO + int((found["fraction"] or "").ljust(9, "0"))
    if not 0 <= nanoseconds < 1 << 63:
        raise ValueError(text)
    return nanoseconds


def _offset(found: re.Match[str]) -> timezone:
    if not found["hours"]:
        return UTC
    east = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"]))
    return timezone(-east if found["sign"] == "-" else east)
