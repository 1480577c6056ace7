"""What is taken for a plain command, held against the shells that would run it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hansard_compiler.policy.permitted_commands import parse_permitted, plain_commands, runs_only

FRAGMENTS = [
    "ls", "cat", "rm", "rm -rf x", "-l", "x", " ", " ", "  ", "'", '"', "\\", "|", "||", "&", ";",
    "$(rm)", "`rm`", "(", ")", "{", "}", ",", "\n", "\t", "\r", "$IFS", "~", "*", "?", "[a]", "#",
    "!", "=", "<", ">", "<<", "^", "%", "-", "--", "\u00a0", "\u2028", "\x0b", "\x0c", "é", "if",
    "then", "time", "eval", ".", "/",
]  # fmt: skip
PERMITTED = [parse_permitted("ls"), parse_permitted("cat")]
SHELLS = [shell for shell in ("bash", "dash", "zsh", "sh") if shutil.which(shell)]


class Watched(NamedTuple):
    folder: Path
    programs: Path
    ran: Path


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """Programs that note that they ran, and nothing else to be found."""
    folder = tmp_path_factory.mktemp("shell")
    place = Watched(folder, folder / "programs", folder / "ran")
    place.programs.mkdir()
    for name in ("ls", "cat", "rm"):
        program = place.programs / name
        program.write_text(f'#!/bin/sh\necho {name} >> "{place.ran}"\n')
        program.chmod(0o755)
    return place


def ran(shell: str, line: str, watched: Watched) -> set[str]:
    watched.ran.unlink(missing_ok=True)
    subprocess.run(
        [str(shutil.which(shell)), "-c", line],
        env={"PATH": str(watched.programs)},
        cwd=watched.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
    )
    return set(watched.ran.read_text().split()) if watched.ran.exists() else set()


@pytest.mark.slow
@pytest.mark.covers("PO-17")
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.tuples(
        st.sampled_from(["ls", "ls ", "cat ", "ls|cat ", "'", ""]),
        st.lists(st.sampled_from(FRAGMENTS), max_size=5).map("".join),
        st.sampled_from(["", "'", '"', "|ls"]),
    )
)
def test_what_is_understood_runs_nothing_else_in_any_shell(
    watched: Watched, fragments: tuple[str, str, str]
) -> None:
    line = "".join(fragments)
    if not runs_only(line, PERMITTED):
        return

    for shell in SHELLS:
        assert ran(shell, line, watched) <= {"ls", "cat"}


@pytest.mark.slow
@pytest.mark.parametrize("line", ["ls", "ls -l 'a b' | cat", 'cat "x y"', "'l's", "ls a=b"])
def test_plain_commands_run_as_they_were_understood(line: str, watched: Watched) -> None:
    assert runs_only(line, PERMITTED)
    for shell in SHELLS:
        assert ran(shell, line, watched) == {words[0] for words in plain_commands(line)}


def test_an_entry_of_several_words_permits_that_beginning_only() -> None:
    entry = [parse_permitted("git status")]

    assert runs_only("git status", entry)
    assert runs_only("git status -s", entry)
    assert not runs_only("git", entry)
    assert not runs_only("git push", entry)
    assert not runs_only("git -c x status", entry)


def test_listed_options_permit_no_other() -> None:
    entry = [parse_permitted({"run": "sort", "options": ["-n", "--key"]})]

    assert runs_only("sort -n --key=2 file -", entry)
    for line in ("sort -o out", "sort -no out", "sort -- -o", "sort --ke=2"):
        assert not runs_only(line, entry)
    assert not runs_only([], entry)
