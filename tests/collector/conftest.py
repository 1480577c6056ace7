"""Fixtures of the collector's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.ingesting import Ingesting


@pytest.fixture
def ingesting(tmp_path: Path) -> Iterator[Ingesting]:
    """A running pipeline that keeps everything, on a fresh store."""
    made = Ingesting(tmp_path / "data")
    yield made
    made.close()
