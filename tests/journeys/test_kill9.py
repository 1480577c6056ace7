"""kill -9 at any moment: what was acknowledged is there, once, and the store is whole."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_store.database.data_folder import DataFolder
from hansard_store.verification.integrity import verify_store
from tests.collector.ingesting import span, traces
from tests.journeys.processes import serving
from tests.journeys.senders import identities, post, under_load


def stored(data: Path) -> list[tuple[bytes, bytes]]:
    connection = apsw.Connection(str(data / "hansard.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows: Any = connection.execute("SELECT trace_id, span_id FROM span").fetchall()
        return list(rows)
    finally:
        connection.close()


@pytest.mark.covers("CO-06", "ST-09")
@pytest.mark.parametrize("after_requests", [1, 13, 60, 200])
def test_what_was_acknowledged_survives_a_kill_under_load(
    tmp_path: Path, after_requests: int
) -> None:
    with serving(tmp_path) as server, under_load(server) as acknowledged:
        acknowledged.wait_for(after_requests)
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL

    found = stored(tmp_path)
    assert acknowledged.spans <= set(found)
    assert len(found) == len(set(found))
    assert verify_store(DataFolder(tmp_path)).findings == []


@pytest.mark.covers("CO-05")
def test_a_killed_server_starts_again_at_once_and_goes_on(tmp_path: Path) -> None:
    everything: set[tuple[bytes, bytes]] = set()
    for _ in range(3):
        with serving(tmp_path) as server, under_load(server) as acknowledged:
            assert server.get("/healthz")
            acknowledged.wait_for(20)
            server.stop(signal.SIGKILL)
        everything |= acknowledged.spans

    with serving(tmp_path) as server:
        request = traces([span(1)])
        assert post(server, request).status == 200
        assert everything | identities(request) <= set(stored(tmp_path))
        assert server.stop() == 0

    assert not (tmp_path / "hansard.db-wal").exists()
    assert verify_store(DataFolder(tmp_path)).findings == []


@pytest.mark.covers("CO-07")
def test_what_was_not_acknowledged_is_sent_again_and_stored_once(tmp_path: Path) -> None:
    requests = [traces(span(n, 1) for n in range(at, at + 50)) for at in range(1, 1001, 50)]
    with serving(tmp_path) as server:
        for request in requests[:7]:
            assert post(server, request).status == 200
        server.stop(signal.SIGKILL)

    with serving(tmp_path) as server:
        for request in requests:
            assert post(server, request).status == 200

    found = stored(tmp_path)
    assert len(found) == len(set(found)) == 1000
