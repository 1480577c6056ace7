"""Clients that were run against a provider of our own, from the bytes they sent to the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard_collector.pipeline.requests import Signal
from tests.collector.clients.scoring import CLIENTS, facts, send
from tests.collector.ingesting import Ingesting

FOLDERS = sorted(folder for folder in CLIENTS.iterdir() if folder.is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_fact_that_a_client_tells_is_shown(ingesting: Ingesting, folder: Path) -> None:
    send(ingesting, folder)

    wrong = [fact for fact in facts(ingesting, folder) if not fact.is_right]
    assert wrong == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_requests_in_another_order_show_the_same(
    ingesting: Ingesting, tmp_path: Path, folder: Path
) -> None:
    send(ingesting, folder)
    backwards = Ingesting(tmp_path / "backwards")
    for path in sorted(folder.glob("*.binpb"), reverse=True):
        backwards.send_bytes(Signal(path.suffixes[-2].removeprefix(".")), path.read_bytes())

    told = [fact for fact in facts(backwards, folder) if not fact.is_right]
    backwards.close()
    assert told == []
