"""Words and marks for where an approval stands, who did something, and how long is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hansard_store.approvals.argument_display import visible
from hansard_store.approvals.records import Approval, Status
from hansard_store.principals.model import name_text
from hansard_web.ui.format import WAITS, duration, shorten

_SECOND_NS: Final = 1_000_000_000
_MINUTE_NS: Final = 60 * _SECOND_NS
SOON_NS: Final = 5 * _MINUTE_NS
_LONGEST: Final = 20_000  # characters of a description or a note; the store keeps no longer ones
_RAN: Final = {
    "claimed": ("open", "running"),
    "done": ("approved", "ran"),
    "failed": ("error", "failed"),
    "unknown": ("unknown", "outcome unknown"),
    "not_run": ("expired", "did not run"),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an action stands: the mark and its word."""

    mark: str
    word: str
    title: str = ""


def standing(approval: Approval, *, now_ns: int) -> Standing:
    """Return how it stands with an action, its run included."""
    match approval.status:
        case Status.AWAITING:
            return Standing("awaiting", WAITS)
        case Status.REVISED:
            return Standing("revised", "sent back")
        case Status.APPROVED:
            return _after(approval, now_ns)
    return Standing(str(approval.status), str(approval.status))


def _after(approval: Approval, now_ns: int) -> Standing:
    ran = approval.execution.state
    if ran in _RAN:
        return Standing(*_RAN[ran])
    ends_ns = approval.token_ends_ns
    if ends_ns is not None and now_ns >= ends_ns:
        return Standing("expired", "approved, never run", "its token ran out before anybody ran it")
    return Standing("approved", "approved", "not run yet")


def clean(text: str) -> str:
    """Return a recorded text in which nothing is invisible."""
    return visible(text[:_LONGEST])


def one_line(text: str, characters: int) -> str:
    """Return a recorded text on one line, nothing in it invisible."""
    return shorten(visible(text[: characters * 4]), characters)


def person_of(who: str) -> str:
    """Return the name of `actor:name`, else what the actor is."""
    actor, _, name = who.partition(":")
    return clean(name_text(name) or {"me": "a person", "agent": "the agent"}.get(actor, actor))


def time_left(nanoseconds: int) -> str:
    """Return what is left of a time: `42 s`, `3 m 42 s`, `2 h 05 m`, `none`."""
    if nanoseconds <= 0:
        return "no time"
    if nanoseconds < _MINUTE_NS:
        return f"{nanoseconds // _SECOND_NS} s"
    return duration(nanoseconds - nanoseconds % _SECOND_NS)


def hash_ends(digest: str) -> str:
    """Return a hash by its ends, `6f1e…09ab`."""
    digits = digest.rpartition(":")[2]
    return f"{digits[:4]}…{digits[-4:]}"
