"""Times as people and programs write them: `24h` ago, a day, RFC 3339, or nanoseconds.

One reading for the filter box, the query parameters of the API and the options of the commands.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from hansard_store.errors import InvalidQueryError

_NANO: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIME: Final = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:[Tt ](?P<clock>\d\d:\d\d(?::\d\d)?)(?:\.(?P<fraction>\d{1,9}))?"
    r"(?:(?P<utc>[Zz])|(?P<sign>[+\- ])(?P<hours>\d\d):?(?P<minutes>\d\d))?)?",
    re.ASCII,
)
_LENGTH: Final = re.compile(
    r"(?P<amount>\d{1,9}(?:\.\d{1,9})?)(?P<unit>ms|s|m|min|h|d|w)", re.ASCII
)
_UNIT_MS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}


def parse_length_ms(text: str) -> int | None:
    """Return the milliseconds of `250ms`, `1.5s`, `2m`, `1h`, `7d`; of digits: milliseconds."""
    if re.fullmatch(r"\d{1,18}", text, re.ASCII):
        return int(text)
    match = _LENGTH.fullmatch(text)
    return round(float(match["amount"]) * _UNIT_MS[match["unit"]]) if match else None


def read_time(name: str, text: str | None, *, now_ns: int | None = None) -> int | None:
    """Return Unix nanoseconds of a parameter; None where it is absent. Raises InvalidQueryError."""
    if not text:
        return None
    try:
        return parse_time(text, now_ns=time.time_ns() if now_ns is None else now_ns)
    except ValueError as error:
        raise InvalidQueryError(
            name,
            f"{name} is {text[:80]!r}; expected a time from 1970 to 2262 as 24h or 7d (that long "
            "ago), 2026-01-31T12:00:00.5Z, 2026-01-31 or nanoseconds",
        ) from error


def parse_time(text: str, *, now_ns: int | None = None) -> int:
    """Return Unix nanoseconds of an RFC 3339 time, a day (its first moment in UTC), or digits.

    With `now_ns`, `24h` is so long before it. Without an offset a time is UTC. Raises ValueError. A
    space stands for `+`, which is what an unescaped plus in a query string arrives as.
    """
    if re.fullmatch(r"\d{1,19}", text, re.ASCII) and int(text) < 1 << 63:
        return int(text)
    if now_ns is not None and _LENGTH.fullmatch(text):
        return max(now_ns - (parse_length_ms(text) or 0) * _NS_PER_MS, 0)
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
