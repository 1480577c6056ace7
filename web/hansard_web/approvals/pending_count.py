"""How many approvals wait for a person: what the head of every page shows."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from hansard_compiler.errors import HansardError
from hansard_store.approvals.rows import count_by_status
from hansard_store.approvals.states import Status
from hansard_web.app.readers import Readers


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
