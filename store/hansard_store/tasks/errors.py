"""What tasks refuse.

TaskRefused
├── InvalidDecision         fields that do not fit                                   (HTTP 400)
├── TaskDecided         somebody decided first, and otherwise                    (HTTP 409)
├── TaskNotApproved     done before a person approved it                         (HTTP 409)
└── NoteNotRetained         the retention mode keeps no words of a person            (HTTP 409)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hansard_store.errors import StoreError


class TaskRefused(StoreError):
    """A decision that is not taken as requested; `details` say how the task stands."""

    code = "task_refused"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class InvalidDecision(TaskRefused):
    """Fields that do not fit; each as place and problem, without values."""

    code = "bad_request"

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        where, what = problems[0]
        details = [{"at": at, "problem": problem} for at, problem in problems]
        super().__init__(f"{where}: {what}", problems=details)


class TaskDecided(TaskRefused):
    """Somebody decided first; `details["decision"]` says who and how."""

    code = "task_decided"


class TaskNotApproved(TaskRefused):
    """Nothing is done about a task before a person approved it."""

    code = "task_not_approved"


class NoteNotRetained(TaskRefused):
    """Better refused than kept without what it says."""

    code = "task_note_not_retained"

    def __init__(self) -> None:
        super().__init__(
            "this store keeps no words (retention metadata_only), so a decision has no note here"
        )
