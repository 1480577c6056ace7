"""The command line as a whole: help, examples, laziness."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from hansard_web.cli import COMMANDS, CommandEntry, ServerCommand
from tests.journeys.processes import environment
from tests.web.cli.conftest import Cli


def _all() -> Iterator[tuple[str, click.Command]]:
    for entry in COMMANDS:
        command = ServerCommand(entry).load()
        yield entry.name, command
        if isinstance(command, click.Group):
            yield from ((f"{entry.name} {name}", verb) for name, verb in command.commands.items())


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_the_short_help_is_how_the_long_one_begins(entry: CommandEntry) -> None:
    command = ServerCommand(entry).load()

    assert (command.help or "").splitlines()[0] == ServerCommand(entry).help


VERBS = {name: command for name, command in _all() if not isinstance(command, click.Group)}


@pytest.mark.parametrize("name", VERBS)
def test_every_command_has_help_with_one_example(name: str) -> None:
    command = VERBS[name]

    examples = [line for line in (command.help or "").splitlines() if "Example: " in line]

    assert len(examples) == 1
    assert examples[0].strip().startswith(f"Example: hansard {name}")


def test_help_is_printed_for_every_command(anywhere: Cli) -> None:
    for name, _ in _all():
        ended = anywhere(*name.split(), "--help")
        assert ended.exit_code == 0
        assert "Usage: hansard" in ended.stdout


@pytest.mark.slow
def test_the_list_of_commands_imports_none_of_them() -> None:
    code = (
        "import sys; from hansard._cli.group import cli; from hansard_web.cli import commands;"
        "commands(cli);"
        "print(*[m for m in ('apsw', 'fastapi', 'grpc', 'rich', 'uvicorn') if m in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True
    )

    assert ended.stdout.strip() == ""


LIGHT = (
    "open", "tail", "runs", "search", "usage", "approvals", "events", "repl", "transcripts",
    "payload", "doctor", "import", "export", "backup", "restore", "verify", "rebuild", "gc",
    "detect", "tasks",
)  # fmt: skip


@pytest.mark.slow
def test_commands_that_need_the_store_alone_load_no_server() -> None:
    code = (
        "import sys; from hansard_web.cli import COMMANDS, ServerCommand;"
        f"[ServerCommand(one).load() for one in COMMANDS if one.name in {LIGHT!r}];"
        "heavy = ('fastapi', 'starlette', 'grpc', 'jinja2', 'uvicorn', 'opentelemetry.sdk');"
        "print(*[m for m in heavy if m in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True
    )

    assert ended.stdout.strip() == ""


def test_an_unknown_command_is_wrong_use(anywhere: Cli) -> None:
    ended = anywhere("frobnicate")

    assert ended.exit_code == 2
