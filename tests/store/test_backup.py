"""Backups: one state of a store in use, whole, private, and usable wherever it is put."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
import zstandard

from hansard_store.approvals.service import ApprovalService
from hansard_store.content.payloads import INLINE_BYTES, Retained, blob_path
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import (
    NoSpaceError,
    NotABackupError,
    NotEmptyError,
    StoreError,
    StoreNewerError,
)
from hansard_store.maintenance.backup import MANIFEST, back_up, restore
from hansard_store.maintenance.deletion import delete_run
from hansard_store.maintenance.garbage import collect_garbage
from hansard_store.verification.integrity import verify_store
from tests.collector.ingesting import (
    TRACE,
    Ingesting,
    conversation,
    log,
    logs,
    span,
    tables,
    traces,
)
from tests.store.by_hand import triggers_dropped
from tests.store.payloads import put_payload

LARGE = b"large " * INLINE_BYTES
TARGETS = pytest.mark.parametrize("name", ["backup", "backup.tar.zst"])


def fill(ingesting: Ingesting) -> bytes:
    """Put something of every kind into a store; returns the digest of a payload in a file."""
    ingesting.send(
        traces([span(n, attributes={"input.value": conversation(n)}) for n in (1, 2, 3)])
    )
    ingesting.send(logs([log(1, text="long " * 1000)]))
    digest = hashlib.sha256(LARGE).digest()
    put_payload(
        ingesting.folder,
        LARGE,
        expected=digest,
        media_type="text/plain",
        received_ns=2**62,
        retain=lambda data, _: Retained(data),
    )
    return digest


@pytest.mark.covers("ST-11")
@TARGETS
def test_a_restored_backup_is_the_same_store_and_works(
    ingesting: Ingesting, tmp_path: Path, name: str
) -> None:
    fill(ingesting)
    before = tables(ingesting.db)

    made = back_up(ingesting.folder, tmp_path / name)
    restored = DataFolder(tmp_path / "elsewhere" / "data")
    told = restore(tmp_path / name, restored)

    assert told == made
    assert (made.spans, made.blobs, made.has_key) == (3, 1, True)
    assert restored.key() == ingesting.folder.key()
    assert sorted(path.name for path in restored.path.iterdir()) == ["blobs", "hansard.db", "key"]
    again = Ingesting(restored.path)
    assert tables(again.db) == before
    assert verify_store(restored).findings == []
    # The key went along: what was sent before is known.
    assert again.send(traces([span(1, attributes={"input.value": conversation(1)})])).accepted == 1
    assert again.one("SELECT count(*) FROM span") == 3
    assert again.one("SELECT count(*) FROM span_duplicate") == 0
    again.close()


@pytest.mark.covers("ST-11")
def test_a_backup_folder_and_a_moved_data_folder_can_be_used_as_they_are(tmp_path: Path) -> None:
    first = Ingesting(tmp_path / "first")
    fill(first)
    back_up(first.folder, tmp_path / "backup")
    first.close()
    shutil.move(first.folder.path, tmp_path / "moved")

    for name in ("backup", "moved"):
        used = Ingesting(tmp_path / name)
        used.send(traces([span(9)]))
        assert used.one("SELECT span_count FROM run") == 4
        assert verify_store(used.folder).findings == []
        used.close()


@TARGETS
def test_a_backup_is_its_owners_alone(ingesting: Ingesting, tmp_path: Path, name: str) -> None:
    fill(ingesting)
    before = os.umask(0)
    try:
        back_up(ingesting.folder, tmp_path / name)
        restore(tmp_path / name, DataFolder(tmp_path / "restored"))
    finally:
        os.umask(before)

    paths = [tmp_path / name, *(tmp_path / "restored").rglob("*"), *(tmp_path / name).rglob("*")]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in paths}
    assert modes == {0o600, 0o700}


def test_a_backup_without_the_key_leaves_it_out(ingesting: Ingesting, tmp_path: Path) -> None:
    fill(ingesting)

    made = back_up(ingesting.folder, tmp_path / "backup", with_key=False)
    restore(tmp_path / "backup", DataFolder(tmp_path / "restored"))

    assert not made.has_key
    assert not (tmp_path / "backup" / "key").exists()
    assert DataFolder(tmp_path / "restored").key() != ingesting.folder.key()


def test_a_backup_is_one_state_although_the_store_is_written_to(
    ingesting: Ingesting, tmp_path: Path
) -> None:
    ingesting.send(traces(span(n, attributes={"k": os.urandom(3000).hex()}) for n in range(1, 999)))
    sent: list[int] = []

    def send(what: str, done: int, total: int) -> None:
        assert what == "pages"
        number = 1000 + len(sent)
        ingesting.send(traces([span(number)]))
        sent.append(number)

    made = back_up(ingesting.folder, tmp_path / "backup", progress=send)

    assert len(sent) > 1
    assert made.spans == 998
    assert verify_store(DataFolder(tmp_path / "backup")).findings == []


def test_a_payload_that_goes_during_a_backup_leaves_no_row_behind(
    ingesting: Ingesting, tmp_path: Path
) -> None:
    digest = fill(ingesting)

    def remove(what: str, done: int, total: int) -> None:
        if done == total:
            blob_path(ingesting.folder, digest).unlink(missing_ok=True)

    made = back_up(ingesting.folder, tmp_path / "backup", progress=remove)

    assert made.blobs == 0
    assert verify_store(DataFolder(tmp_path / "backup")).findings == []


def test_what_was_deleted_before_is_not_in_a_backup(ingesting: Ingesting, tmp_path: Path) -> None:
    fill(ingesting)
    connection = open_for_ingest(ingesting.folder)
    delete_run(connection, TRACE, reason="by hand")
    collect_garbage(ingesting.folder, connection)
    connection.close()

    assert back_up(ingesting.folder, tmp_path / "backup").spans == 0


# ---- what is refused, leaving everything as it was


@TARGETS
def test_nothing_is_overwritten(ingesting: Ingesting, tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    if name == "backup":
        target.mkdir()
        (target / "mine").write_text("mine")
    else:
        target.write_text("mine")

    with pytest.raises(NotEmptyError, match="is not empty"):
        back_up(ingesting.folder, target)

    assert (target / "mine" if target.is_dir() else target).read_text() == "mine"
    back_up(ingesting.folder, tmp_path / "good")
    with pytest.raises(NotEmptyError):
        restore(tmp_path / "good", ingesting.folder)


@TARGETS
def test_too_little_room_is_told_before_anything_is_written(
    ingesting: Ingesting, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=20_000_000))
    fill(ingesting)
    back_up(ingesting.folder, tmp_path / "fits")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))

    with pytest.raises(NoSpaceError, match="the backup needs"):
        back_up(ingesting.folder, tmp_path / name)
    with pytest.raises(NoSpaceError, match="the restored store needs"):
        restore(tmp_path / "fits", DataFolder(tmp_path / "restored"))

    assert not (tmp_path / name).exists()
    assert not (tmp_path / "restored").exists()


def test_there_must_be_a_store_to_back_up(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        back_up(DataFolder(tmp_path / "none"), tmp_path / "backup")


def _no_manifest(backup: Path) -> None:
    (backup / MANIFEST).unlink()


def _not_a_database(backup: Path) -> None:
    (backup / "hansard.db").write_bytes(b"no database " * 1000)


def _cut_off(backup: Path) -> None:
    whole = (backup / "hansard.db").read_bytes()
    (backup / "hansard.db").write_bytes(whole[: len(whole) // 2])


def _another_database(backup: Path) -> None:
    connection = open_for_ingest(DataFolder(backup))
    connection.pragma("application_id", 7)
    connection.close()


def _a_foreign_file(backup: Path) -> None:
    (backup / "notes.txt").write_text("mine")


@pytest.mark.parametrize(
    "damage", [_no_manifest, _not_a_database, _cut_off, _another_database, _a_foreign_file]
)
def test_what_is_no_backup_is_not_restored(
    ingesting: Ingesting, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    fill(ingesting)
    back_up(ingesting.folder, tmp_path / "backup")
    damage(tmp_path / "backup")
    (tmp_path / "empty").mkdir()

    with pytest.raises(NotABackupError):
        restore(tmp_path / "backup", DataFolder(tmp_path / "empty"))

    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "blobs/../../outside", "blobs/ab"])
def test_an_archive_writes_nowhere_but_into_its_folder(tmp_path: Path, name: str) -> None:
    archive = tmp_path / "evil.tar.zst"
    with (
        archive.open("wb") as file,
        zstandard.ZstdCompressor().stream_writer(file) as packed,
        tarfile.open(fileobj=packed, mode="w|") as tar,
    ):
        member = tarfile.TarInfo(name)
        member.size = 0
        tar.addfile(member)

    with pytest.raises(NotABackupError, match="no place in a backup"):
        restore(archive, DataFolder(tmp_path / "data"))

    assert sorted(path.name for path in tmp_path.iterdir()) == ["evil.tar.zst"]


def test_a_damaged_archive_is_no_backup(ingesting: Ingesting, tmp_path: Path) -> None:
    fill(ingesting)
    archive = tmp_path / "backup.tar.zst"
    back_up(ingesting.folder, archive)
    whole = archive.read_bytes()

    for content in (whole[: len(whole) // 2], b"no archive", b""):
        archive.write_bytes(content)
        with pytest.raises(NotABackupError):
            restore(archive, DataFolder(tmp_path / "restored"))
        assert not (tmp_path / "restored").exists()


def test_a_backup_of_a_newer_version_is_refused(ingesting: Ingesting, tmp_path: Path) -> None:
    back_up(ingesting.folder, tmp_path / "backup")
    connection = open_for_ingest(DataFolder(tmp_path / "backup"))
    connection.pragma("user_version", 999)
    connection.pragma("wal_checkpoint(TRUNCATE)")
    connection.close()

    with pytest.raises(StoreNewerError):
        restore(tmp_path / "backup", DataFolder(tmp_path / "restored"))


def test_the_manifest_can_be_read_by_people(ingesting: Ingesting, tmp_path: Path) -> None:
    fill(ingesting)
    back_up(ingesting.folder, tmp_path / "backup")

    told = json.loads((tmp_path / "backup" / MANIFEST).read_text())

    assert set(told) == {"created_ns", "schema", "spans", "blobs", "has_key", "event_head"}


def test_a_backup_holds_the_end_of_the_audit_log_and_is_held_to_it(
    ingesting: Ingesting, tmp_path: Path
) -> None:
    with ApprovalService(ingesting.folder) as desk:
        for number in range(3):
            desk.failed("x", f"error {number}")
        kept = desk.head().text
    made = back_up(ingesting.folder, tmp_path / "backup")
    restore(tmp_path / "backup", DataFolder(tmp_path / "again"))
    connection = apsw.Connection(str(tmp_path / "backup" / "hansard.db"))
    with triggers_dropped(connection):
        for sql in ("DELETE FROM event_content WHERE event = 3", "DELETE FROM event WHERE seq = 3"):
            connection.execute(sql)
    connection.close()

    with pytest.raises(NotABackupError, match="does not end as"):
        restore(tmp_path / "backup", DataFolder(tmp_path / "cut"))

    assert made.event_head == kept


# ---- killed half-way

_KILLED = """
import os, signal, sys
from pathlib import Path
from hansard_store.maintenance.backup import back_up, restore
from hansard_store.database.connections import DataFolder

