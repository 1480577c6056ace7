"""Reading everything back: is each row whole, and does all that it refers to exist?

Each check names the first row that is broken and goes no further; the next check goes on. Rows are
read some hundred at a time, each time in one state of the store, so ingest and deletion may go on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import apsw

from hansard_store.audit.anchors import Anchors, accepted_heads, copy_folder
from hansard_store.audit.daily_heads import verify_with_heads
from hansard_store.audit.events import verify_events
from hansard_store.audit.schema import alterations
from hansard_store.content.large_values import log_user, text_user
from hansard_store.content.payloads import PayloadState, get_payload, payload_ref, verify_payload
from hansard_store.content.texts import contents_of, read_message, read_text
from hansard_store.database.compression import unpack
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.database.transactions import snapshot
from hansard_store.errors import StoreCorruptError
from hansard_store.ingest.otlp_records import (
    references_of,
    restore_log,
    restore_metric,
    restore_span,
)
from hansard_store.maintenance.rebuild_state import read_progress
from hansard_store.reports.files import (
    NOT_RECORDED,
    ReportRecord,
    Reports,
    digest_of,
    lines_of,
    names_in,
    recorded_names,
    records_of,
)
from hansard_store.transcripts.queries import decode_all
from hansard_store.verification.approvals import check_approvals
from hansard_store.verification.compiles import check_compiles
from hansard_store.verification.decisions import check_decisions
from hansard_store.verification.seals import SealCheck, SealReport

# Reports against the audit log: the bytes of each file, and each line of an acknowledgement.
#
# Files are read before their events, and what differs is read once more, since reports are written,
# acknowledged and removed meanwhile. What a kill between file and event leaves is a note.

Found = Iterator[tuple[str, str, str, bool]]  # table, row, message, whether it is certain
_SHOWN: Final = 3


def check_reports(connection: apsw.Connection, folder: DataFolder) -> Found:
    """Yield every report and acknowledgement that is otherwise than its events have it."""
    names = names_in(folder)
    unrecorded = []
    for name in dict.fromkeys([*names, *recorded_names(connection)]):
        found = _differences(connection, folder, name)
        if found:
            found = _differences(connection, folder, name)
        for message, is_certain in found or ():
            yield "report", name, message, is_certain
        if found is None:
            unrecorded.append(name)
    if unrecorded:
        more = f" and {len(unrecorded) - _SHOWN:,} more" if len(unrecorded) > _SHOWN else ""
        message = "not recorded: no event holds what it says, nor who acknowledged it"
        yield "report", ", ".join(unrecorded[:_SHOWN]) + more, message, False


def _differences(
    connection: apsw.Connection, folder: DataFolder, name: str
) -> list[tuple[str, bool]] | None:
    """Return what differs; None of a report that is not recorded."""
    try:
        content = Reports(folder).path(name).read_bytes()
    except OSError:
        content = None
    lines = lines_of(folder, name)
    record = records_of(connection, [name]).get(name, NOT_RECORDED)
    if not record.digests:
        return None if content is not None else []
    found = []
    if content is None:
        if record.removed_seq is None:
            found.append((f"is missing; event {record.seq} holds its digest", True))
        return found
    found += _of_content(record, content)
    found += [
        (f"has an acknowledgement by {one.who} ({one.method}) that no event holds", True)
        for one in lines
        if one not in record.acks
    ]
    found += [
        (f"has no line of the acknowledgement by {one.who}, which an event holds", False)
        for one in record.acks
        if one not in lines
    ]
    return found


def _of_content(record: ReportRecord, content: bytes) -> Iterator[tuple[str, bool]]:
    found = digest_of(content)
    if record.state_of(content) == "altered":
        yield f"is not as it was written: its digest is not that of event {record.seq}", True
    elif record.removed_seq is not None:
        yield f"was removed by event {record.removed_seq}, and its file is there", False
    elif found != record.digests[-1][1]:
        yield f"is as it was before event {record.seq}, which removed lines of it", False


_AT_ONCE = 200

Progress = Callable[[str, int, int], None]  # check, rows done, rows in all


@dataclass(frozen=True, slots=True)
class IntegrityFinding:
    """A row that is not as it was written."""

    check: str
    table: str
    row: str  # its key, as a person would look it up
    message: str
    is_certain: bool = True  # False: Hansard itself may have left it; a note, and no failure


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    """What was looked at, and the first broken row of each check."""

    findings: list[IntegrityFinding]
    rows: int
    seals: SealReport = field(default_factory=SealReport)
    notes: list[str] = field(default_factory=list)  # what differs, and alters no row

    @property
    def broken(self) -> list[IntegrityFinding]:
        """The findings that Hansard itself cannot have left."""
        return [one for one in self.findings if one.is_certain]

    @property
    def is_sound(self) -> bool:
        return not self.broken


@dataclass(frozen=True, slots=True)
class _Store:
    """What is checked, and what it is held against."""

    connection: apsw.Connection
    folder: DataFolder
    key: bytes
    heads_copy: Path | None


def verify_store(
    folder: DataFolder,
    *,
    every: int = 1,
    heads_copy: str | None = None,
    progress: Progress = lambda _check, _done, _total: None,
) -> IntegrityReport:
    """Check the whole store, or of large tables every nth row; reads all of it by default.

    `heads_copy`: the setting of that name; None asks the environment, then the platform.
    On a connection of its own: one that has read the full-text indexes before would judge them by
    what it remembers of their structure (SQLite 3.54).
    """
    try:
        connection = open_reader(folder)
    except apsw.CorruptError as error:  # a schema that SQLite cannot read
        return IntegrityReport([IntegrityFinding("file", "(file)", "", str(error))], 0)
    try:
        store = _Store(connection, folder, folder.key(), copy_folder(heads_copy))
        return _verify(store, every=every, progress=progress)
    finally:
        connection.close()


def _verify(store: _Store, *, every: int, progress: Progress) -> IntegrityReport:
    findings: list[IntegrityFinding] = []
    rows = 0
    notes = _notes(store.connection)
    for check, found in _WHOLE.items():
        findings += _first(check, found, store)
        progress(check, 1, 1)
    if any(finding.check == "file" for finding in findings):
        return IntegrityReport(
            findings, rows, notes=notes
        )  # rows read from damaged pages would tell nothing more
    seals = SealCheck(store.connection, store.key)
    findings += [IntegrityFinding("seals", *one) for one in seals.run()]
    progress("seals", 1, 1)
    for name, look in _TABLES.items():
        broken, looked = _Scan(store.folder, store.connection, name, every, progress).run(look)
        findings += broken
        rows += looked
    return IntegrityReport(findings, rows, seals.report, notes)


def _notes(connection: apsw.Connection) -> list[str]:
    try:
        notes = [str(one) for one in alterations(connection) if one.is_harmless]
        if read_progress(connection) is not None:
            notes.append(
                "a rebuild is unfinished: steps that it has yet to make again are not looked for "
                "in the index; a server continues it, or `hansard rebuild`"
            )
        return notes
    except (apsw.CorruptError, apsw.SQLError):  # a finding of the checks
        return []


def _first(check: str, find: Callable[[_Store], _Found], store: _Store) -> list[IntegrityFinding]:
    try:
        return [IntegrityFinding(check, *one) for one in islice(find(store), _MOST.get(check, 1))]
    except (apsw.CorruptError, apsw.SQLError) as error:
        return [IntegrityFinding("file", "(file)", "", str(error))]


# ---- whole-store checks: each yields (table, row, message)

_Found = Iterator[tuple[str, str, str] | tuple[str, str, str, bool]]


def _schema(connection: apsw.Connection) -> _Found:
    for one in alterations(connection):
        if not one.is_harmless:
            yield "(schema)", one.name, str(one)


def _file(connection: apsw.Connection) -> _Found:
    for (message,) in connection.execute("PRAGMA integrity_check(10)"):
        if message != "ok":
            yield "(file)", "", str(message)


def _foreign_keys(connection: apsw.Connection) -> _Found:
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield str(table), str(row), f"refers to a row of {parent} that is not there"


def _selected(*rules: tuple[str, str, str]) -> Callable[[_Store], _Found]:
    """Return a check that names the rows of tables that statements select, with a message each."""
    return lambda store: (
        (table, str(row[0]), message)
        for table, message, sql in rules
        for row in store.connection.execute(sql)
    )


_LEDGER = """
SELECT printf('(%d, %d, ''%s'')', quarter_ns, sender, signal) FROM ledger
WHERE received <> stored + duplicate + rejected + opened + deleted LIMIT 1
"""
_RECORDS = "SELECT id FROM span EXCEPT SELECT span FROM span_record LIMIT 1"
_RUNS = """
SELECT lower(hex(trace_id)) FROM run
WHERE span_count <> (SELECT count(*) FROM span WHERE span.trace_id = run.trace_id)
  AND NOT EXISTS (SELECT 1 FROM tombstone WHERE tombstone.trace_id = run.trace_id) LIMIT 1
