"""Reports as files: `REPORT-<UTC time>.md`, and beside it `.ack`, a JSON line for each person.

The folder is its owner's alone (0700), and so is every file (0600). What a file says counts with
its event alone (record.py): anybody who can write to the folder can change one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NotRequired

import apsw
import orjson

from hansard_compiler.errors import HansardError, NotFoundError
from hansard_store.approvals.unit_of_work import SYSTEM, Who
from hansard_store.audit.event_types import Event, EventType
from hansard_store.audit.events import append
from hansard_store.bodies import Body, BodyT, Description, body_of
from hansard_store.database.connections import accountability_transaction
from hansard_store.database.data_folder import DataFolder, make_private
from hansard_store.database.readers import open_reader
from hansard_store.database.stored_json import object_of
from hansard_store.database.transactions import store_errors
from hansard_store.ids import short_id
from hansard_store.principals.model import CLAIMED, Method, is_same
from hansard_store.times import time_text

# What the audit log holds of reports: the digest of each file, and who acknowledged it.
#
# The order of file and event makes what a kill leaves in between explicable. A new report is a file
# before it is an event: without one it is *not recorded*, as reports of earlier versions are. What
# changes or removes a file, and an acknowledgement, is an event before it is done: then the file is
# as it was before, or the line of the person is missing.

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


# What can be wrong with a report or an acknowledgement.


class InvalidAcknowledgement(HansardError):
    """Nobody is named who acknowledges it; nothing was changed."""

    code = "invalid_acknowledgement"


class ReportsUnusable(HansardError):
    """The folder of reports cannot be read or written."""

    code = "reports_unusable"


MOST_REPORTS: Final = 1_000  # of more, the oldest are removed with their acknowledgements
MOST_NAME_CHARS: Final = 200  # of a person
_NAME: Final = re.compile(r"REPORT-(\d{8}T\d{6}Z)(?:-(\d{1,3}))?")
_MOST_OF_A_SECOND: Final = 100
_MOST_ACK_BYTES: Final = 1 << 20
_TIME: Final = "%Y%m%dT%H%M%SZ"
_NS: Final = 10**9


@dataclass(frozen=True, slots=True)
class Report:
    """A report by its name. Its text is read when it is shown."""

    name: str  # REPORT-20261125T224606Z
    written_ns: int
    acks: tuple[Ack, ...]  # in the order of acknowledging; one a person
    state: State = "recorded"  # what the audit log says of the file
    unrecorded: tuple[Ack, ...] = ()  # lines of its file that no event holds

    @property
    def read_by(self) -> tuple[Ack, ...]:
        """Return who has read it, as far as it is known.

        Reports of before 0.3 and their acknowledgements have no events: those do not wait again.
        """
        return (*self.acks, *self.unrecorded) if self.state == "not_recorded" else self.acks

    def is_read_by(self, who: str) -> bool:
        return any(is_same(one.who, who) for one in self.read_by)

    def is_acknowledged_by(self, who: str) -> bool:
        """Whether an event says so."""
        return any(is_same(one.who, who) for one in self.acks)


class Reports:
    """The reports of one store. Processes share the folder: files are written whole or not at all.

    Every method raises ReportsUnusable where the folder cannot be used.
    """

    def __init__(self, folder: DataFolder, *, source: str = "cli") -> None:
        """Make it; `source` is what events say they come from."""
        self._store = folder
        self._folder = folder.reports
        self._source = source

    def path(self, name: str) -> Path:
        """Return the file of a report; raises NotFoundError for what is no name of one."""
        if not _NAME.fullmatch(name):
            raise NotFoundError("report", name)
        return self._folder / f"{name}.md"

    def add(self, text: str, *, now_ns: int) -> Report:
        """Write a report, and remove the oldest ones beyond the most that are stored."""
        try:
            make_private(self._folder)
            with accountability_transaction(self._store) as connection:
                name = self._write_new(text, now_ns=now_ns)
                content = self.path(name).read_bytes()
                self._record_written(connection, name, content, now_ns=now_ns)
            self._prune(now_ns=now_ns)
        except OSError as error:
            raise self._unusable(error) from None
        return Report(name, written_ns=_time_ns(name), acks=())

    def list(self, *, limit: int | None = None) -> list[Report]:
        """Return reports, the newest first."""
        names = sorted(self._names(), key=_order, reverse=True)[:limit]
        records = read_records(self._store, names)
        return [self._report(name, records.get(name, NOT_RECORDED)) for name in names]

    def count(self) -> int:
        return sum(1 for _ in self._names())

    def get(self, name: str) -> Report:
        """Return a report; raises NotFoundError."""
        if not self.path(name).is_file():
            raise NotFoundError("report", name)
        return self._report(name, read_records(self._store, [name]).get(name, NOT_RECORDED))

    def text(self, name: str) -> str:
        """Return what a report says; raises NotFoundError."""
        return self._content(name).decode("utf-8", "replace")

    def newest_unacknowledged(self, who: str | None = None) -> Report | None:
        """Return the newest report that a person has not acknowledged; None: that nobody has."""
        for report in self.list():
            is_read = bool(report.read_by) if who is None else report.is_read_by(who)
            if not is_read:
                return report
        return None

    def acknowledge(self, name: str, who: Who, *, now_ns: int) -> Report:
        """Record that a person has read a report; a second time changes nothing.

        Raises NotFoundError, InvalidAcknowledgement.
        """
        content = self._content(name)
        if not who.name or len(who.name) > MOST_NAME_CHARS:
            raise InvalidAcknowledgement(
                f"say who acknowledges it: a name of 1 to {MOST_NAME_CHARS} characters"
            )
        with accountability_transaction(self._store) as connection:
            record = records_of(connection, [name]).get(name, NOT_RECORDED)
            earlier = next((one for one in record.acks if is_same(one.who, who.name)), None)
            ack = earlier or Ack(who.name, now_ns, who.method or CLAIMED.method)
            if earlier is None:
                body = {"sha256": digest_of(content), "auth_method": ack.method, **who.proof}
                type = EventType.REPORT_ACKNOWLEDGED
                self._tell(connection, type, name, body, who=who, now_ns=now_ns)
        try:
            if ack not in _acks(self._ack_path(name)):  # a kill after the event leaves it out
                _append(self._ack_path(name), ack.line())
        except OSError as error:
            raise self._unusable(error) from None
        return self.get(name)

    def forget(self, run_id: str) -> int:
        """Remove the lines that hold words of a run, and return how many there were.

        Such a line names the run by the beginning of its id, as every line with recorded words.
        """
        marks = (f"step {run_id[:8]}-", f"run {run_id[:8]}")
        return sum(self._rewrite(name, marks) for name in self._names())

    def forget_memory(self, memory_id: str) -> int:
        """Remove the lines that hold words of a memory, and return how many there were."""
        # Reports of before named a memory by the beginning of its id.
        marks = (f"memory {short_id(memory_id)}", f"memory {memory_id[:8]}")
        return sum(self._rewrite(name, marks) for name in self._names())

    # ---- inside

    def _write_new(self, text: str, *, now_ns: int) -> str:
        stem = f"REPORT-{datetime.fromtimestamp(now_ns // _NS, UTC):{_TIME}}"
        for number in range(_MOST_OF_A_SECOND):
            name = f"{stem}-{number + 1}" if number else stem
            with suppress(FileExistsError):
                _write_whole(self._folder / f"{name}.md", text, may_replace=False)
                return name
        raise FileExistsError(17, f"{_MOST_OF_A_SECOND} reports of one second", str(stem))

    def _rewrite(self, name: str, marks: Sequence[str]) -> int:
        """Remove lines, and record the file as it is then; one that was altered stays altered."""
        try:
            before = self._content(name)
        except NotFoundError:  # removed meanwhile
            return 0
        lines = before.decode("utf-8", "replace").splitlines()
        held = [at for at, line in enumerate(lines) if any(mark in line for mark in marks)]
        for at in held:
            lines[at] = "- (removed with what it was about)"
        if held:
            text = "\n".join(lines) + "\n"
            record = read_records(self._store, [name]).get(name, NOT_RECORDED)
            if record.state_of(before) == "recorded":
                with accountability_transaction(self._store) as connection:
                    self._record_written(connection, name, text.encode(), now_ns=time.time_ns())
            _write_whole(self.path(name), text, may_replace=True)
        return len(held)

    def _record_written(
        self, connection: apsw.Connection, name: str, content: bytes, *, now_ns: int
    ) -> None:
        body = {"sha256": digest_of(content), "bytes": len(content)}
        self._tell(connection, EventType.REPORT_WRITTEN, name, body, now_ns=now_ns)

    def _tell(
        self,
        connection: apsw.Connection,
        type: EventType,
        name: str,
        body: Mapping[str, Any],
        *,
        who: Who = SYSTEM,
        now_ns: int,
    ) -> None:
        event = Event(
            type=type,
            actor=who.actor,
            who=who.name,
            action=str(type),
            source=self._source,
            subject=f"{_KIND}{name}",
            time_ns=now_ns,
            body=body,
        )
        append(connection, event)

    def _content(self, name: str) -> bytes:
        try:
            return self.path(name).read_bytes()
        except FileNotFoundError:
            raise NotFoundError("report", name) from None
        except OSError as error:
            raise self._unusable(error) from None

    def _names(self) -> Iterator[str]:
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unusable(error) from None
        for one in names:
            name = one.removesuffix(".md")
            if name != one and _NAME.fullmatch(name):
                yield name

    def _report(self, name: str, record: ReportRecord) -> Report:
        try:
            state = record.state_of(self.path(name).read_bytes())
        except OSError:
            state = record.state_of(b"")
        others = (one for one in _acks(self._ack_path(name)) if one not in record.acks)
        return Report(name, _time_ns(name), record.acks, state, tuple(others))

    def _ack_path(self, name: str) -> Path:
        return self._folder / f"{name}.ack"

    def _prune(self, *, now_ns: int) -> None:
        names = sorted(self._names(), key=_order)[:-MOST_REPORTS]
        if records := read_records(self._store, names):
            with accountability_transaction(self._store) as connection:
                for name, record in records.items():
                    if record.digests and record.removed_seq is None:
                        self._tell(connection, EventType.REPORT_REMOVED, name, {}, now_ns=now_ns)
        for name in names:
            self.path(name).unlink(missing_ok=True)
            self._ack_path(name).unlink(missing_ok=True)

    def _unusable(self, error: OSError) -> ReportsUnusable:
        return ReportsUnusable(f"cannot use {str(self._folder)!r}: {error.strerror or error}")


def names_in(folder: DataFolder) -> list[str]:
    """Return the names of the reports in a folder, the oldest first."""
    return sorted(Reports(folder)._names(), key=_order)


def is_report_file(name: str) -> bool:
    """Whether a file of this name is a report or the acknowledgements of one."""
    stem, _, kind = name.rpartition(".")
    return kind in ("md", "ack") and _NAME.fullmatch(stem) is not None


def report_files(folder: DataFolder) -> dict[str, bytes]:
    """Return reports and acknowledgements by the name of their file.

    The file of acknowledgements is read before its report: what has a line has its event.
    """
    found: dict[str, bytes] = {}
    for name in names_in(folder):
        for one in (f"{name}.ack", f"{name}.md"):
            with suppress(FileNotFoundError):
                found[one] = (folder.reports / one).read_bytes()
    return found


def lines_of(folder: DataFolder, name: str) -> tuple[Ack, ...]:
    """Return the acknowledgements that the file beside a report holds, recorded or not."""
    return tuple(_acks(Reports(folder)._ack_path(name)))


def reports_beside(connection: apsw.Connection) -> Reports:
    """Return the reports of the store that a connection has open."""
    return Reports(DataFolder(Path(connection.db_filename("main")).parent), source="store")


def _order(name: str) -> tuple[str, int]:
    found = _NAME.fullmatch(name)
    return (found[1], int(found[2] or 0)) if found else ("", 0)


def _time_ns(name: str) -> int:
    time_part, _ = _order(name)
    try:
        moment = datetime.strptime(time_part, _TIME).replace(tzinfo=UTC)
    except ValueError:  # of a day that there is not: somebody made the file
        return 0
    return int(moment.timestamp()) * _NS


def _acks(path: Path) -> Iterator[Ack]:
    """Yield the acknowledgements of a file; a line that is none is passed over."""
    try:
        with path.open("rb") as file:
            lines = file.read(_MOST_ACK_BYTES).splitlines()
    except OSError:
        return
    seen: list[Ack] = []
    for line in lines:
        with suppress(ValueError, TypeError, KeyError):
            fields: Any = json.loads(line)
            ack = Ack(str(fields["who"]), int(fields["at_ns"]), str(fields["method"]))
            if ack not in seen:
                seen.append(ack)
                yield ack


def _append(path: Path, line: str) -> None:
    """Add a line; one write to a file opened to append is not mixed with another's."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_whole(path: Path, text: str, *, may_replace: bool) -> None:
    """Write a file that others see whole or not at all; FileExistsError where it is there."""
    mine = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    descriptor = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        if may_replace:
            os.replace(mine, path)
        else:
            os.link(mine, path)
    finally:
        mine.unlink(missing_ok=True)


