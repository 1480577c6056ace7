"""What a scan can meet.

ScanError
├── SourceDown       it cannot be reached, or does not answer in time: later it may
├── BadAnswer        what it answered is not what its API says
├── BadVerdict       what a classifier answered cannot be meant
├── NoInterests      there is nothing to hold stories against
├── ScanIncomplete   source or classifier went down, or nothing that was listed is of use
└── ScanUnderWay     another process scans for this store
"""

from __future__ import annotations

from hansard_compiler.errors import HansardError


class ScanError(HansardError):
    """A scan, or one story of it, that came to nothing."""

    code = "scan_failed"


class SourceDown(ScanError):
    """The source cannot be reached now."""

    code = "source_unavailable"


class BadAnswer(ScanError):
    """An answer that cannot be meant, or is larger than any that can."""

    code = "invalid_response"


class BadVerdict(ScanError):
    """A classifier answered with a label that it was not given, or a score that is no share."""

    code = "invalid_verdict"

    def __init__(self, classifier: str) -> None:
        super().__init__(f"the classifier {classifier!r} answered with another label, or no share")


class NoInterests(ScanError):
    """Memory names no interest."""

    code = "no_interests"

    def __init__(self) -> None:
        super().__init__(
            "memory holds no interest to scan for; write one: hansard memory write "
            "'SQLite full text search' --type interest --subject search --project NAME --writer app"
        )


class ScanIncomplete(ScanError):
    """Stories are left for the next scan."""

    code = "scan_incomplete"

    def __init__(self, source: str) -> None:
        super().__init__(
            f"{source} or the classifier went down, or answered nothing of use; "
            "the next scan goes on"
        )


class ScanUnderWay(ScanError):
    """Two scans at once would classify stories twice."""

    code = "scan_running"

    def __init__(self) -> None:
        super().__init__("another scan of this store is under way")
