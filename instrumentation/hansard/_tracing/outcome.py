"""How a run or step ended: completed, failed or cancelled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from hansard._runtime.warnings import warn_once
from hansard._tracing.observation import is_cancellation
from hansard._tracing.serialization import safe_repr

Status = Literal["running", "completed", "failed", "cancelled"]
Ended = Literal["completed", "failed", "cancelled"]

_WORDS: Final[Mapping[str, Ended]] = {
    "completed": "completed", "ok": "completed", "success": "completed", "done": "completed",
    "failed": "failed", "failure": "failed", "error": "failed",
    "cancelled": "cancelled", "canceled": "cancelled", "aborted": "cancelled",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run or step; `left_open` says that the program did not tell it."""

    status: Ended
    error: BaseException | str | None = None
    left_open: bool = False
    error_type: str | None = None  # of an error that was told in words: what kind it was


def outcome_of(status: str | None = None, error: BaseException | str | None = None) -> Outcome:
    """Return what a program means by a status and an error; never raises.

    Without a status, the error says it. A word that is none of ours is told once on the logger and
    passed over.
    """
    # `issubclass` of the type, here and below: `isinstance` asks the object, which may raise.
    if issubclass(type(error), SystemExit) and getattr(error, "code", 1) in (None, 0):
        error = None  # the ordinary way out
    if status is None:
        return Outcome(_ended_by(error), error)
    word = _WORDS.get(status.lower()) if type(status) is str else None
    if word is None:
        warn_once(
            "status",
            "%s is no status of a run or step; expected completed, failed or cancelled",
            safe_repr(status)[:80],
        )
    return Outcome(word or _ended_by(error), error)


def _ended_by(error: BaseException | str | None) -> Ended:
    if error is None:
        return "completed"
    if issubclass(type(error), BaseException):
        return "cancelled" if is_cancellation(cast(BaseException, error)) else "failed"
    return "failed"
