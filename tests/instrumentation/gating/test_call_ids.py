"""The ids that join what was logged before a call to what was logged after it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hansard._gate.invocation import CallIds

_FORK = """
import os
from hansard._gate.invocation import next_call_id
here = next_call_id()
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, next_call_id().encode())
    os._exit(0)
os.wait()
print(here, os.read(reading, 100).decode())
"""


def test_ids_count_up_behind_one_beginning() -> None:
    ids = CallIds()

    first, second = ids.next(), ids.next()

    beginning = first.partition("-")[0]
    assert (first, second) == (f"{beginning}-1", f"{beginning}-2")
    assert CallIds().next().partition("-")[0] != beginning


@pytest.mark.slow
def test_a_child_of_a_fork_gives_ids_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FORK], capture_output=True, text=True, check=True, timeout=240
    )

    parent, child = (one.partition("-") for one in done.stdout.split())
    assert parent[0] != child[0]
    assert (parent[2], child[2]) == ("1", "1")
