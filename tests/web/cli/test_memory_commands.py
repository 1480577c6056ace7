"""hansard memory: write, list, show, history, invalidate, accept, purge, gc."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from tests.web.cli.conftest import Cli

CI = (
    "--subject",
    "CI",
    "--attribute",
    "python",
    "--project",
    "quillbook",
    "--writer",
    "app",
    "--by",
    "noor",
)


@pytest.fixture
def store(anywhere: Cli, tmp_path: Path) -> Cli:
    """Run a command on an empty store."""
    open_for_ingest(DataFolder(tmp_path / "data")).close()

    def run(*arguments: str) -> Result:
        return anywhere(*arguments, HANSARD_DATA=str(tmp_path / "data"))

    return run


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_record_is_written_listed_shown_and_superseded(store: Cli) -> None:
    old = told(store("memory", "write", "CI runs Python 3.10", *CI, "--json"))["memory"]
    shown = store("memory", "write", "CI runs Python 3.12", *CI, "--tag", "ci")

    assert "superseded" in shown.stdout
    (item,) = told(store("memory", "list", "--tag", "ci", "--json"))["items"]
    assert (item["content"], item["written_by"]) == ("CI runs Python 3.12", "noor")
    table = store("memory", "list", "--state", "all").stdout
    assert table.count("project:quillbook") == 2
    history = store("memory", "history", item["memory_id"][-8:]).stdout
    assert history.index("3.12") < history.index("3.10")
    detail = store("memory", "show", old["memory_id"]).stdout
    assert f"superseded by  {item['memory_id']}" in " ".join(detail.split(" ")).replace("   ", "  ")


@pytest.mark.covers("ME-17")
def test_gc_says_how_much_is_past_its_time(store: Cli) -> None:
    store("memory", "write", "x", *CI, "--ttl-s", "1")
    assert told(store("memory", "gc", "--json")) in ({"expired": 0}, {"expired": 1})

    result = store("memory", "gc")

    assert result.stdout.endswith("expired\n")


def test_what_does_not_hold_says_who_and_why_and_exits_1_the_second_time(store: Cli) -> None:
    memory_id = told(store("memory", "write", "x", *CI, "--json"))["memory"]["memory_id"]
    ended = ("memory", "invalidate", memory_id[-8:], "--reason", "it moved", "--by", "noor")

    first, again = told(store(*ended, "--json")), store(*ended)

    assert first["memory"]["ended"]["reason"] == "it moved"
    assert again.exit_code == 1
    assert "is invalidated" in again.stderr
    assert told(store("memory", "list", "--json"))["items"] == []


def test_a_purge_takes_the_content_and_an_accepted_record_stands(
    store: Cli, tmp_path: Path
) -> None:
    store("memory", "write", "canarysure", *CI, "--confidence", "0.9")
    low = told(store("memory", "write", "canarylow", *CI, "--confidence", "0.1", "--json"))
    memory_id = low["memory"]["memory_id"]

    accepted = told(store("memory", "accept", memory_id, "--json"))["memory"]
    purge = ("memory", "purge", memory_id, "--reason", "asked", "--yes", "--json")
    purged = told(store(*purge))["memory"]

    assert (low["outcome"], accepted["state"], purged["state"]) == ("review", "current", "purged")
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"canarylow" in file for file in files)
    assert any(b"canarysure" in file for file in files)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("write", "x", "--subject", "s", "--project", "p"), 2, "--writer"),
        (("write", "x", "--subject", "s", "--writer", "app"), 1, "namespace"),
        (("write", "x", *CI, "--structured"), 2, "no JSON"),
        (("write", "x", "--writer", "human_approved_summary", *CI[:6]), 1, "approval"),
        (("show", "00000000"), 1, "no memory"),
        (("list", "--state", "gone"), 1, "state"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    store: Cli, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = store("memory", *arguments)

    assert result.exit_code == code
    assert words in result.stderr
    assert "Traceback" not in result.output
