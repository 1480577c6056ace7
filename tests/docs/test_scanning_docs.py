"""The page on scanning does what it says: its commands are run, against a local source."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hansard_collector.scanning import SOURCES
from hansard_web.cli import commands
from tests.collector.scanning.hacker_news import hacker_news
from tests.docs.test_writing import ran
from tests.store.empty import empty_store

PAGE = (Path(__file__).parents[2] / "docs" / "scanning.md").read_text(encoding="utf-8")


def test_the_commands_run_and_leave_a_note(tmp_path: Path) -> None:
    folder = empty_store(tmp_path / "data")
    group = click.Group("hansard")
    commands(group)
    [lines] = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

    with hacker_news() as server:
        server.add(11, "Full-text search in PostgreSQL")
        for line in lines.splitlines():
            here = f" --url {server.address}" if "--outbound" in line else ""
            told = CliRunner().invoke(
                group, shlex.split(line + here)[1:], env={"HANSARD_DATA": str(folder.path)}
            )
            assert told.exit_code == 0, told.output

    assert "scanner:hackernews" in told.stdout


@pytest.mark.slow
@pytest.mark.covers("IN-09")
def test_a_source_and_a_classifier_of_ones_own_work_as_the_page_says() -> None:
    [(code, output)] = re.findall(
        r"<!-- run -->\n```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL
    )

    assert ran(code) == output


def test_the_page_names_every_source() -> None:
    for name in SOURCES:
        assert f"`--source {name}`" in PAGE
