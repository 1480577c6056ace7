"""Tables in a real terminal: however narrow it is, no column is left out."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios

import pytest

pytestmark = pytest.mark.slow

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_PROGRAM = """
from hansard_web.cli.tables import Column, print_table
columns = (
    Column("ID"), Column("STATUS"), Column("WHAT", may_cut=True), Column("TIMES", is_figure=True)
)
print_table(columns, [("70045045", "waiting for a decision", "why " * 100, "7")])
"""


def in_a_terminal(columns: int) -> list[str]:
    """Run the program in a terminal of so many columns, and return the lines it prints."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: one for name, one in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**environment, "TERM": "xterm"},
    ) as process:
        errors = process.communicate(timeout=240)[1]
    os.close(theirs)
    assert (process.returncode, errors) == (0, b"")
    told = os.read(ours, 65_536).decode()
    os.close(ours)
    return _STYLE.sub("", told).splitlines()


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_ids_states_and_figures_are_whole_in_any_terminal(columns: int) -> None:
    heading, row = in_a_terminal(columns)

    assert heading.split() == ["ID", "STATUS", "WHAT", "TIMES"]
    assert row.startswith("70045045  waiting for a decision  why why")
    assert row.endswith("…      7")
    assert len(row) == max(columns, 65)
