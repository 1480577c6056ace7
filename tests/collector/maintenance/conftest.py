"""A store to maintain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.maintenance.maintaining import Upkeep


@pytest.fixture
def upkeep(tmp_path: Path) -> Iterator[Upkeep]:
    made = Upkeep(tmp_path)
    yield made
    made.close()
