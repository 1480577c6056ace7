"""Hansard as users run it: `hansard serve` in a process of its own, on free ports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import apsw
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hansard_web.app.config import load_config
from hansard_web.app.server import running
from tests.journeys.demo_story import Story

HANSARD = str(Path(sys.executable).parent / "hansard")


def environment(**more: str) -> dict[str, str]:
    """Return the environment without settings of whoever runs the tests."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("HANSARD_", "OTEL_"))}
    return own | {"NO_PROXY": "127.0.0.1,localhost", "HOME": "/nonexistent"} | more


def patient(**more: str) -> dict[str, str]:
    """Return the environment of a program that waits for its server however busy it is."""
    return environment(HANSARD_EXIT_TIMEOUT_MS="30000", **more)


def hansard(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [HANSARD, *arguments], capture_output=True, text=True, env=environment(**more), timeout=240
    )


@dataclass
class Serving:
    """A running server."""

    endpoints: dict[str, str]
    data: Path

    @property
    def http(self) -> str:
        return self.endpoints["http"]

    @property
    def grpc(self) -> str:
        return self.endpoints["grpc"]

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"{self.http}{path}", timeout=60) as response:
            content: bytes = response.read()
            return content

    def count_spans(self) -> int:
        """Count what is in the file, past every cache of the server."""
        return count_spans(self.data)


@dataclass
class ServingProcess(Serving):
    """A server in a process of its own, with what its first line said."""

    process: subprocess.Popen[str]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(30)


def count_spans(data: Path) -> int:
    connection = apsw.Connection(str(data / "hansard.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(connection.execute("SELECT count(*) FROM span").get)
    finally:
        connection.close()


@contextmanager
def serving(
    data: Path,
    *arguments: str,
    command: str = "serve",
    ports: Sequence[str] = ("http", "grpc"),
    executable: str = HANSARD,
) -> Iterator[ServingProcess]:
    """Run a server until the block ends; ready when it begins."""
    free = [word for name in ports for word in (f"--{name}-port", "0")]
    with subprocess.Popen(
        [executable, command, "--json", "--data", str(data), *free, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, f"the server ended with {process.wait()} before it was ready"
            yield ServingProcess(json.loads(line), data, process)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(30)


@contextmanager
def hosting(data: Path, **settings: str) -> Iterator[Serving]:
    """Run a server in a thread of this process, for tests of what is in another one.

    It saves them 1.5 s of imports each. The settings are those of `hansard serve`.
    """
    free = {"data": str(data), "http_port": 0, "grpc_port": 0}
    with running(load_config(free | settings, {})) as server:
        endpoints = asdict(server.endpoints)
        yield Serving({name: str(door) for name, door in endpoints.items() if door}, data)


@contextmanager
def demonstrating(data: Path) -> Iterator[Story]:
    """Run a demo that stays up; what it told, after its agents have ended."""
    ports = ["--http-port", "0", "--grpc-port", "0"]
    command = [HANSARD, "demo", "--fast", *ports, "--data", str(data)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment(PYTHONUNBUFFERED="1")
    ) as process:
        assert process.stdout is not None
        try:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("Open "):
                    break
            address = next(line.split()[1] for line in lines if "Browser" in line)
            yield Story(address.rstrip("/"), "".join(lines))
        finally:
            process.terminate()
            assert process.wait(30) == 0


def http_exporter(serving: Serving, **headers: str) -> HttpExporter:
    return HttpExporter(endpoint=f"{serving.http}/v1/traces", headers=headers, timeout=10)


def grpc_exporter(serving: Serving, **headers: str) -> GrpcExporter:
    return GrpcExporter(endpoint=serving.grpc, insecure=True, headers=headers, timeout=10)


def spans(count: int, **attributes: str) -> list[ReadableSpan]:
    """Return ended spans of one trace, made by the stock SDK; the root has the attributes."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("journey")
    with tracer.start_as_current_span("root", attributes=attributes):
        for number in range(count - 1):
            tracer.start_span(f"child {number}").end()
    return list(memory.get_finished_spans())


def export(exporter: SpanExporter, batch: Sequence[ReadableSpan]) -> bool:
    """Send spans once and say whether they were accepted."""
    try:
        return exporter.export(batch).name == "SUCCESS"
    finally:
        exporter.shutdown()
