"""What a collector's answer means for the batch that was sent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Outcome(Enum):
    ACCEPTED = "accepted"
    LATER = "later"  # the collector's trouble, or the way there: the same batch may do later
    DOUBTFUL = "doubtful"  # it may be either: whoever sends it finds out
    REFUSED = "refused"  # the batch's own fault: it will never be taken
    NOT_RECEIVED = "not received"  # this endpoint takes no such signal


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a batch, with words for the log."""

    outcome: Outcome
    reason: str = ""
    retry_after_s: float | None = None  # as the collector asked


ACCEPTED: Final = Answer(Outcome.ACCEPTED)
BROKEN: Final = Answer(Outcome.REFUSED, "the batch could not be encoded, or is over 64 MiB")

# OTLP: these say that the request itself is wrong. All else a working collector may cure.
_REFUSED_STATUSES: Final = frozenset({400, 413, 422})
_ELSEWHERE_STATUSES: Final = frozenset({404, 405, 410, 501})
_DOUBTFUL_CODES: Final = frozenset({"INTERNAL", "UNKNOWN", "OUT_OF_RANGE", "FAILED_PRECONDITION"})
# A server out of means answers with the same code as one that was sent too much at once.
_TOO_LARGE: Final = re.compile(r"larger than|size limit|too large", re.IGNORECASE)


def of_status(status: int, reason: str, *, retry_after: str | None = None) -> Answer:
    """Return what an HTTP status means; `retry_after` is the header's value."""
    if 200 <= status < 300:
        return ACCEPTED
    told = f"it answered {status} {reason}".rstrip()
    if status in _REFUSED_STATUSES:
        return Answer(Outcome.REFUSED, told)
    if status in _ELSEWHERE_STATUSES:
        return Answer(Outcome.NOT_RECEIVED, told)
    if status == 500:
        return Answer(Outcome.DOUBTFUL, told)
    if 300 <= status < 400:
        told += ", which OTLP does not follow; give the address it leads to"
    return Answer(Outcome.LATER, told, _seconds(retry_after))


def of_code(code: str, details: str) -> Answer:
    """Return what a gRPC status code means, by its name."""
    told = f"it answered {code}" + (f" ({details[:200]})" if details else "")
    if code == "INVALID_ARGUMENT" or (code == "RESOURCE_EXHAUSTED" and _TOO_LARGE.search(details)):
        return Answer(Outcome.REFUSED, told)
    if code == "UNIMPLEMENTED":
        return Answer(Outcome.NOT_RECEIVED, told)
    return Answer(Outcome.DOUBTFUL if code in _DOUBTFUL_CODES else Outcome.LATER, told)


def _seconds(retry_after: str | None) -> float | None:
    """Read the header; a date is not worth a clock that may differ."""
    try:
        return max(float(retry_after), 0.0) if retry_after else None
    except ValueError:
        return None
