"""What the audit log holds of reports: the digest of each file, and who acknowledged it.

The order of file and event makes what a kill leaves in between explicable. A new report is a file
before it is an event: without one it is *not recorded*, as reports of earlier versions are. What
changes or removes a file, and an acknowledgement, is an event before it is done: then the file is
as it was before, or the line of the person is missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Literal

import apsw
import orjson

from hansard_store.approvals.unit_of_work import SYSTEM, Who
from hansard_store.audit.event_types import Event, EventType
from hansard_store.audit.events import append
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.database.stored_json import object_of
from hansard_store.database.transactions import store_errors
from hansard_store.principals.model import CLAIMED, is_same

State = Literal["recorded", "altered", "not_recorded"]

_KIND: Final = "report:"
_OF_SOME: Final = """
SELECT seq, type, subject, who, time_ns, body FROM event INDEXED BY event_subject
WHERE subject IN (SELECT value FROM json_each(?)) ORDER BY seq
"""
_WRITTEN: Final = """
SELECT DISTINCT subject FROM event INDEXED BY event_type
WHERE type = 'report.written' AND type NOT IN ('tool.called', 'tool.returned')
"""


@dataclass(frozen=True, slots=True)
class Ack:
    """Who acknowledged a report, when, and how the name is known."""

    who: str
    at_ns: int
    method: str  # token, session: authenticated; claimed: a name without a credential

    def line(self) -> str:
        fields = {"who": self.who, "at_ns": str(self.at_ns), "method": self.method}
        return orjson.dumps(fields).decode()


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """What events say of one report."""

    digests: tuple[tuple[int, str], ...] = ()  # number of the event and sha256, the newest last
    removed_seq: int | None = None
    acks: tuple[Ack, ...] = ()  # the first of each person

    @property
    def seq(self) -> int:
        """The event of the newest digest; 0 where the report is not recorded."""
        return self.digests[-1][0] if self.digests else 0

    def state_of(self, content: bytes) -> State:
        """Return whether a file is as its events have it.

        Bytes of an earlier event are no alteration: the words that the later one removed may be
        in them, which `hansard verify` says.
        """
        if not self.digests:
            return "not_recorded"
        found = digest_of(content)
        return "recorded" if any(found == one for _, one in self.digests) else "altered"


NOT_RECORDED: Final = ReportRecord()


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def records_of(connection: apsw.Connection, names: Sequence[str]) -> Mapping[str, ReportRecord]:
    """Return what the log holds of some reports, by name; nothing of those that it has not."""
    subjects = orjson.dumps([f"{_KIND}{name}" for name in names]).decode()
    found: dict[str, list[Any]] = {}
    for row in connection.execute(_OF_SOME, (subjects,)):
        found.setdefault(str(row[2]).removeprefix(_KIND), []).append(row)
    return {name: _record(rows) for name, rows in found.items()}


def recorded_names(connection: apsw.Connection) -> list[str]:
    """Return the names of all reports that were ever recorded."""
    return [str(subject).removeprefix(_KIND) for (subject,) in connection.execute(_WRITTEN)]


def read_records(folder: DataFolder, names: Sequence[str]) -> Mapping[str, ReportRecord]:
    """Return what the store of a folder holds of some reports, by name."""
    if not names or not folder.has_store:
        return {}
    with store_errors(), closing(open_reader(folder)) as connection:
        return records_of(connection, names)


def record_written(
    connection: apsw.Connection, name: str, content: bytes, *, source: str, now_ns: int
) -> None:
    body = {"sha256": digest_of(content), "bytes": len(content)}
    _append(connection, EventType.REPORT_WRITTEN, name, SYSTEM, body, source, now_ns)


def record_removed(connection: apsw.Connection, name: str, *, source: str, now_ns: int) -> None:
    _append(connection, EventType.REPORT_REMOVED, name, SYSTEM, {}, source, now_ns)


def record_acknowledged(
    connection: apsw.Connection, name: str, who: Who, content: bytes, *, source: str, now_ns: int
) -> Ack:
    """Append that a person has read a report, as its bytes were then."""
    method = who.method or CLAIMED.method
    body = {"sha256": digest_of(content), "auth_method": method, **who.proof}
    _append(connection, EventType.REPORT_ACKNOWLEDGED, name, who, body, source, now_ns)
    return Ack(who.name, now_ns, method)


def _append(
    connection: apsw.Connection,
    type: EventType,
    name: str,
    who: Who,
    body: Mapping[str, Any],
    source: str,
    now_ns: int,
) -> None:
    append(
        connection,
        Event(
            type=type,
            actor=who.actor,
            who=who.name,
            action=str(type),
            source=source,
            subject=f"{_KIND}{name}",
            time_ns=now_ns,
            body=body,
        ),
    )


def _record(rows: Sequence[Any]) -> ReportRecord:
    digests: list[tuple[int, str]] = []
    acks: list[Ack] = []
    removed: int | None = None
    for seq, type, _, who, time_ns, text in rows:
        body = object_of(text)
        if type == EventType.REPORT_WRITTEN:
            digests.append((seq, str(body.get("sha256"))))
            removed = None
        elif type == EventType.REPORT_REMOVED:
            removed = seq
        elif type == EventType.REPORT_ACKNOWLEDGED and not any(
            is_same(one.who, who) for one in acks
        ):
            acks.append(Ack(who, time_ns, str(body.get("auth_method"))))
    return ReportRecord(tuple(digests), removed, tuple(acks))
