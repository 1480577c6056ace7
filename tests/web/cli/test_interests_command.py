"""hansard interests: finds topics, shows their support, writes what is new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.store.empty import empty_store
from tests.web.cli.conftest import Cli

TEXTS = ("The request timeout is too short.", "We raise the request timeout again.")
SCRIPT = {"hansard_script": 1, "otherwise": {"say": '["request timeout", "quantum computing"]'}}


@pytest.fixture
def interests(anywhere: Cli, tmp_path: Path) -> Cli:
    """Run the command on a store with two notes of a project and one that is diagnostic."""
    data = str(empty_store(tmp_path / "data").path)
    given = ("--type", "note", "--writer", "app", "--project", "quillbook", "--subject")
    for number, text in enumerate((*TEXTS, "[log-review] request timeout trends")):
        wrote = anywhere("memory", "write", text, *given, f"s{number}", HANSARD_DATA=data)
        assert wrote.exit_code == 0, wrote.output

    def run(*arguments: str, **more: str) -> Result:
        return anywhere("interests", *arguments, HANSARD_DATA=data, **more)

    return run


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.covers("IN-01", "IN-03", "IN-11")
def test_new_topics_are_written_with_their_support(interests: Cli) -> None:
    first, second = told(interests("--json")), told(interests("--json"))

    assert (first["entries"], first["excluded_diagnostic"], first["written"]) == (2, 1, 1)
    [found] = first["found"]
    assert (found["topic"], found["outcome"]) == ("request timeout", "new")
    assert found["namespace"] == {"project": "quillbook"}
    assert len(found["entries"]) == 2
    assert (second["written"], second["known"]) == (0, 1)
    [listed] = told(interests("--list", "--json"))["items"]
    assert listed["memory_id"] == found["memory_id"]
    assert listed["entries"] == found["entries"]
    assert listed["extractor"] == "phrases/1"


def test_a_dry_run_writes_nothing(interests: Cli) -> None:
    shown = interests("--dry-run")

    assert shown.exit_code == 0, shown.output
    assert "request timeout" in shown.stdout
    assert "nothing is kept" in shown.stdout
    assert told(interests("--list", "--json")) == {"items": []}


def test_people_read_a_table(interests: Cli) -> None:
    assert "1 new" in interests().stdout
    assert "request timeout" in interests("--list").stdout


@pytest.mark.covers("IN-10")
def test_a_model_may_extract_and_its_calls_are_counted(interests: Cli, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT))

    result = told(interests("--extractor", "scripted:large", "--script", str(script), "--json"))

    assert result["extractor"] == "scripted:large"
    assert [one["outcome"] for one in result["found"]] == ["new", "unsupported"]
    assert result["model_calls"] == 1
    assert result["input_tokens"] > 0


def test_an_extractor_that_cannot_be_asked_is_named(interests: Cli) -> None:
    missing = interests("--extractor", "openai:gpt-5", OPENAI_API_KEY="")
    unknown = interests("--extractor", "nobody")

    assert missing.exit_code == 1
    assert "OPENAI_API_KEY" in missing.stderr
    assert unknown.exit_code == 2
    assert "PROVIDER:MODEL" in unknown.stderr


def test_a_list_is_no_dry_run(interests: Cli) -> None:
    assert interests("--list", "--dry-run").exit_code == 2
