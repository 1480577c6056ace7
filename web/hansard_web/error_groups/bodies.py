"""What the routes of errors answer."""

from __future__ import annotations

from typing import Annotated

from hansard_store.bodies import Answer, Body, Description, Page
from hansard_store.error_groups.json import ErrorGroupBody, ErrorGroupDetail


class ErrorSumsBody(Body):
    """What all groups that meet the filters come to."""

    groups: int
    errors: int


class ErrorList(Page):
    """Groups of errors, in the order of `sort`."""

    items: list[ErrorGroupBody]
    totals: ErrorSumsBody
    is_complete: Annotated[
        bool,
        Description("false: steps that failed before the last upgrade are still being added"),
    ]


class ErrorAnswer(Answer):
    """One group as it is now."""

    error: ErrorGroupDetail
