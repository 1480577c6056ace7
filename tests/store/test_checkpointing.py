"""The write-ahead log is taken into the database beside the writer, and stays bounded."""

from __future__ import annotations

import logging
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hansard_store.database.checkpoints import Checkpointer
from hansard_store.database.connections import open_for_accountability, open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader

_PAGE = 4096
_PAGES_A_ROW = 250


class Log:
    """A writer whose log a checkpointer follows."""

    def __init__(self, folder: Path) -> None:
        self.folder = DataFolder(folder)
        self.writer = open_for_ingest(self.folder)
        self.writer.execute("CREATE TABLE bulk (body BLOB)")
        self.checkpointer = Checkpointer(self.folder, self.writer)

    def grow(self, pages: int) -> None:
        """Commit rows that fill so many pages of the log, or a few more."""
        for _ in range(0, pages, _PAGES_A_ROW):
            self.writer.execute("INSERT INTO bulk VALUES (?)", (os.urandom(_PAGE * _PAGES_A_ROW),))

    @property
    def file_pages(self) -> int:
        return self.folder.database.stat().st_size // _PAGE

    @property
    def log_pages(self) -> int:
        return self.folder.database.with_name("hansard.db-wal").stat().st_size // _PAGE

    def close(self) -> None:
        self.checkpointer.close()
        self.writer.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with closing(Log(tmp_path)) as opened:
        yield opened


@contextmanager
def files_no_larger_than(size_bytes: int) -> Iterator[None]:
    """Let writes past this size fail, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_log_is_taken_in_while_a_transaction_is_being_written(log: Log) -> None:
    log.grow(3_000)
    assert not log.checkpointer.is_due()
    log.grow(1_500)
    before = log.file_pages
    log.writer.execute("BEGIN IMMEDIATE; INSERT INTO bulk VALUES (x'01')")

    assert log.checkpointer.is_due()
    log.checkpointer.run()

    assert before < 1_000
    assert log.file_pages >= 4_500
    assert not log.checkpointer.is_due()
    log.writer.execute("COMMIT")


def test_a_log_that_is_in_the_file_is_begun_anew(log: Log) -> None:
    log.grow(4_500)
    log.checkpointer.run()

    log.grow(4_500)

    assert log.log_pages < 6_000
    assert log.checkpointer.is_due()


def test_a_log_that_nobody_takes_in_is_finished_by_a_commit(log: Log) -> None:
    log.grow(40_000)

    assert log.log_pages < 18_000
    assert log.writer.execute("SELECT count(*) FROM bulk").get == 40_000 // _PAGES_A_ROW


def test_a_decision_takes_in_nothing_of_ingest_unless_the_log_is_long(log: Log) -> None:
    with closing(open_for_accountability(log.folder)) as deciding:
        deciding.execute("CREATE TABLE decision (at INTEGER)")
        log.grow(6_000)
        before = log.file_pages
        deciding.execute("INSERT INTO decision VALUES (1)")
        assert log.file_pages == before

        log.grow(9_700)
        deciding.executemany("INSERT INTO decision VALUES (?)", [(at,) for at in range(400)])
        assert log.file_pages >= 15_000


def test_a_reader_delays_the_checkpoint_and_loses_nothing(log: Log) -> None:
    with closing(open_reader(log.folder)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM bulk").get == 0
        log.grow(20_000)
        log.checkpointer.run()
        assert reader.execute("SELECT count(*) FROM bulk").get == 0
        assert log.log_pages >= 20_000
        reader.execute("COMMIT")

    log.grow(500)
    log.grow(500)
    assert log.log_pages < 22_000
    assert log.writer.execute("PRAGMA integrity_check").get == "ok"


def test_a_checkpoint_that_fails_is_told_and_tried_again(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    log.grow(4_500)
    with caplog.at_level(logging.WARNING), files_no_larger_than(1 << 20):
        log.checkpointer.run()

    assert "could not be taken into the database" in caplog.text
    log.grow(4_500)
    log.checkpointer.run()
    assert log.file_pages >= 9_000
    assert log.writer.execute("PRAGMA integrity_check").get == "ok"


def test_a_commit_may_finish_the_log_while_the_other_is_at_it(log: Log) -> None:
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            log.checkpointer.run()

    thread = threading.Thread(target=run)
    thread.start()
    log.grow(40_000)
    done.set()
    thread.join()

    assert log.log_pages < 20_000
    assert log.writer.execute("SELECT count(*) FROM bulk").get == 40_000 // _PAGES_A_ROW
    assert log.writer.execute("PRAGMA integrity_check").get == "ok"
