"""Decisions about tasks for review, as forms, commands and programs ask for them."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, StringConstraints

from hansard_compiler.compile.models import TopLevel
from hansard_compiler.models.memory import Name

Decision = Literal["approve", "dismiss", "done"]
DECISIONS: Final[tuple[Decision, ...]] = get_args(Decision)
MOST_NOTE: Final = 2_000  # characters


def _stripped(value: object) -> object:
    """Return a text without space around it; one of nothing else is empty."""
    return (value.strip() or None) if isinstance(value, str) else value


Note: TypeAlias = Annotated[
    str | None, StringConstraints(max_length=MOST_NOTE), BeforeValidator(_stripped)
]


class Decide(TopLevel):
    """Approve or dismiss a blocked task, or mark an approved one as done."""

    decision: Decision
    note: Note = None
    by: Name | None = None


class AcknowledgeReport(TopLevel):
    """Say that a person has read a status report."""

    by: Name | None = None
