from __future__ import annotations

import re
from pathlib import Path

from hansard_compiler.redaction.rules import PII_RULES, SECRET_RULES
from hansard_compiler.retention_modes import RetentionMode

PAGE = (Path(__file__).parents[2] / "docs" / "retention.md").read_text("utf-8")


def test_the_page_lists_every_rule_and_what_it_finds() -> None:
    _, *sections = PAGE.split("| rule | finds |\n|---|---|\n")
    listed = [
        re.findall(r"^\| `([^`]+)` \| (.+) \|$", text.split("\n\n")[0], re.M) for text in sections
    ]

    assert listed == [
        [(rule.name, rule.finds) for rule in rules] for rules in (SECRET_RULES, PII_RULES)
    ]


def test_the_page_explains_every_mode() -> None:
    explained = re.findall(
        r"^\| `([a-z_]+)`(?: \(default\))? \|", PAGE.split("## Markers")[0], re.M
    )

    assert sorted(explained) == sorted(RetentionMode)
