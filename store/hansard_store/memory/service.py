"""Memory, written and read by authorized callers: the only public way in.

Every write is one transaction with its event, on the caller's thread, and survives a power cut.
Every read is recorded, too, with the step that did it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.compile.errors import InvalidInput
from hansard_compiler.compile.models import parse
from hansard_compiler.conflicts import is_denial
from hansard_compiler.models.memory import (
    TRUST_GAP,
    AcceptMemory,
    Change,
    EndApprovedMemory,
    EndMemory,
    MemoryActor,
    ReadMemory,
    UnsupersedeMemory,
    WriteMemory,
)
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals.unit_of_work import Who
from hansard_store.audit.event_types import Actor
from hansard_store.content.retention import Retention
from hansard_store.database.connections import OwnConnections, open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.id_prefixes import find_key
from hansard_store.memory import supersession as memories
from hansard_store.memory.access_log import record, record_change
from hansard_store.memory.authorization import check_end, check_permit, decider_of, written_method
from hansard_store.memory.errors import InvalidMemory, NotCurrent
from hansard_store.memory.maintenance import reviewed_supersessions
from hansard_store.memory.maintenance.reviewed_supersessions import (
    Applying,
    Cause,
    NewSupersession,
    unsupersede,
)
from hansard_store.memory.records import (
    AccessKind,
    Ended,
    Memory,
    MemoryConflict,
    NewMemory,
    Origin,
    Toucher,
)
from hansard_store.memory.retention import names_of, new_memory
from hansard_store.memory.retrieval import contradicted_by, read_durable, read_working
from hansard_store.memory.rows import candidate_json, memories_by_number, memory_json
from hansard_store.memory.supersession import SupersededMemory
from hansard_store.principals.authority import Authority, DecideMode
from hansard_store.principals.errors import reserved_text
from hansard_store.principals.model import Principal, check_given, is_own_name
from hansard_store.reports.files import reports_beside

_AT_ONCE = 200
_ENDED = ("invalidated", "purged")
_NOBODY = Who(Actor.SYSTEM)


@dataclass(frozen=True, slots=True)
class WrittenMemory:
    """A record after a write: new, or the one that it repeats."""

    memory: Memory
    outcome: memories.Outcome
    superseded: tuple[str, ...]  # what stood before it
    stands: str | None  # what stands in its place, where it was not taken over
    conflicts: tuple[MemoryConflict, ...]  # what stands beside it and contradicts it, or may
    change: Change  # what it is to the memory that stood before

    def json(self) -> Json:
        return {
            "outcome": self.outcome,
            "superseded": list(self.superseded),
            "current_memory_id": self.stands,
            "change": self.change,
            "conflicts": [one.json() for one in self.conflicts],
            "memory": memory_json(self.memory),
        }


@dataclass(frozen=True, slots=True)
class _Permit:
    """Who ends a record, and the approval that permits it, where one does."""

    by: Who
    approval_key: bytes | None = None


class MemoryService:
    """The memory of one store. Threads share it, each with a connection of its own."""

    def __init__(
        self,
        folder: DataFolder,
        mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        *,
        origin: Origin = "sdk",
        clock: Callable[[], int] = time.time_ns,
        decide: DecideMode = "claimed",
    ) -> None:
        self._authority = Authority.of(decide)
        self._folder = folder
        self._origin: Origin = origin
        self._clock = clock
        self._retention = Retention.of(folder, mode)
        self._connections = OwnConnections(folder)

    def through(self, origin: Origin) -> MemoryService:
        """Return the same service for another origin."""
        other = copy(self)
        other._origin = origin
        return other

    def acting(self, principal: Principal | None) -> MemoryService:
        """Return the same service for a principal; None: a request without a credential."""
        other = copy(self)
        other._authority = self._authority.acting(principal)
        return other

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self._connections.close()

    # ---- writing

    def write(
        self,
        request: WriteMemory,
        *,
        along: Callable[[apsw.Connection, WrittenMemory], None] = lambda *_: None,
    ) -> WrittenMemory:
        """Write a record. Raises MemoryRefused, NotFoundError, StoreBusyError.

        `along` writes what must stand or fall with it, in the same transaction.
        """
        _refuse_own_names(request.by, request.agent)
        now_ns = self._clock()
        new = new_memory(self._retention, request, now_ns=now_ns)
        with self._connections.writing() as connection:
            written = self._write(connection, request, new, now_ns=now_ns)
            along(connection, written)
        return written

    def accept(self, request: AcceptMemory) -> Memory:
        """Let a record that waits for a review stand; a decision.

        Raises NotFoundError, NotCurrent, CredentialsRequired.
        """
        by = self._decider(request.by)
        with self._connections.writing() as connection:
            found = self._found(connection, request.memory_id)
            if found.state != "review":
                raise NotCurrent(found.memory_id.hex(), state=found.state, expected="review")
            key = memories.key_of(connection, found.id)
            superseded = memories.accept(connection, found, key=key)
            record_versions(
                connection, found.id, superseded, cause="accepted", judge=by.name or "me",
                by=by, now_ns=self._clock(),
            )  # fmt: skip
            body = {
                "superseded": [one.hex() for one in superseded],
                "reason_hash": self._retention.hash_text(request.reason),
            }
            return self._changed(connection, "accept", found, request, by, body)

    def unsupersede(self, request: UnsupersedeMemory) -> Memory:
        """Let a superseded record stand again; a decision.

        Raises NotFoundError; NotCurrent where it is not superseded, or something else was written
        in its place since; CredentialsRequired.
        """
        by = self._decider(request.by)
        reason = self._retention.clean_text(request.reason)
        with self._connections.writing() as connection:
            found = self._found(connection, request.memory_id)
            newer = request.superseded_by
            based_on = None if newer is None else self._found(connection, newer).memory_id
            applying = Applying(self._origin, self._clock(), by, request.step_id)
            unsupersede(connection, found.memory_id, applying, reason=reason, based_on=based_on)
            return self._one(connection, found.id, now_ns=applying.now_ns)

    def invalidate(self, request: EndMemory) -> Memory:
        """Say that a record does not hold; a decision.

        Raises NotFoundError; NotCurrent where it ended; CredentialsRequired.
        """
        by = self._decider(request.by)
        return self._end("invalidate", request, lambda _: _Permit(by), memories.end, _ENDED)

    def invalidate_approved(self, request: EndApprovedMemory) -> Memory:
        """Say that a record does not hold, in the name of who approved exactly that.

        The approval is the decision: the caller needs no token, and the claim of the action that is
        being run. Raises NotApproved, NotFoundError; NotCurrent where it ended.
        """

        def permit(connection: apsw.Connection) -> _Permit:
            approval = check_end(connection, request, self._retention)
            return _Permit(decider_of(approval), approval.key)

        return self._end("invalidate", request, permit, memories.end, _ENDED)

    def purge(self, request: EndMemory) -> Memory:
        """Remove a record's content for good; that it was there, who and why stay."""
        principal, stated = self._authority.principal, check_given(request.by)
        by = Who(Actor.ME, principal.name or self._retention.clean_text(stated), principal)
        purged = self._end("purge", request, lambda _: _Permit(by), memories.purge, ("purged",))
        reports_beside(self._connections.get()).forget_memory(purged.memory_id)
        return purged

    def expire_due(self) -> int:
        """Mark what is past its time, and return how much; reads leave it out before that."""
        total, now_ns, who = 0, self._clock(), Toucher(self._origin)
        while True:
            with self._connections.writing() as connection:
                gone = memories.expire(connection, now_ns=now_ns, most=_AT_ONCE)
                for one in gone:
                    record_change(connection, "expire", one, who, _NOBODY, {}, now_ns=now_ns)
            total += len(gone)
            if len(gone) < _AT_ONCE:
                return total

    # ---- reading

    def read(self, request: ReadMemory) -> list[Memory]:
        """Return what is requested, and record that it was read, and by which step."""
        now_ns, names = self._clock(), names_of(self._retention, request.namespace)
        connection = self._connections.get()
        found: list[Memory] = []
        run = request.of_run or request.run
        if request.is_working and run is not None:
            found += read_working(connection, request, bytes.fromhex(run), now_ns=now_ns)
        if any(names):
            found += read_durable(connection, request, names, now_ns=now_ns)
        with self._connections.writing() as connection:
            who = self._toucher(request)
            standing = [one.id for one in found if one.state == "current"]
            record(connection, "read", standing, who, now_ns=now_ns)
            hidden = [one.id for one in found if one.state != "current"]
            if hidden:  # handed over only to be left out of a compile, with a receipt
                record(connection, "candidate", hidden, who, now_ns=now_ns)
        return found

    # ---- for programs of other origins: JSON in, JSON out

    def write_json(self, fields: Json) -> Json:
        """Write what a program tells; raises InvalidMemory for fields that do not fit."""
        return self.write(_parsed(WriteMemory, fields)).json()

    def read_json(self, fields: Json) -> Json:
        """Return records, and the same as a compile takes them."""
        request = _parsed(ReadMemory, fields)
        return read_answer(request, self.read(request))

    def invalidate_json(self, fields: Json) -> Json:
        return {"memory": memory_json(self.invalidate(_parsed(EndMemory, fields)))}

    # ---- inside

    def _write(
        self, connection: apsw.Connection, request: WriteMemory, new: NewMemory, *, now_ns: int
    ) -> WrittenMemory:
        permit = check_permit(
            connection, request, new, principal=self._authority.principal, keeper=self._retention
        )
        principal = self._authority.principal
        new = replace(
            new,
            approval_id=new.approval_id if permit is None else permit.approval.approval_id,
            written_method=written_method(new, permit, principal),
            written_principal=principal.name if principal.is_authenticated else None,
        )
        if request.replaces is not None:
            new = replace(new, replaces=self._found(connection, request.replaces).memory_id)
        made = memories.write(connection, new, now_ns=now_ns)
        if permit is not None:
            permit.refuse_second(request.writer, outcome=made.outcome, memory_id=made.memory_id)
            permit.refuse_superseding(request, made.superseded)
        conflicts: tuple[MemoryConflict, ...] = ()
        if made.outcome == "current":
            memory = self._one(connection, made.id, now_ns=now_ns)
            conflicts = tuple(contradicted_by(connection, memory, now_ns=now_ns))
            made = _held_back(connection, made, new, conflicts)
        if made.outcome in ("current", "superseded") and not request.is_working:
            other = (made.stands,) if made.outcome == "superseded" and made.stands else ()
            record_versions(
                connection, made.id, made.superseded, cause="version", judge=request.writer,
                stands=other, step_id=request.step_id, now_ns=now_ns,
            )  # fmt: skip
        change = change_of(request, made, conflicts)
        kind: AccessKind = "repeat" if made.outcome == "repeat" else "write"
        superseded = tuple(one.hex() for one in made.superseded)
        stands = made.stands.hex() if made.stands else None
        body = {
            "writer": request.writer,
            "memory_type": request.memory_type,
            "outcome": made.outcome,
            "change": change,
            "content_hash": f"hmac-sha256:{new.retained.hmac.hex()}",
            "superseded": list(superseded),
            "current_memory_id": stands,
            "approval_id": new.approval_id,
        }
        principal = self._authority.principal
        name = self._retention.clean_text(request.by or request.agent or "") or principal.name
        by = Who(Actor.AGENT, name, principal)
        key = None if permit is None else permit.approval.key
        record_change(
            connection, kind, (made.id, made.memory_id), self._toucher(request), by, body,
            now_ns=self._clock(), approval_key=key,
        )  # fmt: skip
        memory = self._one(connection, made.id, now_ns=now_ns)
        return WrittenMemory(memory, made.outcome, superseded, stands, conflicts, change)

    def _end(
        self,
        kind: AccessKind,
        request: EndMemory | EndApprovedMemory,
        permit: Callable[[apsw.Connection], _Permit],
        change: Callable[[apsw.Connection, memories.Found, Ended], None],
        refused: Sequence[str],
    ) -> Memory:
        reason = self._retention.clean_text(request.reason)
        with self._connections.writing() as connection:
            permitted = permit(connection)
            by = permitted.by
            found = self._found(connection, request.memory_id)
            if found.state in refused:
                raise NotCurrent(found.memory_id.hex(), state=found.state, expected="current")
            ended = Ended(self._clock(), by.name, reason, by.method)
            change(connection, found, ended)
            body = {"was": found.state, "reason_hash": self._retention.hash_text(reason)}
            key = permitted.approval_key
            return self._changed(connection, kind, found, request, by, body, approval_key=key)

    def _changed(
        self,
        connection: apsw.Connection,
        kind: AccessKind,
        found: memories.Found,
        request: MemoryActor,
        by: Who,
        body: Json,
        *,
        approval_key: bytes | None = None,
    ) -> Memory:
        """Record a change by a person or program, and return the record as it is now."""
        now_ns = self._clock()
        record_change(
            connection, kind, (found.id, found.memory_id), self._toucher(request), by, body,
            now_ns=now_ns, approval_key=approval_key,
        )  # fmt: skip
        return self._one(connection, found.id, now_ns=now_ns)

    def _found(self, connection: apsw.Connection, prefix: str) -> memories.Found:
        found = memories.get(connection, find_key(connection, "memory", prefix))
        assert found is not None
        return found

    def _one(self, connection: apsw.Connection, number: int, *, now_ns: int) -> Memory:
        return memories_by_number(connection, [number], now_ns=now_ns)[number]

    def _decider(self, stated: str) -> Who:
        return self._authority.decider(self._retention.clean_text(stated))

    def _toucher(self, request: MemoryActor) -> Toucher:
        agent = None if request.agent is None else self._retention.clean_text(request.agent)
        return Toucher(self._origin, request.run, request.step_id, agent)


