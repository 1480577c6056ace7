"""Fixtures of the store's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.maker import StoreMaker
from tests.store.plans import QueryPlans


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreMaker]:
    """A fresh store on disk."""
    maker = StoreMaker(tmp_path / "data")
    yield maker
    maker.close()


@pytest.fixture
def plans() -> QueryPlans:
    """Watches how SQLite runs what is asked in a block."""
    return QueryPlans()
