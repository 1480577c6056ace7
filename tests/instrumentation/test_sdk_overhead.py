"""The benchmark of what a traced call costs runs, and measures what the documents quote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import sdk_overhead
from bench.__main__ import BENCHMARKS

ROOT = Path(__file__).parents[2]
COMMAND = "python -m bench sdk-overhead"


@pytest.mark.covers("OT-20")
def test_the_benchmark_measures_each_figure_beside_its_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One short round; how long it takes here says nothing, so no bar is held to it."""
    for name, short in (("_ROUNDS", 1), ("_STARTS", 1), ("_CALLS", 20)):
        monkeypatch.setattr(sdk_overhead, name, short)
    monkeypatch.setattr(sdk_overhead, "_OWN", ("opentelemetry", "hansard"))

    figures = {figure.what: figure for figure in sdk_overhead.run()}

    assert {what: one.bar for what, one in figures.items() if one.bar} == {
        "hansard, 100 B": "< 100 µs/span",
        "hansard against opentelemetry, 4 KiB": "< 2 times",
        "hansard: import": "< 0.4 s",
    }
    for what in ("hansard, 100 B", "hansard, 4 KiB", "opentelemetry, 4 KiB", "hansard: set-up"):
        assert figures[what].measured > 0


@pytest.mark.covers("OT-20")
def test_the_readme_quotes_the_figure_that_the_benchmarks_page_has() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    quoted = re.search(r"(\d+) µs of processor time", readme)

    assert quoted is not None
    assert f"| **Hansard** | **{quoted[1]} µs** |" in page
    assert COMMAND in readme
    assert COMMAND in page
    assert COMMAND.rpartition(" ")[2] in BENCHMARKS
