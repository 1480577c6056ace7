"""docs/acceptance.md names, for each row, the tests that are marked with it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "acceptance.md").read_text(encoding="utf-8")
ONLY_A_READER = {"AC-02"}


def marked() -> dict[str, set[str]]:
    """Return the tests of each row of acceptance, as pytest names them."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for row in re.findall(r"'(AC-\d\d)'", " ".join(map(ast.dump, node.decorator_list))):
                    found[row].add(f"{path.relative_to(ROOT)}::{node.name}")
    return found


def test_each_row_names_the_tests_that_show_it() -> None:
    rows = dict(re.findall(r"^\| (AC-\d\d) \| .+? \| (.+) \|$", PAGE, re.MULTILINE))
    named = {row: set(re.findall(r"`P ([^`]+)`", cell)) for row, cell in rows.items()}

    assert {row for row, tests in named.items() if not tests} == ONLY_A_READER
    assert {row: tests for row, tests in named.items() if tests} == marked()
