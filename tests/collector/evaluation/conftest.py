"""A store that is evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.evaluation.evaluating import Evaluating


@pytest.fixture
def evaluating(tmp_path: Path) -> Iterator[Evaluating]:
    made = Evaluating(tmp_path / "data")
    yield made
    made.close()
