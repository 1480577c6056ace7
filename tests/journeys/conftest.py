"""Fixtures of the journeys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.demo_story import Story
from tests.journeys.processes import demonstrating


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """One demo for all who only read: it takes eight seconds, and each worker has its own."""
    data = tmp_path_factory.mktemp("demo") / "data"
    with demonstrating(data) as story:
        yield story
    assert (data / "hansard.db").exists()  # it was named, so it stays