def _held_back(
    connection: apsw.Connection,
    made: memories.SupersededMemory,
    new: NewMemory,
    conflicts: Sequence[MemoryConflict],
) -> memories.SupersededMemory:
    """Let a record wait for a person where it contradicts one that is trusted much more."""
    for one in conflicts:
        if one.is_certain and new.confidence < one.confidence - TRUST_GAP - 1e-9:
            against = bytes.fromhex(one.memory_id)
            memories.hold_back(connection, made.id, against=against)
            return replace(made, outcome="review", stands=against)
    return made


def _refuse_own_names(by: str | None, agent: str | None) -> None:
    """Raise InvalidMemory where a program writes in Hansard's own name."""
    for where, name in (("by", by), ("agent", agent)):
        if name is not None and is_own_name(name):
            raise InvalidMemory([(where, reserved_text(name))])


def read_answer(request: ReadMemory, found: Sequence[Memory]) -> Json:
    """Return what was read, and the same as a compile takes it with its scope."""
    return {
        "items": [memory_json(one) for one in found],
        "memory_records": [candidate_json(one) for one in found],
        "scope": {**request.scope, **request.namespace.scope},
    }


def open_memory(data: Path, *, retention: RetentionMode) -> MemoryService:
    """Open the memory of a data folder, made where it is not there."""
    folder = DataFolder(data)
    # Made and migrated here, once: threads that find it half made would each go on with it.
    open_for_ingest(folder).close()
    return MemoryService(folder, retention)


