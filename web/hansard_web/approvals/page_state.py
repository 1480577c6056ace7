"""What of the inbox is shown, as its address says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import apsw

from hansard_compiler.errors import HansardError
from hansard_store.approvals.records import TERMINAL, ApprovalFilter, Status
from hansard_store.approvals.rows import count_by_status
from hansard_web.app.addresses import address
from hansard_web.app.readers import Readers

DECIDED: Final = "decided"
OPEN: Final = "open"
UNKNOWN: Final = "unknown"
STATUSES: Final = (*(str(one) for one in Status), UNKNOWN, OPEN, DECIDED)
FIELDS: Final = ("channel", "agent", "tool", "run")
TERMINAL_STATUSES: Final = tuple(str(one) for one in Status if one in TERMINAL)
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class InboxState:
    """Conditions on the list; "" leaves one out."""

    status: str = ""  # one of STATUSES; "": what is open, and what was decided last
    channel: str = ""
    agent: str = ""
    tool: str = ""
    run: str = ""
    cursor: str = ""

    @property
    def filters(self) -> dict[str, str]:
        """Return what narrows the list, by the names of the address."""
        named = {name: str(getattr(self, name)) for name in ("status", *FIELDS, "cursor")}
        return {name: value for name, value in named.items() if value}

    @property
    def is_narrowed(self) -> bool:
        return any(getattr(self, name) for name in FIELDS)

    def address(self, approval_id: str = "", **changes: str) -> str:
        """Return the address of the list, with an approval beside it."""
        path = f"/approvals/{approval_id}" if approval_id else "/approvals"
        return address(path, replace(self, **changes).filters)

    def filter(self, **more: Any) -> ApprovalFilter:
        """Return the filter for the store; `run` is a whole id."""
        return ApprovalFilter(
            channel=self.channel or None,
            agent=self.agent or None,
            tool=self.tool or None,
            run_id=self.run or None,
            **more,
        )


def read_state(query: Mapping[str, str]) -> InboxState:
    """Return what an address asks for; what it cannot mean is left out."""
    fields = {
        name: query.get(name, "").strip()[:_LONGEST] for name in ("status", *FIELDS, "cursor")
    }
    if fields["status"] not in STATUSES:
        fields["status"] = ""
    if not _is_run(fields["run"]):
        fields["run"] = ""
    return InboxState(**fields)


def _is_run(text: str) -> bool:
    return len(text) == 32 and all(one in "0123456789abcdef" for one in text)


# How many approvals wait for a person: what the head of every page shows.


@dataclass(frozen=True, slots=True)
class Badge:
    count: int


def read_badge(readers: Readers) -> Badge:
    """Return what waits; nothing where the store does not say now.

    The head of a page must not be why a page fails.
    """
    try:
        with readers.read() as connection:
            return Badge(count_by_status(connection)[Status.AWAITING])
    except (HansardError, apsw.Error, OSError):
        return Badge(0)
