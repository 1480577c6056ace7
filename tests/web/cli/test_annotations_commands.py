"""hansard annotations: note, score, tag, list, withdraw, export; and what moves with a store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.store.maker import span_id
from tests.web.cli.conftest import Cli
from tests.web.makers import RunMaker


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[RunMaker]:
    maker = RunMaker(tmp_path / "data")
    yield maker
    maker.close()


@pytest.fixture
def store(anywhere: Cli, runs: RunMaker) -> Cli:
    """Run a command on a store of runs."""

    def run(*arguments: str) -> Result:
        return anywhere(*arguments, HANSARD_DATA=str(runs.folder.path))

    return run


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def items(store: Cli, *more: str) -> list[Any]:
    found: list[Any] = told(store("annotations", "list", *more, "--json"))["items"]
    return found


def test_notes_scores_and_tags_are_written_listed_and_withdrawn(store: Cli, runs: RunMaker) -> None:
    run = runs.run()
    step = f"{run}-{span_id('chat gpt-4o-mini').hex()}"

    note = store("annotations", "note", run, "odd", "--by", "noor", "--expected", "42")
    store("annotations", "score", step, "correctness", "0.9", "--why", "nearly", "--source", "llm")
    word = told(store("annotations", "score", run, "tone", "pass", "--json"))["annotation"]
    tag = told(store("annotations", "tag", run, "Golden", "--json"))["annotation"]

    assert note.stdout.startswith(f"note on run {run}")
    assert word["score"] == {"value": None, "label": "pass"}
    assert [one["kind"] for one in items(store, run)] == ["tag", "score", "score", "note"]
    (number,) = items(store, step)
    assert (number["name"], number["source"], number["explanation"]) == (
        "correctness", "llm", "nearly",
    )  # fmt: skip
    table = store("annotations", "list", "--kind", "score").stdout
    assert "correctness 0.9" in table
    assert "tone pass" in table
    gone = store("annotations", "withdraw", tag["annotation_id"][-8:], "--reason", "no")
    again = store("annotations", "withdraw", tag["annotation_id"])
    assert gone.stdout == f"withdrawn {tag['annotation_id']}\n"
    assert again.exit_code == 1
    assert "was withdrawn already" in again.output
    assert len(items(store)) == 3
    assert len(items(store, "--all")) == 4


def test_runs_are_listed_by_tag_and_score(store: Cli, runs: RunMaker) -> None:
    first, second = runs.runs(["one", "two"])
    store("annotations", "tag", first, "golden")
    store("annotations", "score", second, "correctness", "0.2")

    def found(*wanted: str) -> list[str]:
        return [one["run_id"] for one in told(store("runs", "list", *wanted, "--json"))["items"]]

    assert found("--tag", "golden") == [first]
    assert found("--score", "correctness<0.5") == [second]
    assert found("--tag", "golden", "--score", "correctness") == []
    shown = store("runs", "show", first).stdout
    assert "golden" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tag", "{run}", "<x>"), "a tag has 1 to 64"),
        (("note", "{run}", " "), "text"),
        (("score", "{run}", "a:b", "1"), "none of : < > ="),
        (("note", "abcdef01", "x"), "no run"),
        (("withdraw", "abcdef01"), "no annotation"),
        (("export", "--score", "a>"), "write name"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_1(
    store: Cli, runs: RunMaker, arguments: tuple[str, ...], words: str
) -> None:
    run = runs.run()
    refused = store("annotations", *(one.format(run=run) for one in arguments))

    assert refused.exit_code == 1
    assert words in refused.output
    assert "Traceback" not in refused.output


def test_marked_runs_and_steps_are_a_data_set(store: Cli, runs: RunMaker, tmp_path: Path) -> None:
    run, other = runs.runs(["one", "two"])
    store("annotations", "tag", run, "golden")
    store("annotations", "note", other, "x", "--expected", "42")
    file = tmp_path / "set.jsonl"

    everything = store("annotations", "export").stdout.splitlines()
    store("annotations", "export", "--tag", "golden", "-o", str(file))

    assert len(everything) == 2
    (line,) = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    assert (line["run_id"], line["tags"], line["role"]) == (run, ["golden"], "run")


def test_an_export_that_is_imported_brings_what_was_said(
    store: Cli, anywhere: Cli, runs: RunMaker, tmp_path: Path
) -> None:
    run = runs.run()
    store("annotations", "tag", run, "golden")
    store("annotations", "score", run, "correctness", "0.2", "--by", "noor")
    store("annotations", "score", run, "correctness", "0.9", "--by", "noor")
    whole, one_run = tmp_path / "all.jsonl", tmp_path / "run.json"
    store("export", "-o", str(whole))
    store("runs", "export", run, "-o", str(one_run))
    before = [{**one, "origin": ""} for one in items(store, "--all")]

    for file in (whole, one_run):
        data = tmp_path / file.stem

        def there(*arguments: str, data: Path = data) -> Result:
            return anywhere(*arguments, HANSARD_DATA=str(data))

        first = told(there("import", str(file), "--json"))
        second = told(there("import", str(file), "--json"))
        assert (first["annotations"], second["annotations"]) == (3, 0)
        assert first["problems"] == second["problems"] == []
        found = [{**one, "origin": ""} for one in items(there, "--all")]
        assert sorted(found, key=str) == sorted(before, key=str)
        told(there("rebuild", "--json"))
        assert len(items(there, "--all")) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("note", "{run}", "half \udcff"), "unicode"),
        (("note", "{run}", "odd", "--by", "half \udcff"), "unicode"),
        (("withdraw", "{note}", "--reason", ""), "reason: String should have at least 1 character"),
        (("withdraw", "{note}", "--by", "x" * 300), "by: String should have at most 256"),
        (("list", "--name", "half \udcff"), "a text that was given is not UTF-8"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_a_line(
    store: Cli, runs: RunMaker, arguments: tuple[str, ...], said: str
) -> None:
    run = runs.run()
    note = told(store("annotations", "note", run, "odd", "--json"))["annotation"]["annotation_id"]

    refused = store("annotations", *(one.format(run=run, note=note) for one in arguments))

    assert refused.exit_code in (1, 2)
    [line] = refused.stderr.strip().splitlines()
    assert line.startswith("Error: ")
    assert said in line
