"""The project as a stranger finds it: one command that checks, one that tests, one for CI."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def planned(target: str) -> list[str]:
    """Return the commands that make would run, without running them."""
    ended = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return [line.partition("/bin/")[2] for line in ended.stdout.splitlines() if "/bin/" in line]


@pytest.mark.covers("EX-08")
def test_one_command_checks_formatting_lint_and_types() -> None:
    assert {"ruff format --check .", "ruff check .", "mypy"} <= set(planned("check"))


@pytest.mark.covers("EX-08")
def test_one_command_checks_and_runs_every_test() -> None:
    commands = planned("test")

    assert {"ruff format --check .", "mypy"} <= set(commands)
    assert any(command.startswith("pytest ") for command in commands)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert settings["mypy"]["strict"] is True
    assert settings["pytest"]["ini_options"]["testpaths"] == ["tests"]
    assert "error" in settings["pytest"]["ini_options"]["filterwarnings"]


@pytest.mark.covers("EX-08")
def test_the_file_for_ci_runs_the_same_commands() -> None:
    file = ROOT / ".ci" / "run"
    subprocess.run(["sh", "-n", str(file)], check=True, timeout=10)

    assert file.stat().st_mode & 0o100
    assert "make test" in file.read_text().splitlines()