# Reports as programs get them: one JSON for the API and the commands.


class UnrecordedAck(Body):
    """What a line of an .ack file says; nothing of it was checked."""

    who: str
    method: str
    at: str
    ns: str


class ReportAck(Body):
    """Who acknowledged a report, and when."""

    who: str
    method: Annotated[Method, Description("how the name is known")]
    at: str
    ns: str


class StatusReport(Body):
    """A status report: a file in the data folder, with its acknowledgements."""

    name: str
    written_at: str
    written_ns: str
    is_pending: Annotated[bool, Description("it waits for somebody to acknowledge it")]
    next_recipient: Annotated[
        str | None, Description("the recipient whose turn it is; null: anybody")
    ]
    escalated_past: Annotated[
        list[str], Description("recipients who did not acknowledge it in time")
    ]
    escalates_at: Annotated[str | None, Description("when it passes to the next recipient")]
    record: Annotated[
        State, Description("whether the file is as its event in the audit log has it")
    ]
    acks: Annotated[list[ReportAck], Description("each with its event in the audit log")]
    unrecorded_acks: Annotated[
        list[UnrecordedAck],
        Description("lines of the .ack file that no event holds: anybody may have written them"),
    ]
    text: NotRequired[Annotated[str | None, Description("Markdown; only where one is shown")]]


def report_json(
    report: Report,
    *,
    waits_for: str | None,
    passed_over: tuple[str, ...] = (),
    passes_ns: int | None = None,
    text: str | None = None,
) -> StatusReport:
    """Return a report; `waits_for` is "" where it waits and no recipient is configured."""
    return body_of(
        StatusReport,
        report,
        is_pending=waits_for is not None,
        next_recipient=waits_for or None,
        escalated_past=list(passed_over),
        escalates_at=time_text(passes_ns),
        record=report.state,
        acks=[_ack_json(ReportAck, one) for one in report.acks],
        unrecorded_acks=[_ack_json(UnrecordedAck, one) for one in report.unrecorded],
        **({} if text is None else {"text": text}),
    )


def _ack_json(kind: type[BodyT], one: Ack) -> BodyT:
    """Return who acknowledged a report, when, and how the name is known."""
    return body_of(kind, one, at=time_text(one.at_ns), ns=str(one.at_ns))
