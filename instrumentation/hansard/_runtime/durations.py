"""Durations that a program gives: seconds as a number, or a timedelta."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

Duration: TypeAlias = float | timedelta


def seconds(duration: Duration, name: str) -> float:
    """Return a duration in seconds; `name` is the parameter that the errors are about.

    Raises TypeError for what is neither a number nor a timedelta, ValueError for less than none.
    """
    if isinstance(duration, timedelta):
        number = duration.total_seconds()
    elif isinstance(duration, int | float) and not isinstance(duration, bool):
        number = float(duration)
    else:
        raise TypeError(f"{name} is a number of seconds or a timedelta, not {duration!r}")
    if not number >= 0:
        raise ValueError(f"{name} is a duration of 0 seconds or more, not {duration!r}")
    return number
