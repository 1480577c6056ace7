"""`hansard diff`: what differs, for people, programs and scripts that ask only whether."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hansard_web.cli.tables import Column, print_table
from hansard_web.diff.cli import diff
from hansard_web.runs.cli import runs
from tests.web.comparisons import LEFT, RIGHT, TALK, World, step


def run(world: World, *arguments: str) -> Result:
    return CliRunner().invoke(diff, [*arguments, "--data", str(world.folder.path)])


@pytest.mark.covers("DF-01", "DF-12")
def test_two_runs_are_told_apart_and_the_exit_code_says_so(world: World) -> None:
    ended = run(world, LEFT[:8], RIGHT[:8])
    assert ended.exit_code == 1
    assert "487 more, +29%" in ended.output
    assert "First difference at step 3, execute_tool search_code: only B has it." in ended.output
    assert "budget: budget, tokens 2,600 → 3,400" in ended.output
    assert "[-render_total-]" in ended.output
    assert "$[0].arguments.path: 'invoice.py' → 'money.py'" in ended.output


@pytest.mark.parametrize(
    "pair", [(LEFT, LEFT), (step(TALK, 3), step(TALK, 3))], ids=["runs", "steps"]
)
def test_nothing_differs_is_exit_zero(world: World, pair: tuple[str, str]) -> None:
    ended = run(world, *pair)
    assert ended.exit_code == 0, ended.output
    assert "Nothing differs." in ended.output


@pytest.mark.parametrize(
    "pair",
    [("00000000", LEFT), (LEFT, step(RIGHT, 3)), (f"{LEFT}-", step(RIGHT, 3)), ("", "")],
    ids=["unknown", "a run and a step", "ambiguous", "empty"],
)
def test_what_cannot_be_compared_is_exit_two_and_one_line(
    world: World, pair: tuple[str, str]
) -> None:
    ended = run(world, *pair)
    assert ended.exit_code == 2
    assert ended.output.startswith("Error: ")
    assert ended.output.count("\n") == 1


def test_no_store_is_exit_two(tmp_path: Path) -> None:
    ended = CliRunner().invoke(diff, ["a", "b", "--data", str(tmp_path / "none")])
    assert ended.exit_code == 2
    assert "no store" in ended.output


@pytest.mark.parametrize("pair", [(LEFT, RIGHT), (step(LEFT, 3), step(RIGHT, 3))])
def test_programs_get_what_the_api_says(world: World, pair: tuple[str, str]) -> None:
    ended = run(world, *pair, "--json")
    kind = "steps" if "-" in pair[0] else "runs"
    every = "?limit=500" if kind == "runs" else ""
    said = world.http.get(f"/v1/diff/{kind}/{pair[0]}/{pair[1]}{every}").json()
    del said["schema_version"]
    assert ended.exit_code == 1
    assert json.loads(ended.output) == said


def test_a_run_is_written_as_one_html_file(world: World, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    arguments = ["export", RIGHT, "--format", "html", "-o", str(file)]
    ended = CliRunner().invoke(runs, [*arguments, "--data", str(world.folder.path)])
    assert ended.exit_code == 0, ended.output
    assert file.read_text("utf-8").startswith("<!doctype html>")


def test_control_characters_do_not_reach_the_terminal(world: World) -> None:
    assert "\x1b" not in run(world, LEFT, RIGHT, "--all").output


def test_a_long_cause_takes_no_room_from_the_other_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    columns = (Column("ITEM", may_cut=True), Column("A"), Column("BECAUSE", may_cut=True))

    print_table(columns, [("CONVENTIONS.md", "not a candidate", "why " * 200)])

    line = capsys.readouterr().out.splitlines()[1]
    assert line.startswith("CONVENTIONS.md  not a candidate  why why")
    assert line.rstrip().endswith("…")
