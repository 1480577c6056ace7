"""Changes of groups of errors, as forms, commands and programs request them."""

from __future__ import annotations

from typing import Final, Literal, get_args

from pydantic import ConfigDict

from hansard_compiler.compile.models import TopLevel
from hansard_compiler.models.json_schema import NOT_BLANK, any_of, having
from hansard_compiler.models.memory import Name
from hansard_compiler.models.tasks import Note

ErrorDecision = Literal["watch", "unwatch", "note", "close", "open"]
ERROR_DECISIONS: Final[tuple[ErrorDecision, ...]] = get_args(ErrorDecision)

_NOTED: Final = any_of(
    having(decision={"enum": [one for one in ERROR_DECISIONS if one != "note"]}),
    having(decision={"const": "note"}, note={"type": "string", "pattern": NOT_BLANK}),
)


class ChangeError(TopLevel):
    """Watch, note, close or open a group of errors; `note` needs one, `close` may have one."""

    model_config = ConfigDict(json_schema_extra=_NOTED)

    decision: ErrorDecision
    note: Note = None
    by: Name | None = None
