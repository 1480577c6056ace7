"""A server under measurement: started, looked at, stopped, by its own process id only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

HANSARD = [sys.executable, "-c", "from hansard._cli.main import main; main()"]
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Measured:
    """A running Hansard."""

    process: subprocess.Popen[str]
    http: str
    grpc: str
    data: Path
    ready_s: float  # from exec to the first good answer

    def rss_mib(self) -> float:
        """Return the memory that is resident now."""
        statm = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii")
        return int(statm.split()[1]) * _PAGE_BYTES / (1 << 20)

    def cpu_s(self) -> float:
        """Return the processor time used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> bytes:
        request = urllib.request.Request(f"{self.http}{path}", headers=dict(headers or {}))
        with urllib.request.urlopen(request, timeout=60) as response:
            content: bytes = response.read()
            return content

    def count_spans(self) -> int:
        """Count the rows of the file itself."""
        connection = apsw.Connection(str(self.data / "hansard.db"), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return int(connection.execute("SELECT count(*) FROM span").get)
        finally:
            connection.close()


@contextmanager
def folder() -> Iterator[Path]:
    """A data folder that is gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="hansard-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def hansard(data: Path, *arguments: str) -> Iterator[Measured]:
    """Run `hansard serve` for the block."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HANSARD_")}
    began = time.perf_counter()
    with subprocess.Popen(
        [
            *HANSARD,
            "serve",
            "--json",
            "--data",
            str(data),
            "--http-port",
            "0",
            "--grpc-port",
            "0",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=environment | {"NO_PROXY": "127.0.0.1"},
    ) as process:
        try:
            assert process.stdout is not None
            endpoints = json.loads(process.stdout.readline())
            urllib.request.urlopen(f"{endpoints['http']}/healthz", timeout=10).close()
            ready_s = time.perf_counter() - began
            yield Measured(process, endpoints["http"], endpoints["grpc"], data, ready_s)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(60)


def disk_bytes(data: Path) -> int:
    """Return what a stopped server's folder takes."""
    return sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
