"""Errors of the store's floor.

StoreError
├── StoreNewerError     the database was written by a newer Hansard
├── StoreCorruptError   a row cannot be read back
│   └── PayloadAlteredError  bytes that are not those of their digest          (HTTP 409)
├── SchemaAlteredError  a table, view or trigger is not Hansard's              (HTTP 503)
├── StoreBusyError      locked or full now; the same may work later
│   ├── ConnectionLostError  a transaction could not be undone; its connection is closed
│   └── StoreReplacedError   the database file was removed or replaced while it was in use
├── NoSpaceError        not enough room on the disk for the request
├── NotEmptyError       a folder that is to be filled holds something already
├── NotABackupError     a folder or archive without a backup in it
├── StoppedError        maintenance was asked to stop; what it did stays done
├── QueryLimitError     a read took longer or returned more than it may
├── InvalidQueryError       a filter, search, sort or limit that cannot be meant   (HTTP 400)
│   └── InvalidCursorError    not a cursor of this list
├── StaleCursorError    the list changed since its cursor was issued            (HTTP 409)
├── VersionConflictError  somebody else changed it first                       (HTTP 412)
└── DigestMismatchError      bytes that are not what their reference says           (HTTP 400)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from hansard_compiler.errors import HansardError

_MOST_OBJECTS: Final = 5  # of an altered schema, in a message


class StoreError(HansardError):
    """The store cannot do what was requested."""

    code = "store_error"
    details: Mapping[str, Any] = MappingProxyType({})  # facts that an answer has beside the message


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


class SchemaAlteredError(StoreError):
    """Somebody altered the database's schema: nothing is decided or sealed through it."""

    code = "schema_altered"

    def __init__(self, objects: Sequence[str]) -> None:
        shown = "; ".join(objects[:_MOST_OBJECTS])
        if len(objects) > _MOST_OBJECTS:
            shown += f"; and {len(objects) - _MOST_OBJECTS:,} more"
        super().__init__(
            f"the schema of the database was altered: {shown}. `hansard verify` names everything; "
            "`hansard repair` restores the schema, and keeps the database as it is beside it"
        )


class StoreCorruptError(StoreError):
    """A row is there but cannot be read back."""

    code = "corrupt"


class PayloadAlteredError(StoreCorruptError):
    """The stored bytes of a payload are not those of its digest; they are not served."""

    code = "payload_altered"

    def __init__(self, ref: str) -> None:
        super().__init__(
            f"the stored bytes of payload {ref} were altered: they are not those of its digest. "
            f"Send the right ones with PUT /v1/payloads/{ref}, or restore a backup"
        )


class StoreBusyError(StoreError):
    """Locked, full or read-only at the moment."""

    code = "busy"


class ConnectionLostError(StoreBusyError):
    """A transaction could not be undone, so its connection was closed; nothing of it is stored."""

    code = "connection_lost"


class StoreReplacedError(StoreBusyError):
    """Another file is in the place of the database that was opened, or none; nothing is written."""

    code = "store_replaced"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was removed or replaced while it was in use; nothing is written until "
            "what uses it is restarted"
        )


class PolicyAlteredError(StoreBusyError):
    """The rules in force are not as Hansard wrote them: nothing is decided by them."""

    code = "policy_altered"

    def __init__(self, number: int) -> None:
        super().__init__(
            f"version {number} of the policy's rules was altered by something other than Hansard; "
            "put the rules again (`hansard policy rules put`)"
        )


class NoSpaceError(StoreError):
    """The disk has not enough room for the request."""

    code = "no_space"

    def __init__(self, what: str, *, needed_bytes: int, free_bytes: int, where: str) -> None:
        super().__init__(
            f"{what} needs {needed_bytes:,} bytes in {where}, where {free_bytes:,} are free"
        )


class NotEmptyError(StoreError):
    """Nothing is overwritten: the target holds something already."""

    code = "not_empty"

    def __init__(self, where: str) -> None:
        super().__init__(f"{where!r} is not empty; name a new one or empty it yourself")


class NotABackupError(StoreError):
    """What was given to restore from is no backup, or is damaged."""

    code = "backup_not_found"


class RebuildRunningError(StoreError):
    """Another process derives the store again; two at once would do the same work twice."""

    code = "rebuild_running"

    def __init__(self) -> None:
        super().__init__("another process rebuilds this store now; /health says how far it is")


class StoppedError(StoreError):
    """Maintenance was asked to stop."""

    code = "stopped"

    def __init__(self) -> None:
        super().__init__("stopped; what was done stays done, and the rest is done the next time")


class QueryLimitError(StoreError):
    """A read was stopped at its time limit."""

    code = "query_limit"


class InvalidQueryError(StoreError):
    """A value of a query that cannot be meant; `name` is the parameter it came in."""

    code = "invalid_query"

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.details = {"parameter": name}


class InvalidCursorError(InvalidQueryError):
    """Not a cursor that this list gave."""

    code = "invalid_cursor"

    def __init__(self, name: str = "cursor") -> None:
        super().__init__(name, f"{name} is not a cursor of this list; begin again without it")


class StaleCursorError(StoreError):
    """The list was put in another order since the cursor was issued."""

    code = "cursor_stale"

    def __init__(self) -> None:
        super().__init__("the run changed since this cursor was given; begin again without it")


class VersionConflictError(StoreError):
    """What was to be replaced is not there any more: somebody else changed it first."""

    code = "version_conflict"

    def __init__(self, what: str, *, expected: int, found: int) -> None:
        super().__init__(
            f"the {what} is at version {found}, not {expected}: read it again, then change that"
        )
        self.details = {"expected": expected, "found": found}


class DigestMismatchError(StoreError):
    """Bytes whose sha256 is not the one in their reference."""

    code = "digest_mismatch"

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"the bytes are sha256:{found}, not {expected}")
