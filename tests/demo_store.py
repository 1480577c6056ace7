"""The store that `hansard demo` leaves, made once for all workers of a test run."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from tests.journeys.processes import hansard


def demo_store(factory: pytest.TempPathFactory) -> Path:
    """Return a copy of its own of the data folder: 16 runs of six agents and a heartbeat's.

    The demo takes ten seconds of processor time. Whichever worker first needs it makes it, and the
    others wait for the lock.
    """
    base = factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared-demo"
    shared.mkdir(exist_ok=True)
    data = shared / "data"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "made").exists():
            ports = ("--http-port", "0", "--grpc-port", "0")
            ended = hansard("demo", "--exit", "--fast", "--data", str(data), *ports)
            assert ended.returncode == 0, ended.stderr
            (shared / "made").touch()
    return Path(shutil.copytree(data, factory.mktemp("demo") / "data"))
