"""What a traced call costs: beside the plain OpenTelemetry SDK, and peers where they are asked for.

Each contender is a process of its own (`sdk_contender`) that sends to one sink. They take their
rounds in turn, so that what the machine does meanwhile falls on all of them alike; figures are
medians of rounds. Peers are installed from the package index, each into an environment that is
thrown away afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import Figure, below

_CONTENDER = Path(__file__).with_name("sdk_contender.py")
_SINK = Path(__file__).with_name("sdk_sink.py")
_OWN = ("plain function", "opentelemetry", "hansard, no init()", "hansard", "hansard embedded")
_PEERS = {
    "langfuse": ("langfuse",),
    "openinference": ("arize-phoenix-otel", "openinference-instrumentation"),
    "mlflow": ("mlflow-tracing",),
    "lmnr": ("lmnr",),
    "traceloop": ("traceloop-sdk", "httpx"),  # imported, and not asked for
    "logfire": ("logfire",),
}
_SIZES = {"100 B": 100, "4 KiB": 4096}
_CALLS = 500  # a round: fits into every queue
_ROUNDS = 15
_STARTS = 7


@dataclass(slots=True)
class Measured:
    """One contender: what its rounds and its starts took."""

    name: str
    python: str
    version: str = ""
    rounds: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    starts: list[dict[str, float]] = field(default_factory=list)
    rest: dict[str, float] = field(default_factory=dict)

    def of_rounds(self, size: str, what: str) -> float:
        return median(one[what] for one in self.rounds[size])

    def of_starts(self, what: str) -> float:
        return median(one[what] for one in self.starts)


class Contender:
    """A running process of one contender."""

    def __init__(self, python: str, name: str, sink: str) -> None:
        self._process = subprocess.Popen(
            [python, str(_CONTENDER), name, sink],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=_environment(),
        )
        self.start = self._answer()

    def ask(self, line: str) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ChildProcessError(f"it ended with {self._process.wait()}")
        answer: dict[str, float] = json.loads(line)
        return answer

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


def run(*, peers: bool = False) -> list[Figure]:
    """Measure, and return the figures."""
    with ExitStack() as stack:
        sink = stack.enter_context(_sink())
        measured = [Measured(name, sys.executable) for name in _OWN]
        notes: list[Figure] = []
        if peers:
            root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-peers-")))
            for name, packages in _PEERS.items():
                found = _install(root / name, name, packages)
                measured += [found] if isinstance(found, Measured) else []
                notes += [] if isinstance(found, Measured) else [found]
        notes += _take_rounds(measured, sink)
        measured = [one for one in measured if one.rounds]
        for _ in range(_STARTS):
            for one in measured:
                started = Contender(one.python, one.name, sink)
                one.starts.append(started.start)
                started.end()
        return _figures(measured) + notes


def _take_rounds(measured: Sequence[Measured], sink: str) -> list[Figure]:
    """Let the contenders take their rounds in turn; say which of them could not."""
    failed: list[Figure] = []
    running: list[tuple[Measured, Contender]] = []
    for one in measured:
        try:
            contender = Contender(one.python, one.name, sink)
            contender.ask(f"100 {_CALLS}")  # warm
            contender.ask(f"4096 {_CALLS}")
        except ChildProcessError as error:
            failed.append(Figure(f"{one.name}: not measured", 0, "", note=str(error)))
            continue
        one.rounds = {size: [] for size in _SIZES}
        running.append((one, contender))
    for _ in range(_ROUNDS):
        for size, size_bytes in _SIZES.items():
            for one, contender in running:
                one.rounds[size].append(contender.ask(f"{size_bytes} {_CALLS}"))
    for one, contender in running:
        if one.python == sys.executable:
            one.rest = contender.ask("rest")
        contender.end()
    return failed


# ---- the figures


def _figures(measured: Sequence[Measured]) -> list[Figure]:
    by_name = {one.name: one for one in measured}
    ours, theirs = by_name["hansard"], by_name["opentelemetry"]
    figures: list[Figure] = []
    for size in _SIZES:
        for one in measured:
            whole = one.of_rounds(size, "process_us")
            note = f"{one.of_rounds(size, 'thread_us'):,.1f} on the calling thread{one.version}"
            what = f"{one.name}, {size}"
            if one is ours and size == "100 B":
                figures.append(below(what, whole, "µs/span", bar=100, note=note))
            else:
                figures.append(Figure(what, whole, "µs/span", note=note))
    times = median(
        our["process_us"] / their["process_us"]
        for our, their in zip(ours.rounds["4 KiB"], theirs.rounds["4 KiB"], strict=True)
    )
    figures.append(below("hansard against opentelemetry, 4 KiB", times, "times", bar=2))
    for one in measured:
        if one.name in ("plain function", "hansard, no init()"):
            continue
        import_s, what = one.of_starts("import_s"), f"{one.name}: import"
        is_ours = one is ours
        figures.append(
            below(what, import_s, "s", bar=0.4) if is_ours else Figure(what, import_s, "s")
        )
        figures.append(Figure(f"{one.name}: set-up", one.of_starts("set_up_s"), "s"))
        figures.append(Figure(f"{one.name}: memory, set up", one.of_starts("rss_mib"), "MiB"))
    figures += [
        Figure(
            f"{one.name}: idle processor",
            one.rest["idle_percent"],
            "%",
            note=f"{one.rest['rss_mib']:,.0f} MiB resident after the rounds",
        )
        for one in measured
        if one.rest and one.name != "plain function"
    ]
    return figures


# ---- what they need


@contextmanager
def _sink() -> Iterator[str]:
    """Run the sink as a process of its own, so that its work is nobody's."""
    with subprocess.Popen(
        [sys.executable, str(_SINK)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def _install(folder: Path, name: str, packages: Sequence[str]) -> Measured | Figure:
    """Install a peer into a new environment; a figure that says why not where it fails."""
    uv = shutil.which("uv")  # pip tries versions of one of them for a quarter of an hour
    venv.create(folder, with_pip=uv is None)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    install = pip if uv is None else [uv, "pip", "install", "--quiet", "--python", python]
    try:
        subprocess.run(
            [*install, *packages], check=True, capture_output=True, text=True, timeout=900
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        shutil.rmtree(folder, ignore_errors=True)
        failed = isinstance(error, subprocess.CalledProcessError) and error.stderr.strip()
        told = str(failed or error).splitlines()
        return Figure(f"{name}: not installed", 0, "", note=told[-1])
    code = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
    version = subprocess.run([python, "-c", code, packages[0]], capture_output=True, text=True)
    return Measured(name, python, version=f"; {packages[0]} {version.stdout.strip()}")


def _environment() -> dict[str, str]:
    """Return the environment without anybody's settings."""
    prefixes = ("HANSARD_", "OTEL_", "LANGFUSE_", "PHOENIX_", "MLFLOW_", "TRACELOOP_", "LMNR_")
    own: dict[str, Any] = {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}
    return own | {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
