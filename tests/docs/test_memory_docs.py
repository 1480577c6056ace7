"""The page of memory does what it says: its program and its commands are run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import hansard
from hansard_compiler.models.memory import CONFIDENCE, SLOTS
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_web.cli import commands
from hansard_web.memory.api import router

PAGE = (Path(__file__).parents[2] / "docs" / "memory.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.covers("ME-08")
def test_the_program_runs_and_the_second_run_compiles_what_the_first_one_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HANSARD_DATA", str(tmp_path))
    (program,) = blocks("python")

    exec(compile(program, "memory.md", "exec"), {})
    hansard.shutdown()

    assert "include" in capsys.readouterr().out
    connection = open_reader(DataFolder(tmp_path))
    kinds = [row[0] for row in connection.execute("SELECT kind FROM memory_access ORDER BY id")]
    connection.close()
    assert kinds == ["write", "write", "write", "read"]


def test_the_commands_run(tmp_path: Path) -> None:
    from hansard_store.database.connections import open_for_ingest

    open_for_ingest(DataFolder(tmp_path)).close()
    group = click.Group("hansard")
    commands(group)

    for line in "".join(blocks("sh")).splitlines():
        result = CliRunner().invoke(
            group, shlex.split(line)[1:], env={"HANSARD_DATA": str(tmp_path)}
        )
        assert result.exit_code == 0, result.output


def test_every_route_writer_and_slot_is_told() -> None:
    for route in router.routes:
        assert str(getattr(route, "path", "")).replace("memory_id", "id") in PAGE
    for writer, confidence in CONFIDENCE.items():
        assert re.search(rf"\| `{writer}` \| .+ \| {confidence} \|", PAGE)
    for slot in SLOTS:
        assert f"`{slot}`" in PAGE
