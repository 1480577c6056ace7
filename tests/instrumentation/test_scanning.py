"""A fork waits for scans of other threads, and a child scans on its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import timeit
from re import _parser  # type: ignore[attr-defined]  # it knows how short a match may be

import pytest

from hansard._export.secret_scanner import SHORTEST_BYTES, ForkSafeRedactor, _Scans
from hansard_compiler.redaction.rules import PII_RULES, SECRET_RULES

FORKING = """
import os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from hansard._export.secret_scanner import ForkSafeRedactor

redactor = ForkSafeRedactor(bytes(32))
text = "key sk-ant-api03-" + "a1B2" * 24 + " and " + "plain words " * 2000
stop = threading.Event()

def scan():
    while not stop.is_set():
        redactor.redact_text(text)

threads = [threading.Thread(target=scan, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(40):
    child = os.fork()
    if child == 0:
        os._exit(0 if "sk-ant" not in redactor.redact_text(text).text else 1)
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
# The threads are daemons, and scan while the interpreter ends.
"""


@pytest.mark.slow
def test_a_child_forked_while_other_threads_scan_scans_as_well() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], timeout=120, check=False)

    assert done.returncode == 0


def test_a_fork_waits_until_the_last_scan_of_another_thread_ends() -> None:
    scans, inside, leave = _Scans(), threading.Event(), threading.Event()
    order: list[str] = []

    def scan() -> None:
        with scans, scans:
            inside.set()
            leave.wait(10)
            order.append("scanned")

    thread = threading.Thread(target=scan)
    thread.start()
    inside.wait(10)
    threading.Timer(0.05, leave.set).start()
    scans.before_fork()
    order.append("forked")
    scans.after_in_parent()
    thread.join(10)

    assert order == ["scanned", "forked"]


def test_a_fork_in_the_middle_of_its_own_scan_does_not_wait_for_itself() -> None:
    scans = _Scans()

    with scans:
        took_s = timeit.timeit(scans.before_fork, number=1)
        scans.after_in_parent()

    assert took_s < 2


def test_a_scan_that_begins_while_another_thread_forks_waits_for_the_fork() -> None:
    scans, order = _Scans(), list[str]()

    def scan() -> None:
        with scans:
            order.append("scanned")

    thread = threading.Thread(target=scan)
    scans.before_fork()
    thread.start()
    thread.join(0.05)
    order.append("forked")
    scans.after_in_parent()
    thread.join(10)

    assert order == ["forked", "scanned"]


def test_no_rule_matches_what_is_not_scanned_for_being_short() -> None:
    # The last alternative of a rule is RE2's word for the end of the text, which is Python's `\\Z`.
    patterns = [rule.pattern.replace(rb"\z", rb"\Z") for rule in SECRET_RULES + PII_RULES]

    assert min(_parser.parse(pattern).getwidth()[0] for pattern in patterns) >= SHORTEST_BYTES


def test_it_finds_what_any_redactor_finds() -> None:
    text = "password=hunter2-and-more-" + os.urandom(8).hex()

    assert ForkSafeRedactor(bytes(32)).redact_text(text, key="x").findings
