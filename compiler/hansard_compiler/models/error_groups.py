"""Changes of groups of errors, as forms, commands and programs request them."""

from __future__ import annotations

from typing import Final, Literal, get_args

from hansard_compiler.compile.models import TopLevel
from hansard_compiler.models.memory import Name
from hansard_compiler.models.tasks import Note

ErrorDecision = Literal["watch", "unwatch", "note", "close", "open"]
ERROR_DECISIONS: Final[tuple[ErrorDecision, ...]] = get_args(ErrorDecision)


class ChangeError(TopLevel):
    """Watch, note, close or open a group of errors; `note` needs one, `close` may have one."""

    decision: ErrorDecision
    note: Note = None
    by: Name | None = None
