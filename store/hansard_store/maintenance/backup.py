"""Backups: one state of the whole store, taken while it is used, as a folder or an archive.

A backup holds `hansard.db`, `blobs/`, `reports/`, the `key` unless left out, and `backup.json`.
It is laid out like the data folder itself, so a folder can be used in its place as it is.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import apsw
import zstandard

from hansard_store.audit.events import head
from hansard_store.audit.seal_marks import mark_changes
from hansard_store.content.payloads import blob_path
from hansard_store.database.data_folder import DataFolder, make_private
from hansard_store.database.disk import RESERVE, disk_use, folder_bytes, need_space, sync
from hansard_store.database.migrations import APPLICATION_ID
from hansard_store.database.readers import open_reader
from hansard_store.database.transactions import latest_version, schema_version, snapshot
from hansard_store.errors import NotABackupError, NotEmptyError, StoreError, StoreNewerError
from hansard_store.reports.files import (
    NOT_RECORDED,
    digest_of,
    is_report_file,
    records_of,
    report_files,
)

ARCHIVE_SUFFIX = ".tar.zst"
MANIFEST = "backup.json"

_PAGES_AT_ONCE = 1000
_LARGE_PAYLOADS = "SELECT digest FROM payload WHERE body IS NULL"
_DROP_PAYLOAD = "DELETE FROM payload WHERE digest = ?"
_DROP_ALIASES = "DELETE FROM payload_alias WHERE stored = ?"
_SPANS = "SELECT count(*) FROM span"

Progress = Callable[[str, int, int], None]  # what, done, in all


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup says of itself."""

    created_ns: int
    schema: int
    spans: int
    blobs: int
    has_key: bool
    event_head: str = ""  # SEQ:HASH of the audit log, an anchor to verify it against


def back_up(
    folder: DataFolder,
    target: Path,
    *,
    with_key: bool = True,
    progress: Progress = lambda _what, _done, _total: None,
) -> Backup:
    """Copy a store, in use or not, into a new folder, or an archive if `target` ends so.

    Raises NotEmptyError when there is something already, NoSpaceError before anything is written.
    The backup is made beside the target, and gets its name when it is whole and on the disk. What
    a failed or killed one left is removed: by itself, or by the next backup into the same folder.
    """
    is_archive = target.name.endswith(ARCHIVE_SUFFIX)
    if target.exists() and (is_archive or not target.is_dir() or any(target.iterdir())):
        raise NotEmptyError(str(target))
    if not folder.database.exists():
        raise StoreError(f"there is no store in {str(folder.path)!r}")
    with closing(open_reader(folder)) as reader:
        size = disk_use(folder, reader).total_bytes
        need_space("the backup", target, size_bytes=size * (2 if is_archive else 1))
        make_private(target.parent)
        with _working_folder(target.parent, "backup") as working:
            # An archive is made of a copy, too: what is written to meanwhile cannot be streamed.
            copy, packed = working / "copy", working / "packed"
            made = _fill(folder, reader, copy, with_key=with_key, progress=progress)
            if is_archive:
                _pack(copy, packed, progress)
            _publish(packed if is_archive else copy, target)
            return made


_LEFT_OVER_S = 86_400.0  # a working folder of another machine, or of an older version


@contextmanager
def _working_folder(parent: Path, what: str) -> Iterator[Path]:
    """Make a private folder for work in progress; it is gone afterwards, whatever happens.

    Its name says which process on which machine works in it, so that another one can tell what a
    killed process left: a whole copy of the store, with its key.
    """
    _remove_leftovers(parent, what)
    prefix = f".{what}-{_machine()}-{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as name:
        yield Path(name)


def _remove_leftovers(parent: Path, what: str) -> None:
    for path in parent.glob(f".{what}-*"):
        machine, _, rest = path.name.removeprefix(f".{what}-").rpartition("-")[0].rpartition("-")
        is_dead = machine == _machine() and rest.isdigit() and not _is_alive(int(rest))
        with suppress(OSError):
            if is_dead or time.time() - path.stat().st_mtime > _LEFT_OVER_S:
                shutil.rmtree(path)


def _machine() -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", platform.node())[:64] or "local"


def _is_alive(pid: int) -> bool:
    if pid == os.getpid():
        return False  # this process has just begun, and has no such folder
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's
    return True


def _publish(made: Path, target: Path) -> None:
    """Give what is whole its name, never over something else. Raises NotEmptyError."""
    try:
        if made.is_dir():
            for path in made.rglob("*"):
                if path.is_file():
                    sync(path)
            made.rename(target)  # over an empty folder at most
        else:
            sync(made)
            os.link(made, target)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotEmptyError(str(target)) from error
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise NotEmptyError(str(target)) from error
        if made.is_dir() or target.exists():
            raise
        made.rename(target)  # a file system without hard links
    sync(target.parent)


