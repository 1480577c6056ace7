"""A scan's store and source, fresh for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.scanning.hacker_news import hacker_news
from tests.collector.scanning.scanning_maker import Scanning


@pytest.fixture
def scanning(tmp_path: Path) -> Iterator[Scanning]:
    with hacker_news() as server:
        made = Scanning(tmp_path / "data", server)
        yield made
        made.close()
