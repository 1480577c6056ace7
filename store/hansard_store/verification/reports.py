"""Reports against the audit log: the bytes of each file, and each line of an acknowledgement.

Files are read before their events, and what differs is read once more, since reports are written,
acknowledged and removed meanwhile. What a kill between file and event leaves is a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import apsw

from hansard_store.database.data_folder import DataFolder
from hansard_store.reports.audit_events import (
    NOT_RECORDED,
    ReportRecord,
    digest_of,
    recorded_names,
    records_of,
)
from hansard_store.reports.files import Reports, lines_of, names_in

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
