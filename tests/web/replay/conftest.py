"""Fixtures of the replay's tests: one stage a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.replay.stage import Stage, module_staging


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A store with a server and a provider; tests add runs of their own."""
    with module_staging(tmp_path_factory.mktemp("replay") / "data") as made:
        yield made


@pytest.fixture(autouse=True)
def quiet_provider(stage: Stage) -> None:
    """Each test counts what the provider gets from nothing."""
    stage.provider.received.clear()
    stage.provider.replies.clear()
