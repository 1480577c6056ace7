"""A store that the demo's agents filled, and commands run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from hansard_web.cli import commands
from tests.demo_store import demo_store

Cli = Callable[..., Result]


@pytest.fixture(scope="session")
def demo_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder that `hansard demo` leaves: 16 runs of six agents and a heartbeat's."""
    return demo_store(tmp_path_factory)


@pytest.fixture
def anywhere() -> Cli:
    """Run a command that names its own store, or none."""
    group = click.Group("hansard")
    commands(group)

    def run(*arguments: str, **environment: str) -> Result:
        clean: dict[str, str | None] = dict.fromkeys(
            ("HANSARD_DATA", "HANSARD_TOKEN", "HANSARD_CONFIG")
        )
        return CliRunner().invoke(group, arguments, env=clean | environment)

    return run


@pytest.fixture
def cli(anywhere: Cli, demo_data: Path) -> Cli:
    """Run a command on the demo's store."""

    def run(*arguments: str) -> Result:
        return anywhere(*arguments, HANSARD_DATA=str(demo_data))

    return run