def _fill(
    folder: DataFolder,
    reader: apsw.Connection,
    target: Path,
    *,
    with_key: bool,
    progress: Progress,
) -> Backup:
    copy = DataFolder(target)
    copy.create()
    reports = report_files(folder)
    copy_database(reader, copy.database, progress)
    with _writing(copy) as connection:
        _copy_reports(connection, copy, (reports, report_files(folder)))
        mark_changes(connection, folder.key())  # of payloads whose files are gone by then
        blobs = _copy_blobs(folder, copy, connection, progress)
        made = Backup(
            created_ns=time.time_ns(),
            schema=schema_version(connection),
            spans=int(connection.execute(_SPANS).get),
            blobs=blobs,
            has_key=with_key,
            event_head=head(connection).text,
        )
    if with_key:
        _copy_file(folder.key_file, copy.key_file)
    _write_private(target / MANIFEST, json.dumps(asdict(made)).encode())
    return made


def copy_database(reader: apsw.Connection, target: Path, progress: Progress) -> None:
    """Copy one state of the database, some pages at a time.

    The reader's snapshot is held throughout: without it each commit of another connection would
    make the copy begin again.
    """
    target.touch(mode=0o600)
    with closing(apsw.Connection(str(target))) as connection, snapshot(reader):
        reader.execute(_SPANS).fetchall()  # a snapshot begins with the first read
        with connection.backup("main", reader, "main") as copying:
            while not copying.done:
                copying.step(_PAGES_AT_ONCE)
                total = copying.page_count
                progress("pages", total - copying.remaining, total)


def _copy_reports(
    connection: apsw.Connection, copy: DataFolder, found: Sequence[Mapping[str, bytes]]
) -> None:
    """Write the reports as the copied events have them.

    They were read before the database and after it: a report that was rewritten or removed in
    between is there as it was, and a line of that time is left to its event.
    """
    before, after = found
    names = {one.partition(".")[0] for one in (*before, *after)}
    records = records_of(connection, sorted(names))
    for name in names:
        record = records.get(name, NOT_RECORDED)
        contents = [files[f"{name}.md"] for files in (before, after) if f"{name}.md" in files]
        is_later = f"{name}.md" not in before and not record.digests
        if not contents or is_later or record.removed_seq is not None:
            continue
        make_private(copy.reports)
        newest = record.digests[-1][1] if record.digests else ""
        content = next((one for one in contents if digest_of(one) == newest), contents[0])
        _write_private(copy.reports / f"{name}.md", content)
        if f"{name}.ack" in before:
            _write_private(copy.reports / f"{name}.ack", before[f"{name}.ack"])


def _copy_blobs(
    folder: DataFolder, copy: DataFolder, connection: apsw.Connection, progress: Progress
) -> int:
    """Copy the files that the copied rows point at; a row whose file gc took since goes too."""
    rows: list[Any] = connection.execute(_LARGE_PAYLOADS).fetchall()
    copied = 0
    for done, (digest,) in enumerate(rows, start=1):
        path = blob_path(copy, digest)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            _copy_file(blob_path(folder, digest), path)
            copied += 1
        except FileNotFoundError:
            connection.execute(_DROP_ALIASES, (digest,))
            connection.execute(_DROP_PAYLOAD, (digest,))
        progress("blobs", done, len(rows))
    return copied


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb") as reading:
        _write_private(target, reading)


