"""Status reports as the API describes them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hansard_store.principals.model import Method
from hansard_web.api.bodies import Answer, Body


class ReportAck(Body):
    """Who acknowledged a report, and when."""

    who: str
    method: Method = Field(description="how the name is known")
    at: str
    ns: str


class UnrecordedAck(Body):
    """What a line of an .ack file says; nothing of it was checked."""

    who: str
    method: str
    at: str
    ns: str


class StatusReport(Body):
    """A status report: a file in the data folder, with its acknowledgements."""

    name: str
    written_at: str
    written_ns: str
    is_pending: bool = Field(description="it waits for somebody to acknowledge it")
    next_recipient: str | None = Field(description="the recipient whose turn it is; null: anybody")
    escalated_past: list[str] = Field(description="recipients who did not acknowledge it in time")
    escalates_at: str | None = Field(description="when it passes to the next recipient")
    record: Literal["recorded", "altered", "not_recorded"] = Field(
        description="whether the file is as its event in the audit log has it"
    )
    acks: list[ReportAck] = Field(description="each with its event in the audit log")
    unrecorded_acks: list[UnrecordedAck] = Field(
        description="lines of the .ack file that no event holds: anybody may have written them"
    )
    text: str | None = Field(default=None, description="Markdown; only where one is shown")


class ReportAnswer(Answer):
    """One report with its text."""

    report: StatusReport


class ReportList(Answer):
    """Reports, the newest first."""

    items: list[StatusReport]
    total: int = Field(description="how many there are, beyond the limit too")