def progress(what, done, total):
    if what == sys.argv[4]:
        os.kill(os.getpid(), signal.SIGKILL)

work, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
if work == "back_up":
    back_up(DataFolder(source), target, progress=progress)
else:
    restore(source, DataFolder(target), progress=progress)
"""


def killed(work: str, source: Path, target: Path, at: str) -> None:
    """Do something in a process that is killed when it reports this kind of progress."""
    arguments = [sys.executable, "-c", _KILLED, work, str(source), str(target), at]
    assert subprocess.run(arguments, timeout=240).returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "at"),
    [("backup", "pages"), ("backup", "blobs"), ("backup.tar.zst", "pages"),
     ("backup.tar.zst", "blobs"), ("backup.tar.zst", "files")],
)  # fmt: skip
def test_a_backup_that_was_killed_has_no_name_and_the_next_one_removes_it(
    ingesting: Ingesting, tmp_path: Path, name: str, at: str
) -> None:
    fill(ingesting)
    place = tmp_path / "backups"
    place.mkdir()

    killed("back_up", ingesting.folder.path, place / name, at)

    assert not (place / name).exists()
    assert len(list(place.glob(".backup-*"))) == 1
    back_up(ingesting.folder, place / name)
    assert [path.name for path in place.iterdir()] == [name]
    restored = DataFolder(tmp_path / "restored")
    restore(place / name, restored)
    assert verify_store(restored).findings == []


@pytest.mark.slow
@TARGETS
@pytest.mark.parametrize("is_there", [True, False])
def test_a_restore_that_was_killed_is_done_again_without_tidying_up(
    ingesting: Ingesting, tmp_path: Path, name: str, is_there: bool
) -> None:
    fill(ingesting)
    back_up(ingesting.folder, tmp_path / name)
    target = tmp_path / "restored"
    if is_there:
        target.mkdir()

    killed("restore", tmp_path / name, target, "files")

    assert not (target / "hansard.db").exists()
    (target / "blobs").mkdir()  # as if it was killed while the parts were put in place
    restore(tmp_path / name, DataFolder(target))
    assert sorted(path.name for path in target.iterdir()) == ["blobs", "hansard.db", "key"]
    assert verify_store(DataFolder(target)).findings == []


def test_a_folder_of_somebody_is_not_restored_into(ingesting: Ingesting, tmp_path: Path) -> None:
    fill(ingesting)
    back_up(ingesting.folder, tmp_path / "backup")
    target = tmp_path / "mine"
    (target / "blobs").mkdir(parents=True)
    (target / "blobs" / "mine").write_text("mine")

    with pytest.raises(NotEmptyError):
        restore(tmp_path / "backup", DataFolder(target))

    assert (target / "blobs" / "mine").read_text() == "mine"


def test_a_backup_in_progress_is_not_taken_for_a_leftover(
    ingesting: Ingesting, tmp_path: Path
) -> None:
    fill(ingesting)
    other = tmp_path / f".backup-{re.sub('[^A-Za-z0-9]', '_', platform.node())}-{os.getppid()}-abc"
    elsewhere = tmp_path / ".backup-another_machine-1-abc"
    for path in (other, elsewhere):
        path.mkdir()

    back_up(ingesting.folder, tmp_path / "backup")

    assert other.exists()
    assert elsewhere.exists()
    long_ago_s = time.time() - 2 * 86_400
    os.utime(elsewhere, (long_ago_s, long_ago_s))
    back_up(ingesting.folder, tmp_path / "second")
    assert not elsewhere.exists()
