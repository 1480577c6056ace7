"""Fixtures of gates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.instrumentation.gating.gates import Desk, desk


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path / "data") as made:
        yield made
