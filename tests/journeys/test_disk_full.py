"""A full disk: senders are told to come again, nothing acknowledged is lost, and it heals."""

from __future__ import annotations

import json
import os
import resource
import urllib.error
from pathlib import Path

import pytest

from hansard_store.database.data_folder import DataFolder
from hansard_store.verification.integrity import verify_store
from tests.collector.ingesting import span, traces
from tests.journeys.processes import Serving, count_spans, serving
from tests.journeys.senders import post


def let_files_grow_to(server: Serving, size_bytes: int) -> None:
    """Set how large a file the server may write: past it a write fails as on a full disk."""
    _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size_bytes, hard))


def noise(number: int, *, size: int = 60_000) -> dict[str, str]:
    return {"input.value": os.urandom(size // 2).hex() + str(number)}


@pytest.mark.covers("CO-10")
def test_a_full_disk_is_told_as_busy_and_what_was_acknowledged_stays(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert post(server, traces([span(1)])).status == 200
        wal = tmp_path / "hansard.db-wal"
        let_files_grow_to(server, wal.stat().st_size + 400_000)
        acknowledged, refused = 1, 0
        for number in range(2, 30):
            answer = post(server, traces([span(number, attributes=noise(number))]))
            if answer.status == 200:
                acknowledged += 1
            else:
                assert (answer.status, answer.retry_after) == (503, "1")
                refused += 1

        assert acknowledged > 1
        assert refused > 3
        assert count_spans(tmp_path) == acknowledged
        let_files_grow_to(server, 4096)  # no row at all
        with pytest.raises(urllib.error.HTTPError, match="503"):
            server.get("/healthz")

        let_files_grow_to(server, resource.RLIM_INFINITY)
        for number in range(2, 30):
            answer = post(server, traces([span(number, attributes=noise(number, size=9_000))]))
            assert answer.status == 200
        assert server.get("/healthz")
        ledger = json.loads(server.get("/v1/ledger"))["spans"]
        assert server.stop() == 0

    assert count_spans(tmp_path) == 29
    assert ledger["stored"] == 29
    assert verify_store(DataFolder(tmp_path)).findings == []


def test_a_server_that_ends_on_a_full_disk_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        for number in range(1, 9):
            assert post(server, traces([span(number, attributes=noise(number))])).status == 200
        let_files_grow_to(server, 4096)
        assert post(server, traces([span(99, attributes=noise(99))])).status == 503
        assert server.stop() in (0, 1)

    assert count_spans(tmp_path) == 8
    with serving(tmp_path) as server:
        assert post(server, traces([span(99)])).status == 200
    assert verify_store(DataFolder(tmp_path)).findings == []
