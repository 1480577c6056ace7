"""A server marks memory that is past its time, with or without limits of its own."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.memory.service import MemoryService
from hansard_web.app.old_runs import Limits, janitor

DEADLINE_S = 60.0


@pytest.mark.covers("ME-17")
def test_what_is_past_its_time_is_marked_by_a_server_that_runs(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    connection = open_for_ingest(folder)
    book = MemoryService(folder, clock=lambda: time.time_ns() - 3600 * 10**9)
    told = {"writer": "app", "memory_type": "fact", "subject": "s", "content": "c", "ttl_s": 60}
    book.write_json({**told, "namespace": {"project": "p"}})
    book.close()

    waited, deadline = threading.Event(), time.monotonic() + DEADLINE_S
    with janitor(folder, Limits()).working():
        while connection.execute("SELECT state FROM memory").get == "current":
            assert time.monotonic() < deadline
            waited.wait(0.01)

    assert connection.execute("SELECT state FROM memory").get == "expired"
    kinds = connection.execute("SELECT kind FROM memory_access ORDER BY id").fetchall()
    assert kinds == [("write",), ("expire",)]
    connection.close()
