"""What can be wrong with a report or an acknowledgement."""

from __future__ import annotations

from hansard_compiler.errors import HansardError


class InvalidAcknowledgement(HansardError):
    """Nobody is named who acknowledges it; nothing was changed."""

    code = "invalid_acknowledgement"


class ReportsUnusable(HansardError):
    """The folder of reports cannot be read or written."""

    code = "reports_unusable"
