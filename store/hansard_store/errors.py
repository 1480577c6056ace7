"""Errors of the store's floor.

StoreError
├── StoreNewerError     the database was written by a newer Hansard
├── StoreCorruptError   a row cannot be read back
├── StoreBusyError      locked or full now; the same may work later
└── QueryLimitError     a read took longer or returned more than it may
"""

from __future__ import annotations

from hansard_compiler.errors import HansardError


class StoreError(HansardError):
    """The store cannot do what was asked."""

    code = "store_error"


class StoreNewerError(StoreError):
    """The file has a schema that this version does not know."""

    code = "schema_newer"

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the database has schema {found}, this version knows up to {known}; "
            "install a newer hansard or restore a backup"
        )
        self.found = found
        self.known = known


class StoreCorruptError(StoreError):
    """A row is there but cannot be read back."""

    code = "corrupt"


class StoreBusyError(StoreError):
    """Locked, full or read-only at the moment."""

    code = "busy"


class QueryLimitError(StoreError):
    """A read was stopped at its time limit."""

    code = "query_limit"
