"""How figures read on every page: `1.24 s`, `37.9k`, `$0.078`, `6 m`. Pure functions.

None is "unknown": templates show the word with the reason, never a zero.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from hansard_compiler.terminal import printable as printable

_NS_PER_S = 1_000_000_000
_MOST: Final = float(2**63 - 1)
_MINUTE_S = 60
_HOUR_S = 3600
_DAY_S = 86_400
WAITS = "waiting for a decision"
_STATUS_WORDS = {
    # One thing to people, seen from the action, from its run and from its step.
    "awaiting": WAITS,
    "blocked": WAITS,
    "revised": "sent back",
    "unset": "OK",
    "ok": "OK",
}
_DATA_URL: Final = re.compile(
    r"data:([\w.+-]{0,60}/?[\w.+-]{0,80})[^,\s]{0,200}?;base64,[A-Za-z0-9+/_=%-]*", re.ASCII
)
_MOST_LOOKED_AT: Final = 1_000_000  # characters of a text with data URLs


def duration(nanoseconds: int) -> str:
    """Return a length of time: `740 µs`, `288 ms`, `7.82 s`, `1 m 14 s`, `3 h 04 m`, `2 d 03 h`."""
    if nanoseconds < 0:
        return "−" + duration(-nanoseconds)
    if nanoseconds < 1_000_000:
        return f"{nanoseconds / 1000:.0f} µs" if nanoseconds >= 1000 else f"{nanoseconds} ns"
    # Rounding first keeps 999.6 ms from reading "1000 ms" and 59.996 s from reading "60.00 s".
    if round(nanoseconds / 1_000_000) < 1000:
        return f"{nanoseconds / 1_000_000:.0f} ms"
    if round(nanoseconds / _NS_PER_S, 2) < _MINUTE_S:
        return f"{nanoseconds / _NS_PER_S:.2f} s"
    seconds = round(nanoseconds / _NS_PER_S)
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S} m {seconds % _MINUTE_S:02d} s"
    if seconds < _DAY_S:
        return f"{seconds // _HOUR_S} h {seconds % _HOUR_S // _MINUTE_S:02d} m"
    return f"{seconds // _DAY_S} d {seconds % _DAY_S // _HOUR_S:02d} h"


def offset(nanoseconds: int) -> str:
    """Return a time after the start of a run: `0 s`, `44 ms`, `6.44 s`."""
    return duration(nanoseconds) if nanoseconds else "0 s"


def ago(nanoseconds: int) -> str:
    """Return an age in one unit: `now`, `12 s ago`, `6 m ago`, `3 d ago`; future is `now`."""
    seconds = nanoseconds // _NS_PER_S
    if seconds < 5:
        return "now"
    if seconds < _MINUTE_S:
        return f"{seconds} s ago"
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S} m ago"
    if seconds < 2 * _DAY_S:
        return f"{seconds // _HOUR_S} h ago"
    if seconds < 90 * _DAY_S:
        return f"{seconds // _DAY_S} d ago"
    return f"{seconds // (30 * _DAY_S)} mo ago"


def tokens(count: int) -> str:
    """Return a token count in at most five signs: `97`, `9.7k`, `112.9k`, `1.24M`."""
    if count < 1000:
        return str(count)
    if count < 999_950:
        return f"{count / 1000:.1f}k"
    return f"{count / 1_000_000:.2f}M"


def usd(dollars: float) -> str:
    """Return US dollars as `money` does; more than can be stored is the most that can be."""
    return money(round(_within(dollars * 1_000_000_000)))


def milliseconds(length: float) -> str:
    """Return a length of time as `duration` does."""
    return duration(round(_within(length * 1_000_000)))


def _within(amount: float) -> float:
    return max(-_MOST, min(amount, _MOST))


def money(usd_nano: int) -> str:
    """Return US dollars from 1e-9 dollars: two significant figures below a dollar, cents above."""
    if usd_nano == 0:
        return "$0"
    if usd_nano < 0:
        return "−" + money(-usd_nano)
    if usd_nano < 10_000:
        return "<$0.00001"  # as wide as any other: two figures of less would only be zeros
    usd = usd_nano / 1_000_000_000
    if usd >= 0.995:
        return f"${usd:,.2f}"
    # Decimal places that leave two significant figures; at least the two of a cent.
    places = 2
    while usd * 10**places < 9.95:
        places += 1
    return f"${usd:.{places}f}"


def natural(text: str, *, digits: int) -> int | None:
    """Return a whole number of an address or a form; None for any other or a longer text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def count(number: int) -> str:
    """Return a number with thousands apart."""
    return f"{number:,}"


def file_size(size_bytes: int) -> str:
    """Return a size in binary units: `812 B`, `48.2 KiB`, `1.4 GiB`."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    amount = float(size_bytes)
    for unit in ("KiB", "MiB", "GiB"):
        amount /= 1024
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1024:.1f} TiB"


def percent(part: float, whole: float) -> str:
    """Return a whole percentage; the smallest non-zero share reads `<1%`."""
    if whole <= 0:
        return "0%"
    share = 100 * part / whole
    return "<1%" if 0 < share < 1 else f"{share:.0f}%"


def plural(number: int, one: str, many: str = "") -> str:
    """Return `1 run`, `1,284 runs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def status_word(status: str) -> str:
    """Return what people call a status of a run, a step or an approval."""
    return _STATUS_WORDS.get(status, status.replace("_", " "))


def agent_words(span_name: str | None) -> str:
    """Return what a run is called: the agent alone where its span is `invoke_agent NAME`."""
    return (span_name or "").removeprefix("invoke_agent ").strip() or "(no name)"


def iso_time(epoch_ns: int) -> str:
    """Return RFC 3339 in UTC with nanoseconds, for `datetime` and `title`."""
    seconds, fraction = divmod(epoch_ns, _NS_PER_S)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        # Any 63-bit number may have been sent; years past 9999 have no calendar date here.
        return f"{epoch_ns} ns after 1970"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


def utc_time(epoch_ns: int) -> str:
    """Return date and time with nanoseconds and their zone, for titles: `… 14:02:57.5… UTC`."""
    text = iso_time(epoch_ns)
    return text[:-1].replace("T", " ") + " UTC" if text.endswith("Z") else text


def clock(epoch_ns: int) -> str:
    """Return the time of day in UTC, `14:02:57`."""
    return iso_time(epoch_ns)[11:19]


def day_time(epoch_ns: int) -> str:
    """Return date and time of day in UTC to the second, `2026-11-21 14:02:57`."""
    return iso_time(epoch_ns)[:19].replace("T", " ")


def without_data_urls(text: str) -> str:
    """Return a text with only the type of each data URL in it."""
    return _DATA_URL.sub(r"[\1]", text) if ";base64," in text else text


def shorten(text: str, characters: int) -> str:
    """Return a text on one line, cut with `…` where it is longer; data URLs are left out."""
    if ";base64," in text[: characters * 4]:
        text = without_data_urls(text[:_MOST_LOOKED_AT])
    # Only the part that can be shown is looked at: recorded texts may be megabytes.
    line = " ".join(text[: characters * 4].split())
    if len(line) <= characters and len(text) <= characters * 4:
        return line
    return line[: characters - 1].rstrip() + "…"