def _write_private(path: Path, content: bytes | IO[bytes]) -> None:
    """Write a file that only its owner may read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            shutil.copyfileobj(content, file)


def _pack(source: Path, target: Path, progress: Progress) -> None:
    paths = [path for path in sorted(source.rglob("*")) if path.is_file()]
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with (
        open(descriptor, "wb") as file,
        zstandard.ZstdCompressor(level=3).stream_writer(file) as packed,
        tarfile.open(fileobj=packed, mode="w|") as archive,
    ):
        for done, path in enumerate(paths, start=1):
            archive.add(path, arcname=path.relative_to(source).as_posix())
            progress("files", done, len(paths))


# ---- and back


def restore(
    source: Path,
    folder: DataFolder,
    *,
    progress: Progress = lambda _what, _done, _total: None,
) -> Backup:
    """Put a backup into an empty data folder; returns what it says of itself.

    Raises NotEmptyError rather than overwrite anything, NotABackupError for what is none or is
    damaged, StoreNewerError for one of a newer version. What was begun is removed when it fails,
    and what a killed restore left by the next one; the database comes last, whole.
    """
    if not source.exists():
        raise NotABackupError(f"there is no {str(source)!r}")
    _refuse_used(folder.path)
    with ExitStack() as undo:
        if not folder.path.exists():
            undo.callback(shutil.rmtree, folder.path, ignore_errors=True)
        make_private(folder.path)
        with _working_folder(folder.path, "restore") as working:
            restored = DataFolder(working / "data")
            restored.create()
            if source.is_dir():
                _restore_folder(source, restored, progress)
            else:
                _restore_archive(source, restored, progress)
            made = _check(source, restored)
            (restored.path / MANIFEST).unlink()
            folder.create()
            folder.blobs.rmdir()
            for path in sorted(restored.path.iterdir(), key=lambda path: path == restored.database):
                path.rename(folder.path / path.name)
            sync(folder.path)
        undo.pop_all()
    return made


def _refuse_used(path: Path) -> None:
    """Raise NotEmptyError for a folder with anything in it but what a killed restore left."""
    if not path.exists():
        return
    names = {one.name for one in path.iterdir()}
    begun = {name for name in names if name.startswith(".restore-")}
    # They are put in place before the database; without a restore they are somebody's.
    parts = {"blobs", "key", "reports"} if begun else set()
    if not path.is_dir() or names - begun - parts:
        raise NotEmptyError(str(path))
    for name in names & parts:
        entry = path / name
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _restore_folder(source: Path, folder: DataFolder, progress: Progress) -> None:
    need_space("the restored store", folder.path, size_bytes=folder_bytes(source))
    # A backup that was used in place of a data folder has a reserve of its own.
    paths = [one for one in sorted(source.rglob("*")) if one.is_file() and one.name != RESERVE]
    for done, path in enumerate(paths, start=1):
        with path.open("rb") as file:
            _put(PurePosixPath(path.relative_to(source).as_posix()), file, folder)
        progress("files", done, len(paths))


def _restore_archive(source: Path, folder: DataFolder, progress: Progress) -> None:
    done = 0
    try:
        with (
            source.open("rb") as file,
            zstandard.ZstdDecompressor().stream_reader(file) as unpacked,
            tarfile.open(fileobj=unpacked, mode="r|") as archive,
        ):
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content is None:
                    raise NotABackupError(f"{source.name} holds {member.name!r}, which is no file")
                need_space("the restored store", folder.path, size_bytes=member.size)
                _put(PurePosixPath(member.name), content, folder)
                done += 1
                progress("files", done, done)
    except (zstandard.ZstdError, tarfile.TarError, EOFError) as error:
        raise NotABackupError(f"{source.name} is no backup, or damaged: {error}") from error


def _put(name: PurePosixPath, content: IO[bytes], folder: DataFolder) -> None:
    """Write one file of a backup; only names that a backup has, wherever it came from."""
    parts = name.parts
    is_blob = len(parts) == 3 and parts[0] == "blobs" and all(_is_hex(part) for part in parts[1:])
    is_report = len(parts) == 2 and parts[0] == "reports" and is_report_file(parts[1])
    if not (is_blob or is_report) and str(name) not in ("hansard.db", "key", MANIFEST):
        raise NotABackupError(f"{str(name)!r} has no place in a backup")
    path = folder.path.joinpath(*parts)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    _write_private(path, content)


def _is_hex(text: str) -> bool:
    return bool(text) and not set(text) - set("0123456789abcdef")


def _check(source: Path, folder: DataFolder) -> Backup:
    """Return what a backup says of itself, if the database in it bears it out."""
    try:
        made = Backup(**json.loads((folder.path / MANIFEST).read_bytes()))
        with _writing(folder) as connection:
            sound = connection.execute("PRAGMA quick_check(1)").get == "ok"
            ours = connection.pragma("application_id") == APPLICATION_ID
            schema = schema_version(connection)
            is_ours_to_read = schema <= latest_version()
            is_same_log = (
                not (is_ours_to_read and made.event_head)
                or head(connection).text == made.event_head
            )
    except (OSError, ValueError, TypeError, apsw.Error) as error:
        raise NotABackupError(f"{str(source)!r} is no backup, or damaged: {error}") from error
    if not sound or not ours:
        raise NotABackupError(f"the database in {str(source)!r} is damaged")
    if not is_same_log:
        raise NotABackupError(
            f"the audit log in {str(source)!r} does not end as its {MANIFEST} says"
        )
    if schema > latest_version():
        raise StoreNewerError(schema, latest_version())
    return made


# ---- connections


@contextmanager
def _writing(folder: DataFolder) -> Iterator[apsw.Connection]:
    """A connection to a copy that nobody else uses; leaves no log file behind."""
    with closing(apsw.Connection(str(folder.database))) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        yield connection
