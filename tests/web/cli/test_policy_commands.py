"""hansard policy: check, explain, and rules with their versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from tests.web.cli.conftest import Cli

LS = ("--tool", "shell", "--tool-class", "shell", "--arguments", '{"command": "ls"}')
RM = ("--tool", "shell", "--tool-class", "shell", "--arguments", '{"command": "rm -rf /"}')


@pytest.fixture
def store(anywhere: Cli, tmp_path: Path) -> Cli:
    """Run a command on an empty store."""
    open_for_ingest(DataFolder(tmp_path / "data")).close()

    def run(*arguments: str) -> Result:
        return anywhere(*arguments, HANSARD_DATA=str(tmp_path / "data"))

    return run


def told(result: Result) -> Any:
    return json.loads(result.stdout)


@pytest.mark.covers("PO-25")
def test_explain_tells_every_rule_and_records_nothing(store: Cli) -> None:
    store("policy", "rules", "put", "shipped:coding-agent", "shipped:research-agent")

    result = store("policy", "explain", "--agent", "coding", *RM)
    whole = told(store("policy", "explain", "--agent", "coding", *RM, "--json"))

    assert result.exit_code == 0
    assert "require_approval" in result.stdout
    assert len(whole["rules"]) == len(told(store("policy", "rules", "list", "--json"))["rules"])
    assert told(store("policy", "check", "--item", "a", "--json"))["check_id"] == 1


def test_check_exits_1_where_it_is_not_allowed(store: Cli) -> None:
    store("policy", "rules", "put", "shipped:coding-agent")

    allowed = store("policy", "check", "--agent", "coding", *LS)
    held = store("policy", "check", "--agent", "coding", *RM, "--json")

    assert (allowed.exit_code, held.exit_code) == (0, 1)
    assert told(held)["obligations"] == ["require_approval"]


def test_rules_are_put_listed_and_keep_their_history(store: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    rule: dict[str, Any] = {"id": "r", "name": "r", "effect": "deny"}
    document = {"schema_version": 1, "name": "mine", "version": "1", "rules": [rule]}
    file.write_text(json.dumps(document), encoding="utf-8")
    first = told(store("policy", "rules", "put", str(file), "--replace-version", "0", "--json"))
    rule["effect"] = "allow"
    file.write_text(json.dumps(document), encoding="utf-8")

    late = store("policy", "rules", "put", str(file), "--replace-version", "0")
    second = store("policy", "rules", "put", str(file))
    listed = store("policy", "rules", "list")
    history = told(store("policy", "rules", "history", "r", "--json"))["items"]

    assert first["version"] == 1
    assert (late.exit_code, second.exit_code, listed.exit_code) == (1, 0, 0)
    assert [one["effect"] for one in history] == ["allow", "deny"]
    assert "mine" in listed.stdout
    assert store("policy", "rules", "history").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("check", "--tool", "a", "--item", "b"),
        ("check", "--tool", "a", "--arguments", "{"),
        ("check", "--tool", "a", "--arguments", "[]"),
        ("rules", "put", "shipped:nothing"),
        ("rules", "put", "/no/such/file.json"),
        ("explain", "--tool", "a", "--policy", "/no/such/file.json"),
    ],
)
def test_wrong_use_is_one_line_and_exits_2(store: Cli, arguments: tuple[str, ...]) -> None:
    result = store("policy", *arguments)

    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr
