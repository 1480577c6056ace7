"""hansard maintain, and hansard memory unsupersede: what programs get of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from tests.web.cli.conftest import Cli

OF = ("--subject", "staging", "--project", "quillbook", "--writer", "app", "--by", "noor")
OLD, NEW = "The port of the staging server is 8080.", "The port of the staging server is 9090."


@pytest.fixture
def store(anywhere: Cli, tmp_path: Path) -> Cli:
    """Run a command on an empty store."""
    open_for_ingest(DataFolder(tmp_path / "data")).close()

    def run(*arguments: str, **environment: str) -> Result:
        return anywhere(*arguments, HANSARD_DATA=str(tmp_path / "data"), **environment)

    return run


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def write(store: Cli, text: str) -> str:
    memory_id: str = told(store("memory", "write", text, *OF, "--json"))["memory"]["memory_id"]
    return memory_id


@pytest.mark.covers("MM-01", "MM-08")
def test_the_command_answers_all_three_operations_as_json(store: Cli) -> None:
    older, newer = write(store, OLD), write(store, NEW)

    dry = told(store("maintain", "--dry-run", "--json"))
    made = told(store("maintain", "--json"))
    again = told(store("maintain", "--json"))

    counts = {
        "contradictions_found": 1, "corrections_linked": 0, "stale_entries": 0,
        "supersessions_applied": 1, "classifier_calls": 1, "review_tasks_opened": 0,
    }  # fmt: skip
    assert (dry["dry_run"], made["dry_run"]) == (True, False)
    for answer in (dry, made):
        assert {name: answer[name] for name in counts} == counts
    (link,) = made["supersessions"]
    assert (link["older"], link["newer"], link["judge"]) == (older, newer, "offline/1")
    assert made["contradictions"]["prefilter_ms"] > 0
    assert (made["corrections"]["embedder"], made["stale"]["days"]) == ("hashed-pieces/1", 30)
    assert again["classifier_calls"] == again["supersessions_applied"] == 0


@pytest.mark.covers("MM-10")
def test_what_is_off_is_skipped_with_its_reason(store: Cli) -> None:
    write(store, OLD)
    write(store, NEW)

    answer = told(store("maintain", "--json", "--classifier", "off", "--embedder", "off"))

    assert [one["part"] for one in answer["skipped"]] == ["contradictions", "corrections"]
    assert answer["supersessions_applied"] == 0


@pytest.mark.covers("MM-12", "MM-05")
def test_history_says_who_decided_and_why_and_an_undo_stands(store: Cli) -> None:
    older = write(store, OLD)
    write(store, NEW)
    shown = store("maintain").stdout

    history = store("memory", "history", older[-8:]).stdout
    undone = told(store("memory", "unsupersede", older[-8:], "--by", "kim", "--reason", "both hold",
                        "--json"))  # fmt: skip
    detail = told(store("memory", "history", older, "--json"))

    assert "another number of the same" in shown
    assert "contradiction, applied: another number of the same (certain) (offline/1" in history
    assert undone["memory"]["state"] == "current"
    (link,) = detail["supersessions"]
    assert (link["state"], link["undone"]["by"], link["undone"]["reason"]) == (
        "undone", "kim", "both hold",
    )  # fmt: skip
    assert store("memory", "unsupersede", older[-8:]).exit_code == 1
    assert len(told(store("memory", "list", "--json"))["items"]) == 2


@pytest.mark.covers("MM-13")
def test_a_write_says_what_it_is_to_the_memory_before(store: Cli) -> None:
    keyed = (*OF, "--attribute", "port")

    first = store("memory", "write", "8080", *keyed).stdout
    second = store("memory", "write", "9090", *keyed).stdout

    assert ["change", "add"] in [line.split() for line in first.splitlines()]
    assert ["change", "update"] in [line.split() for line in second.splitlines()]


@pytest.mark.covers("MM-07")
def test_how_long_is_stale_is_a_setting(store: Cli) -> None:
    write(store, OLD)

    assert told(store("maintain", "--json", "--stale-after", "1s"))["stale"]["days"] == 0
    assert told(store("maintain", "--json", HANSARD_STALE_AFTER="7d"))["stale"]["days"] == 7