def _parsed(model: type[Any], fields: Json) -> Any:
    try:
        return parse(model, fields)
    except InvalidInput as error:
        raise InvalidMemory([(one.where, one.what) for one in error.problems]) from None


# What a write is to the memory that stood before it: add, update, delete or ignore.

_NUMBER: Final = "SELECT id FROM memory WHERE memory_id = ?"
_NEWER: Final = "a newer version of the same subject and attribute"
_OLDER: Final = "it tells of an earlier time than the version that stands"
_ACCEPTED: Final = "a person let the newer version stand"


def change_of(
    request: WriteMemory, made: SupersededMemory, conflicts: Sequence[MemoryConflict] = ()
) -> Change:
    """Return how a write compares with what stood.

    - `ignore`: it says nothing new, or tells of an earlier time
    - `delete`: it only denies what stood, or gives its attribute no value
    - `update`: it says otherwise than what stood
    - `add`: nothing that stood is about the same, or what is may hold beside it

    Where it waits for a review, this is what it will be once a person accepts it.
    """
    if made.outcome in ("repeat", "superseded"):
        return "ignore"
    certain = [one for one in conflicts if one.is_certain]
    if not made.superseded and made.stands is None and not certain:
        return "add"
    return "delete" if _denies(request.content) else "update"


def record_versions(
    connection: apsw.Connection,
    number: int,
    superseded: Iterable[bytes],
    *,
    cause: Cause,
    judge: str,
    now_ns: int,
    stands: Iterable[bytes] = (),
    by: Who | None = None,
    step_id: str | None = None,
) -> None:
    """Record which versions a written or accepted record superseded, and which supersede it."""
    why = _ACCEPTED if cause == "accepted" else _NEWER
    links = [
        NewSupersession(_number(connection, one), number, cause, why, judge, step_id=step_id)
        for one in superseded
    ]
    links += [
        NewSupersession(number, _number(connection, one), cause, _OLDER, judge, step_id=step_id)
        for one in stands
    ]
    for link in links:
        reviewed_supersessions.add(connection, link, state="applied", now_ns=now_ns, by=by)


def _denies(content: Any) -> bool:
    if isinstance(content, Mapping):
        return "value" in content and content["value"] is None
    return isinstance(content, str) and is_denial(content)


def _number(connection: apsw.Connection, memory_id: bytes) -> int:
    return int(connection.execute(_NUMBER, (memory_id,)).get)
