"""The page about transcripts: its program prints what it says, its tables list what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hansard_compiler.retention_modes import RetentionMode
from hansard_web.transcripts import api as transcripts
from hansard_web.transcripts.cli import transcripts as commands

PAGE = (Path(__file__).parents[2] / "docs" / "transcripts.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"<!-- run -->\n```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


@pytest.mark.slow
@pytest.mark.covers("DC-06")
def test_the_program_prints_what_the_page_says(tmp_path: Path) -> None:
    ((code, output),) = _BLOCK.findall(PAGE)

    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "HANSARD_DATA": str(tmp_path)},
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == output


def test_every_route_and_command_is_told() -> None:
    told = PAGE.replace("{id}", "{}").replace("`…/", "`/v1/transcripts/{}/")
    for route in transcripts.router.routes:
        path = re.sub(r"\{\w+\}", "{}", route.path)  # type: ignore[attr-defined]
        assert path in told
    listed = re.search(r"hansard transcripts (list, [a-z, \n]+)`", PAGE)
    assert listed is not None
    assert set(re.findall(r"[a-z]+", listed[1])) == set(commands.commands)


def test_every_retention_mode_is_listed() -> None:
    assert all(f"| `{mode}` |" in PAGE for mode in RetentionMode)
