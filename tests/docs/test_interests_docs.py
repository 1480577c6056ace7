"""The page on interests says what is so: its commands run, its settings load."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bench.quality.interests import groups
from hansard_store.memory.service import MemoryService
from hansard_web.app.config import CONFIG_FILE, judges_of, load_config
from hansard_web.cli import commands
from tests.store.empty import empty_store

PAGE = (Path(__file__).parents[2] / "docs" / "interests.md").read_text(encoding="utf-8")


def test_the_commands_run_and_print_what_the_page_shows(tmp_path: Path) -> None:
    folder = empty_store(tmp_path / "data")
    memory = MemoryService(folder)
    told = {"writer": "app", "namespace": {"project": "prophet"}}
    [article] = [one for one in groups() if one.name == "article-eight"]
    for one in reversed(article.entries):
        memory.write_json(
            {**told, "memory_type": one.memory_type, "subject": one.subject, "content": one.content}
        )
    for number in range(3):
        diagnostic = {"memory_type": "note", "subject": f"s{number}", "content": "error trends"}
        memory.write_json({**told, **diagnostic, "metadata": {"origin": "diagnostic"}})
    memory.close()
    group = click.Group("hansard")
    commands(group)
    lines = re.findall(r"^hansard (.*)$", PAGE, re.MULTILINE)

    shown = []
    for line in lines:
        ran = CliRunner().invoke(group, shlex.split(line), env={"HANSARD_DATA": str(folder.path)})
        assert ran.exit_code == 0, ran.output
        shown.append(ran.stdout)

    [summary] = re.findall(r"^8 entries read.*$", PAGE, re.MULTILINE)
    assert summary in shown[1]
    for topic in ("SQLite migration", "contradiction detection"):
        assert topic in shown[2]


@pytest.mark.covers("IN-10")
def test_the_settings_of_the_page_choose_what_it_says(tmp_path: Path) -> None:
    [settings] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert tomllib.loads(settings)
    (tmp_path / CONFIG_FILE).write_text(settings)

    judges = judges_of(load_config({"data": str(tmp_path)}, {}))

    assert judges.for_task("topic").name == "openai_compatible:gemma3:1b"
    assert judges.for_task("irreversible").name == "offline/1"
    assert judges.need_embedder().name == "wordllama/1"
