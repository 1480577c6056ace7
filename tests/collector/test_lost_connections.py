"""Ingest goes on with another connection where the disk failed while a transaction was undone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hansard_collector.errors import StoreBusy
from tests.collector.ingesting import Ingesting, span, traces
from tests.store.failing_disk import failing_disk

MORE_THAN_THE_CACHE = 24_000_000  # bytes: SQLite writes to the disk before the commit


def test_senders_are_asked_to_try_again_and_the_next_transaction_works(tmp_path: Path) -> None:
    text = random.Random(1).randbytes(MORE_THAN_THE_CACHE // 2).hex()
    large = traces([span(2, attributes={"text": text})])
    with failing_disk() as disk:
        ingesting = Ingesting(tmp_path)
        assert ingesting.send(traces([span(1)])).accepted == 1

        disk.is_full = True
        with pytest.raises(StoreBusy):
            ingesting.send(large)
        assert disk.is_gone
        with pytest.raises(StoreBusy):
            ingesting.send(traces([span(3)]))
        disk.is_full = disk.is_gone = False

        assert ingesting.send(large).accepted == 1
        assert ingesting.send(traces([span(3)])).accepted == 1
        assert ingesting.one("SELECT count(*) FROM span") == 3
        assert ingesting.one("PRAGMA integrity_check") == "ok"
        ingesting.close()
