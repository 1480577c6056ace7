"""docs/adapters.md and docs/dialects.md, followed as they stand."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hansard_collector.dialects.engine import sources
from hansard_compiler.providers import conformance, registry
from hansard_compiler.providers.base import WireFormat
from hansard_compiler.providers.transport import exchange
from tests.journeys.processes import environment

ROOT = Path(__file__).parents[2]
ADAPTERS, DIALECTS = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("adapters", "dialects")
)
_RUN = re.compile(r"<!-- run -->\n```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
_NEW = re.compile(r"<!-- new: (\S+) -->\n```python\n(.*?)```", re.DOTALL)
_EDIT = re.compile(r"<!-- in: (\S+), (before|after): `(.+?)` -->\n```text\n(.*?)```", re.DOTALL)


def ran(code: str, *first: Path) -> str:
    """Run a program; packages in `first` are found before those that are installed."""
    head = "".join(f"import sys; sys.path.insert(0, {str(path)!r})\n" for path in first)
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", head + code],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=240,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.mark.slow
@pytest.mark.covers("DC-05")
def test_the_adapter_of_the_page_works_and_keeps_every_promise() -> None:
    [(code, output)] = _RUN.findall(ADAPTERS)

    assert ran(code) == output
    assert output.startswith("[]\n")


def test_the_page_on_adapters_names_all_there_is_to_write() -> None:
    methods = {name for name in vars(WireFormat) if not name.startswith("_")}
    first_cells = " ".join(re.findall(r"^\| (`.+?) \|", ADAPTERS, re.MULTILINE))
    promised = re.findall(r"^- (.+)$", ADAPTERS.partition("## What it must keep")[2], re.MULTILINE)

    assert set(re.findall(r"`(\w+)`", first_cells)) == methods
    assert promised == list(conformance.PROMISES)
    assert exchange.RECORDED_HEADERS
    assert registry.ADAPTERS.keys() >= {"openai_compatible"}


def _edited(copy: Path) -> None:
    """Make the edits of the page in a copy of the dialects."""
    for name, content in _NEW.findall(DIALECTS):
        (copy / name).write_text(content, encoding="utf-8")
    for name, side, anchor, lines in _EDIT.findall(DIALECTS):
        before = (copy / name).read_text(encoding="utf-8")
        assert f"\n{anchor}" in before, (name, anchor)
        head, _, tail = before.partition(f"\n{anchor}")
        rest = tail.partition("\n")
        line = f"{anchor}{rest[0]}\n"
        added = f"{lines}{line}" if side == "before" else f"{line}{lines}"
        (copy / name).write_text(f"{head}\n{added}{rest[2]}", encoding="utf-8")


@pytest.mark.slow
def test_the_dialect_of_the_page_is_read_once_its_lines_are_there(tmp_path: Path) -> None:
    [(code, output)] = _RUN.findall(DIALECTS)
    shutil.copytree(ROOT / "collector", tmp_path, dirs_exist_ok=True)

    _edited(tmp_path / "hansard_collector" / "dialects")

    assert len(_EDIT.findall(DIALECTS)) == DIALECTS.count("<!-- in: ")
    assert ran(code, tmp_path) == output


def test_the_page_on_dialects_names_readers_that_there_are() -> None:
    rows = re.findall(r"^\| (`.+?) \|", DIALECTS, re.MULTILINE)
    names = set(re.findall(r"`(\w+)`", " ".join(rows)))

    assert len(names) >= 8
    assert [name for name in sorted(names) if not callable(getattr(sources, name, None))] == []
    for path in re.findall(r"`((?:tests|compiler|collector)/[\w/*.]+)`", DIALECTS + ADAPTERS):
        assert list(ROOT.glob(path)), path
