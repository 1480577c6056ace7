"""What groups of errors refuse.

ErrorChangeRefused
├── InvalidErrorChange      fields that do not fit                                   (HTTP 400)
├── ErrorGroupChanged       it is closed, or open, already                           (HTTP 409)
└── ErrorNoteNotRetained    the retention mode keeps no words of a person            (HTTP 409)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hansard_store.errors import StoreError


class ErrorChangeRefused(StoreError):
    """A change that is not made as requested; `details` say how the group stands."""

    code = "error_change_refused"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class InvalidErrorChange(ErrorChangeRefused):
    """Fields that do not fit; each as place and problem, without values."""

    code = "bad_request"

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        where, what = problems[0]
        details = [{"at": at, "problem": problem} for at, problem in problems]
        super().__init__(f"{where}: {what}", problems=details)


class ErrorGroupChanged(ErrorChangeRefused):
    """Somebody changed it first; `details["state"]` says to what."""

    code = "error_group_changed"


class ErrorNoteNotRetained(ErrorChangeRefused):
    """Better refused than stored without what it says."""

    code = "error_note_not_retained"

    def __init__(self) -> None:
        super().__init__(
            "this store holds no texts (retention metadata_only), so an error has no notes here"
        )
