"""Busy stores: a lock held by another process, two writers at once, and exporters that retry."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import apsw
import pytest
from opentelemetry.sdk.trace.export import SpanExporter

from hansard_store.database.data_folder import DataFolder
from hansard_store.verification.integrity import verify_store
from tests.collector.ingesting import span, traces
from tests.journeys.processes import (
    Serving,
    count_spans,
    export,
    grpc_exporter,
    http_exporter,
    serving,
    spans,
)
from tests.journeys.senders import identities, post, under_load
from tests.journeys.test_kill9 import stored


class Lock:
    """The write lock of a store, held by another process than the server's: this one."""

    def __init__(self, data: Path) -> None:
        self._connection = apsw.Connection(str(data / "hansard.db"))
        self._connection.execute("BEGIN IMMEDIATE")

    def release(self) -> None:
        self._connection.execute("ROLLBACK")
        self._connection.close()


@pytest.mark.covers("CO-10")
def test_a_locked_store_is_told_as_busy_within_five_seconds_and_heals(tmp_path: Path) -> None:
    request = traces([span(1)])
    with serving(tmp_path) as server:
        lock = Lock(tmp_path)
        begun = time.monotonic()
        answer = post(server, request)
        waited_s = time.monotonic() - begun

        assert (answer.status, answer.retry_after) == (503, "1")
        assert waited_s < 7  # five, and what a busy machine adds
        lock.release()
        assert post(server, request).status == 200

    assert count_spans(tmp_path) == 1


def _http(server: Serving) -> SpanExporter:
    return http_exporter(server)


def _grpc(server: Serving) -> SpanExporter:
    return grpc_exporter(server)


@pytest.mark.parametrize("exporter", [_http, _grpc])
def test_a_stock_exporter_retries_until_the_store_is_free_and_stores_once(
    tmp_path: Path, exporter: object
) -> None:
    make = _http if exporter is _http else _grpc
    with serving(tmp_path) as server:
        lock = Lock(tmp_path)
        succeeded: list[bool] = []
        sending = threading.Thread(target=lambda: succeeded.append(export(make(server), spans(5))))
        sending.start()
        # Queued behind the exporter's: when this one is refused, so was the exporter's.
        behind = traces([span(1)])
        assert post(server, behind).status == 503
        lock.release()
        sending.join(60)

    assert succeeded == [True]
    # What was told to come again may have been stored a moment after the answer.
    assert len(set(stored(tmp_path)) - set(identities(behind))) == 5


@pytest.mark.covers("CO-15")
def test_two_processes_write_to_one_store_under_load(tmp_path: Path) -> None:
    with (
        serving(tmp_path, command="collector") as one,
        serving(tmp_path, command="collector") as other,
        under_load(one, senders=2) as first,
        under_load(other, senders=2) as second,
    ):
        first.wait_for(40)
        second.wait_for(40)
        shared = traces(span(n, 1) for n in range(1, 30))
        assert post(one, shared).status == post(other, shared).status == 200

    found = stored(tmp_path)
    assert first.spans | second.spans | identities(shared) <= set(found)
    assert len(found) == len(set(found))
    assert verify_store(DataFolder(tmp_path)).findings == []
