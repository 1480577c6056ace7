"""Rules about paths judge what this machine would open, links included."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hansard._gate.gate import Gate
from hansard._gate.tools import ToolSet
from hansard.errors import PolicyDenied
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.rules import parse_rules
from tests.instrumentation.gating.gates import Desk

READ: list[object] = []


def read_file(path: str) -> str:
    READ.append(path)
    return "content"


def read_files(paths: list[str], options: dict[str, str]) -> int:
    READ.append(paths)
    return len(paths)


def denying(directory: Path | str, field: str = "arguments.path") -> Policy:
    conditions = {field: {"under": str(directory)}}
    return Policy(
        rules=parse_rules(
            [{"id": "keys", "name": "keys", "effect": "deny", "conditions": conditions}],
            version="1",
        )
    )


def gate_of(store: Desk, read: Callable[..., object], policy: Policy) -> Gate:
    return Gate(decisions=store.decisions, tools=ToolSet(reads=[read]), policy=policy)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder `desk`, beside `secrets`, which the agent works in."""
    READ.clear()
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("k")
    desk = tmp_path / "desk"
    desk.mkdir()
    (desk / "plain").write_text("p")
    (desk / "folder").symlink_to(tmp_path / "secrets")
    (desk / "file").symlink_to("../secrets/key")
    (desk / "chain").symlink_to("folder/key")
    monkeypatch.chdir(desk)
    return tmp_path


@pytest.mark.parametrize("path", ["folder/key", "file", "chain", "folder/../secrets/key"])
@pytest.mark.parametrize("is_absolute", [True, False])
def test_a_link_into_a_denied_directory_is_denied(
    store: Desk, tree: Path, path: str, is_absolute: bool
) -> None:
    directory = tree / "secrets" if is_absolute else "../secrets"
    given = f"{tree}/desk/{path}" if is_absolute else path

    with (
        Gate(
            decisions=store.decisions, tools=ToolSet(reads=[read_file]), policy=denying(directory)
        ) as gate,
        pytest.raises(PolicyDenied),
    ):
        gate.call("read_file", {"path": given})

    assert READ == []
    assert store.events() == ["policy.blocked read_file"]


def test_what_is_no_link_runs(store: Desk, tree: Path) -> None:
    with Gate(
        decisions=store.decisions,
        tools=ToolSet(reads=[read_file]),
        policy=denying(tree / "secrets"),
    ) as gate:
        assert gate.call("read_file", {"path": f"{tree}/desk/plain"}).for_model() == "content"

    assert [f"{tree}/desk/plain"] == READ  # the arguments are the caller's, not what was judged


def test_a_rule_that_allows_a_directory_allows_no_link_out_of_it(store: Desk, tree: Path) -> None:
    allowed = parse_rules(
        [
            {"id": "desk", "name": "desk", "effect": "allow",
             "conditions": {"arguments.path": {"under": f"{tree}/desk"}}},
            {"id": "rest", "name": "rest", "effect": "deny",
             "conditions": {"not": {"arguments.path": {"under": f"{tree}/desk"}}}},
        ],
        version="1",
    )  # fmt: skip

    with Gate(
        decisions=store.decisions, tools=ToolSet(reads=[read_file]), policy=Policy(rules=allowed)
    ) as gate:
        assert gate.call("read_file", {"path": f"{tree}/desk/plain"}).for_model() == "content"
        with pytest.raises(PolicyDenied):
            gate.call("read_file", {"path": f"{tree}/desk/file"})

    assert len(READ) == 1


@pytest.mark.parametrize("name", ["", "\0", "x" * 5_000, "no/such/file"])
def test_texts_that_are_no_paths_are_judged_as_they_are(store: Desk, tree: Path, name: str) -> None:
    policy = denying(tree / "secrets", "arguments.other")

    with gate_of(store, read_files, policy) as gate:
        assert gate.call("read_files", {"paths": [name], "options": {"a": os.sep}}).for_model() == 1
