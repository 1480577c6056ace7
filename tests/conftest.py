"""Settings and fixtures of all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.collector.ingesting import Ingesting

# Time is no part of a property: tests share their machine with others.
settings.register_profile("hansard", deadline=None)
settings.load_profile("hansard")


@pytest.fixture
def ingesting(tmp_path: Path) -> Iterator[Ingesting]:
    """A running pipeline that keeps everything, on a fresh store."""
    made = Ingesting(tmp_path / "data")
    yield made
    made.close()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name bytes by their length: compressed ones hold the time, and names must not change."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None
