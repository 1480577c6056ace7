"""The page about comparing: its program prints what it says, its words are those of the code."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from hansard_compiler.diff import changes
from hansard_compiler.diff import explanations as because

PAGE = (Path(__file__).parents[2] / "docs" / "diff.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"<!-- run -->\n```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


@pytest.mark.covers("DC-15")
def test_the_program_prints_what_the_page_says() -> None:
    ((code, output),) = _BLOCK.findall(PAGE)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, "docs/diff.md", "exec"), {"__name__": "__main__"})
    assert printed.getvalue() == output


def test_every_kind_of_cause_is_told() -> None:
    sources = Path(because.__file__).read_text("utf-8") + Path(changes.__file__).read_text("utf-8")
    for kind in ("budget", "weight", "setting", "rule", "model", "task", "time", "order", "input",
                 "conflict", "duplicate", "dependency", "removal", "competition", "several",
                 "score", "unknown"):  # fmt: skip
        assert f"`{kind}`" in PAGE
        assert f'"{kind}"' in sources
