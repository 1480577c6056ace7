"""What the routes of status reports answer."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hansard_store.bodies import Answer
from hansard_store.reports.files import StatusReport


class ReportAnswer(Answer):
    """One report with its text."""

    report: StatusReport


class ReportList(Answer):
    """Reports, the newest first."""

    items: list[StatusReport]
    total: Annotated[int, Field(description="how many there are, beyond the limit too")]
