"""The thread of upkeep beside a server: it goes on after errors of the store, and ends at once."""

from __future__ import annotations

import logging
import threading
import time

import apsw
import pytest

from hansard_collector.background import Background
from hansard_store.errors import StoppedError, StoreBusyError

LOG = logging.getLogger("hansard.test")
WAIT_S = 30


class Looks:
    """Counts looks, and raises what it was given at first."""

    def __init__(self, *errors: Exception, enough: int = 1) -> None:
        self.errors = list(errors)
        self.count = 0
        self.enough = enough
        self.was_enough = threading.Event()

    def __call__(self, stop: threading.Event) -> None:
        self.count += 1
        if self.count == self.enough:
            self.was_enough.set()
        if self.errors:
            raise self.errors.pop(0)


def background(looks: Looks, *, every_s: float) -> Background:
    return Background("upkeep", looks, every_s=every_s, log=LOG, put_off="upkeep is put off")


def test_what_the_store_raises_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    looks = Looks(StoreBusyError("locked"), apsw.IOError("disk I/O error"), enough=3)

    with background(looks, every_s=0.001).working():
        assert looks.was_enough.wait(WAIT_S)

    assert [record.getMessage() for record in caplog.records] == [
        "upkeep is put off: locked",
        "upkeep is put off: disk I/O error",
    ]


def test_work_that_was_stopped_ends_the_thread() -> None:
    looks = Looks(StoppedError())

    with background(looks, every_s=0.001).working():
        assert looks.was_enough.wait(WAIT_S)

    assert looks.count == 1


def test_the_end_of_the_block_ends_a_long_wait() -> None:
    looks, began = Looks(), time.monotonic()

    with background(looks, every_s=3_600).working():
        assert looks.was_enough.wait(WAIT_S)

    assert time.monotonic() - began < WAIT_S
    assert looks.count == 1
