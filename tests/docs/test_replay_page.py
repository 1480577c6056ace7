"""The page about replay: its program prints what it says, its tables list what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from hansard_compiler.replay.errors import ReplayReason
from hansard_compiler.replay.mutations import Mutation

PAGE = (Path(__file__).parents[2] / "docs" / "replay.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.covers("DC-06")
def test_the_program_prints_what_the_page_says() -> None:
    [(code, output)] = re.findall(
        r"<!-- run -->\n```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL
    )

    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=240
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == output


def test_every_reason_is_listed_with_its_meaning() -> None:
    listed = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.partition("## Reasons")[2], re.MULTILINE)

    assert listed == [(one.value, one.meaning) for one in ReplayReason]


def test_every_change_is_listed() -> None:
    kinds = get_args(get_args(Mutation)[0])
    rows = re.findall(r"^\| `(\w+)` \| ", PAGE.partition("## Reasons")[0], re.MULTILINE)

    assert rows == [get_args(kind.model_fields["op"].annotation)[0] for kind in kinds]