"""
_RECEIPTS = """
SELECT span FROM compilation
WHERE receipt_count <> (SELECT count(*) FROM receipt WHERE receipt.span = compilation.span)
  AND NOT EXISTS (
    SELECT 1 FROM tombstone JOIN run USING (trace_id) WHERE run.id = compilation.run)
LIMIT 1
"""
_STRAY_RECEIPTS = "SELECT span FROM receipt EXCEPT SELECT span FROM compilation LIMIT 1"
_INDEXED = (
    ("text_fts", "text", "id"),
    ("attribute_fts", "span", "id"),
    ("memory_fts", "memory_body", "memory"),
    ("memory_stem_fts", "memory_body", "memory"),
)


def _indexes(connection: apsw.Connection) -> _Found:
    with snapshot(connection):
        yield from _unindexed(connection)


def _unindexed(connection: apsw.Connection) -> _Found:
    # An unfinished rebuild has taken some steps back, and indexes them as it makes them again.
    is_rebuilding = read_progress(connection) is not None
    for index, table, column in _INDEXED:
        due = " WHERE derived_version <> 0" if is_rebuilding and table == "span" else ""
        docs, rows = f"SELECT id FROM {index}_docsize", f"SELECT {column} FROM {table}{due}"
        missing = connection.execute(f"{rows} EXCEPT {docs} LIMIT 1").get
        if missing is not None:
            yield table, str(missing), f"is not in the full-text index {index}"
        stray = connection.execute(f"{docs} EXCEPT {rows} LIMIT 1").get
        if stray is not None and not due:
            yield index, str(stray), f"is in the index and not in {table}"


def _transcripts(connection: apsw.Connection) -> _Found:
    found = decode_all(connection)
    for failure in found.failures:
        yield "transcript_message", f"{failure.log} {failure.position}", failure.why
    for problem in found.problems:
        yield "transcript_message", "", problem


def _events(store: _Store) -> _Found:
    anchors = Anchors(store.folder, store.key, copy=store.heads_copy)
    report = verify_with_heads(
        store.folder,
        lambda heads: verify_events(store.connection, heads=heads),
        latest=lambda: [one.head for one in anchors.stored()],
        given_up=accepted_heads(store.connection, store.key),
    )
    if report.broken is not None:
        yield "event", str(report.broken.seq), report.broken.problem


def _rows(check: Callable[[apsw.Connection], _Found]) -> Callable[[_Store], _Found]:
    """Return a check that needs nothing but the database."""
    return lambda store: check(store.connection)


_WHOLE = {
    "schema": _rows(_schema),
    "file": _rows(_file),
    "foreign keys": _rows(_foreign_keys),
    "ledger": _selected(
        ("ledger", "what was received is not the sum of what became of it", _LEDGER)
    ),
    "records": _selected(("span", "has no record", _RECORDS)),
    "runs": _selected(("run", "its count of spans is wrong; rebuild makes it again", _RUNS)),
    "receipts": _selected(
        ("compilation", "its count of receipts is wrong; rebuild makes it again", _RECEIPTS),
        ("receipt", "is of no compilation", _STRAY_RECEIPTS),
    ),
    "compiles": lambda store: check_compiles(store.connection, store.folder),
    "indexes": _rows(_indexes),
    "audit log": _events,
    "approvals": _rows(check_approvals),
    "decisions": _rows(check_decisions),
    "transcripts": _rows(_transcripts),
    "reports": lambda store: check_reports(store.connection, store.folder),
}


# Rows that a check names; of the others the first says what has to be done.
_MOST = {"approvals": 100, "compiles": 100, "decisions": 100, "reports": 100, "schema": 100}


# ---- row by row


class _Scan:
    """Goes over the rows of one table, some at a time."""

    def __init__(
        self,
        folder: DataFolder,
        connection: apsw.Connection,
        table: str,
        every: int,
        progress: Progress,
    ) -> None:
        self.folder = folder
        self.connection = connection
        self._table = table
        self._every = every
        self._progress = progress

    def run(self, look: _Look) -> tuple[list[IntegrityFinding], int]:
        """Return the first broken row, if any, and how many were looked at."""
        sql = f"{look.select} WHERE {look.key} > ? ORDER BY {look.key} LIMIT {_AT_ONCE}"
        total = int(self.connection.execute(f"SELECT count(*) FROM {self._table}").get)
        after: Any = look.before
        done = looked = 0
        while True:
            with snapshot(self.connection):
                rows: list[Any] = self.connection.execute(sql, (after,)).fetchall()
                for row in rows[:: self._every]:
                    try:
                        look.check(self, *row)
                    except StoreCorruptError as error:
                        key = row[0].hex() if isinstance(row[0], bytes) else str(row[0])
                        return [IntegrityFinding(look.name, self._table, key, str(error))], looked
                    looked += 1
            if not rows:
                return [], looked
            after = rows[-1][0]
            done += len(rows)
            self._progress(look.name, done, total)

    def check_uses(self, record: bytes, user: int) -> None:
        """Make sure that gc would keep what a record refers to."""
        for reference in references_of(record):
            self.check_use("list" if reference.is_list else "content", reference.id, user)
            if reference.tail_content:
                self.check_use("content", reference.tail_content, user)

    def check_use(self, kind: str, number: int, user: int) -> None:
        if self.connection.execute(_USES[kind], (number, user)).get is None:
            raise StoreCorruptError(f"{kind} {number} is named by it and not marked as used")


_USES = {
    "content": "SELECT 1 FROM content_use WHERE content = ? AND run = ?",
    "list": "SELECT 1 FROM content_list_use WHERE list = ? AND run = ?",
}


@dataclass(frozen=True, slots=True)
class _Look:
    """How the rows of a table are read and judged; `check` raises StoreCorruptError."""

    name: str
    select: str
    key: str
    check: Callable[..., None]
    before: Any = 0  # below every key


def _span(scan: _Scan, _: int, record: bytes, run: int) -> None:
    restore_span(scan.connection, record)
    scan.check_uses(record, run)


def _log(scan: _Scan, number: int, record: bytes) -> None:
    restore_log(scan.connection, record)
    scan.check_uses(record, log_user(number))


def _point(scan: _Scan, _: int, record: bytes) -> None:
    restore_metric(scan.connection, record)


def _content(_: _Scan, __: int, digest: bytes, size: int, body: bytes) -> None:
    data = unpack(body)
    if len(data) != size:
        raise StoreCorruptError(f"holds {len(data):,} bytes, not {size:,}")
    if hashlib.sha256(data).digest() != digest:
        raise StoreCorruptError("its bytes are not those of its digest")


_NODE = "SELECT 1 FROM content_list WHERE id = ?"


def _list(scan: _Scan, node: int, parent: int) -> None:
    if parent and (parent >= node or scan.connection.execute(_NODE, (parent,)).get is None):
        raise StoreCorruptError(f"continues list {parent}, which is not there")


def _text(scan: _Scan, number: int, field: str, digest: bytes, body: bytes) -> None:
    if field == "message":
        found = read_message(scan.connection, body).hash
    else:
        text = read_text(scan.connection, body).encode("utf-8", "replace")
        found = hashlib.sha256(field.encode() + b"\0" + text).digest()
    if found != digest:
        raise StoreCorruptError("what it says is not what its hash promises")
    for content in contents_of(body):
        scan.check_use("content", content, text_user(number))


_ABOVE = "SELECT depth, hash FROM message_prefix WHERE id = ?"


def _prefix(scan: _Scan, _: int, parent: int, depth: int, digest: bytes, message: bytes) -> None:
    above: Any = scan.connection.execute(_ABOVE, (parent,)).fetchone() if parent else (0, b"")
    if above is None:
        raise StoreCorruptError(f"continues prefix {parent}, which is not there")
    if depth != above[0] + 1:
        raise StoreCorruptError(f"is message {depth} after message {above[0]}")
    if hashlib.sha256(above[1] + message).digest()[:16] != digest:
        raise StoreCorruptError("its hash is not that of the messages up to it")


def _payload(scan: _Scan, digest: bytes) -> None:
    state = verify_payload(scan.folder, get_payload(scan.connection, digest))
    if state in (PayloadState.ALTERED, PayloadState.MISSING):
        raise StoreCorruptError(f"{payload_ref(digest)} is {state.value}")


_TABLES = {
    "span_record": _Look(
        "spans",
        "SELECT span_record.span, record, run FROM span_record JOIN span ON span.id = span",
        "span_record.span",
        _span,
    ),
    "span_duplicate": _Look(
        "other reports of spans",
        "SELECT span_duplicate.id, record, run FROM span_duplicate JOIN span ON span.id = span",
        "span_duplicate.id",
        _span,
    ),
    "log_record": _Look("logs", "SELECT id, record FROM log_record", "id", _log),
    "metric_point": _Look("metrics", "SELECT id, record FROM metric_point", "id", _point),
    "content": _Look("contents", "SELECT id, digest, size, body FROM content", "id", _content),
    "content_list": _Look("lists", "SELECT id, parent FROM content_list", "id", _list),
    "text": _Look("texts", "SELECT id, field, hash, body FROM text", "id", _text),
    "message_prefix": _Look(
        "prefixes",
        "SELECT node.id, node.parent, node.depth, node.hash, text.hash "
        "FROM message_prefix AS node JOIN text ON text.id = node.text",
        "node.id",
        _prefix,
    ),
    "payload": _Look("payloads", "SELECT digest FROM payload", "digest", _payload, b""),
}
