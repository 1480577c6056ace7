"""Watching, noting and closing groups of errors: the only public way to do it.

Every change is one transaction on the caller's thread and survives a power cut. A closed group is
opened again by ingest alone (changes.reopen), or by a person.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from typing import Final

from hansard_compiler.calls import Json
from hansard_compiler.compile.errors import InvalidInput
from hansard_compiler.compile.models import parse
from hansard_compiler.models.error_groups import ChangeError
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.content.retention import Retention
from hansard_store.database.connections import OwnConnections
from hansard_store.database.data_folder import DataFolder
from hansard_store.error_groups.changes import GroupState, Origin, read_state, write_change
from hansard_store.error_groups.errors import (
    ErrorGroupChanged,
    ErrorNoteNotRetained,
    InvalidErrorChange,
)
from hansard_store.error_groups.queries import ErrorGroup, find_error, get_error
from hansard_store.principals.authority import Authority, DecideMode
from hansard_store.principals.model import Principal

_NEEDS_NOTE: Final = [("note", "a note has 1 to 2,000 characters")]


class ErrorGroupService:
    """The groups of errors of one store. Threads share it, each with a connection of its own."""

    def __init__(
        self,
        folder: DataFolder,
        mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        *,
        origin: Origin = "api",
        clock: Callable[[], int] = time.time_ns,
        decide: DecideMode = "claimed",
    ) -> None:
        self._authority = Authority.of(decide)
        self._retention = Retention.of(folder, mode)
        self._origin: Origin = origin
        self._clock = clock
        self._connections = OwnConnections(folder)

    def through(self, origin: Origin) -> ErrorGroupService:
        """Return the same service for another origin."""
        other = copy(self)
        other._origin = origin
        return other

    def acting(self, principal: Principal | None) -> ErrorGroupService:
        """Return the same service for a principal; None: a request without a credential."""
        other = copy(self)
        other._authority = self._authority.acting(principal)
        return other

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self._connections.close()

    def change(self, error_id: str, request: ChangeError, *, by: str = "") -> ErrorGroup:
        """Watch, note, close or open a group.

        What is so already is not written again. Raises NotFoundError, ErrorChangeRefused,
        CredentialsRequired.
        """
        author = self._authority.decider(self._retention.clean_text(request.by or by))
        note = self._note(request.note)
        if request.decision == "note" and note is None:
            raise InvalidErrorChange(_NEEDS_NOTE)
        with self._connections.writing() as connection:
            fingerprint = find_error(connection, error_id)
            state = read_state(connection, fingerprint)
            now_ns = self._clock()
            becomes = _after(request, state, now_ns=now_ns)
            if request.decision == "close" and state.state == "closed" and note is not None:
                raise ErrorGroupChanged(
                    f"error {error_id[:8]} is closed already; add the text as a note",
                    state=state.state,
                )
            if becomes != state or request.decision == "note":
                write_change(
                    connection,
                    fingerprint,
                    becomes,
                    kind=request.decision,
                    by=author,
                    origin=self._origin,
                    now_ns=now_ns,
                    note=note,
                )
            return get_error(connection, fingerprint.hex(), now_ns=now_ns)

    def change_json(self, error_id: str, fields: Json, *, by: str = "") -> ErrorGroup:
        """Change as a form or a program requests; raises as `change`, and InvalidErrorChange."""
        try:
            stated = {name: one for name, one in fields.items() if one is not None}
            request = parse(ChangeError, stated)
        except InvalidInput as error:
            raise InvalidErrorChange([(one.where, one.what) for one in error.problems]) from None
        return self.change(error_id, request, by=by)

    def _note(self, note: str | None) -> str | None:
        if note is not None and self._retention.is_metadata_only:
            raise ErrorNoteNotRetained
        return None if note is None else self._retention.clean_text(note)


def _after(request: ChangeError, state: GroupState, *, now_ns: int) -> GroupState:
    """Return the state after a change; the same one where it changes nothing."""
    if request.decision in ("watch", "unwatch"):
        return state._replace(watched=request.decision == "watch")
    if request.decision == "close" and state.state != "closed":
        return state._replace(state="closed", closed_ns=now_ns)
    if request.decision == "open" and state.state == "closed":
        return state._replace(state="open")
    return state
