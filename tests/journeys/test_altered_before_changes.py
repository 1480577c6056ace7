"""Rows altered with `sqlite3` between two runs of a server, which then changes or removes them."""

from __future__ import annotations

import shutil
import sqlite3
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from hansard_store.database.data_folder import DataFolder
from hansard_store.verification.integrity import verify_store
from tests.collector.ingesting import TRACE, span, traces
from tests.journeys.processes import Serving, hansard, serving
from tests.store.by_hand import triggers_dropped

OTHER = bytes([9]) * 16


def _send(server: Serving, *, duration_s: float, trace_id: bytes = TRACE) -> None:
    body = traces([span(1, duration_s=duration_s, trace_id=trace_id)]).SerializeToString()
    headers = {"content-type": "application/x-protobuf"}
    request = urllib.request.Request(f"{server.http}/v1/traces", data=body, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200


def _resend(server: Serving) -> None:
    _send(server, duration_s=5)  # it ends later, and takes the place of the first report


def _delete_other_run(server: Serving) -> None:
    ended = hansard("runs", "delete", OTHER.hex(), "--yes", "--data", str(server.data))
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs of a span each, sealed."""
    data = tmp_path_factory.mktemp("sealed") / "data"
    with serving(data) as server:
        for trace_id in (TRACE, OTHER):
            _send(server, duration_s=1, trace_id=trace_id)
    assert verify_store(DataFolder(data)).seals.unsealed == 0
    return data


@pytest.mark.covers("RC-30")
@pytest.mark.parametrize("change", [_resend, _delete_other_run])
def test_a_store_that_nobody_altered_stays_sound(
    sealed: Path, tmp_path: Path, change: Callable[[Serving], None]
) -> None:
    shutil.copytree(sealed, tmp_path / "data")
    with serving(tmp_path / "data") as server:
        change(server)

    ended = hansard("verify", "--data", str(tmp_path / "data"))

    assert ended.returncode == 0, ended.stdout


@pytest.mark.covers("RC-30")
@pytest.mark.parametrize(
    ("table", "sql", "change"),
    [
        ("span_record", "UPDATE span_record SET received_ns = 1 WHERE span = 1", _resend),
        ("span", "UPDATE span SET resource = 0 WHERE id = 1", _resend),
        (
            "span",  # a span of one run is put into another one, which is deleted
            "UPDATE span SET span_id = x'0000000000000002', trace_id = "
            "(SELECT trace_id FROM span WHERE id = 2), run = 2 WHERE id = 1",
            _delete_other_run,
        ),
        ("ledger", "DELETE FROM ledger", _resend),
    ],
    ids=["record replaced", "span replaced", "span deleted", "ledger removed"],
)
def test_what_was_altered_is_named_after_the_server_changed_it(
    sealed: Path, tmp_path: Path, table: str, sql: str, change: Callable[[Serving], None]
) -> None:
    shutil.copytree(sealed, tmp_path / "data")
    plain = sqlite3.connect(tmp_path / "data" / "hansard.db")
    with triggers_dropped(plain):
        assert plain.execute(sql).rowcount
    plain.commit()
    plain.close()

    with serving(tmp_path / "data") as server:
        change(server)
    ended = hansard("verify", "--data", str(tmp_path / "data"))

    assert ended.returncode == 1
    assert table in {one.table for one in verify_store(DataFolder(tmp_path / "data")).findings}
    assert table in ended.stdout
