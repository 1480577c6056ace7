"""Writes `slow.txt`, the tests that the inner loop leaves out, from the durations of a whole run.

.venv/bin/pytest -n auto --durations=0 --durations-min=0.2 > run.txt
.venv/bin/python -m tests.write_slow run.txt
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

SLOW = Path(__file__).parent / "slow.txt"
_LINE = re.compile(r"(\d+\.\d+)s (?:call|setup|teardown) +(tests/\S+::\S.*)")
_FOLDERS = ("tests/journeys/", "tests/web/")  # slow as a whole
_CASE_S, _ALL_CASES_S = 0.3, 1.0


def slow_tests(log: str) -> list[str]:
    """Return the tests with a case over 0.3 s, or cases of a second together, by their ids."""
    cases: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for seconds, case in _LINE.findall(log):
        cases[case.partition("[")[0].strip()][case] += float(seconds)
    return sorted(
        test
        for test, took in cases.items()
        if not test.startswith(_FOLDERS)
        and (max(took.values()) >= _CASE_S or sum(took.values()) >= _ALL_CASES_S)
    )


if __name__ == "__main__":
    found = slow_tests(Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace"))
    SLOW.write_text("".join(f"{one}\n" for one in found), encoding="utf-8")
