"""The conformance suite of the Model Context Protocol against `/mcp`: part of `make test-peers`.

Most of its scenarios call tools, resources and prompts that only a server made for the suite has.
So it runs twice: whole against `mcp_fixture.py`, the product's server with the suite's contents,
and those scenarios that need no such contents against `hansard serve`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.journeys.processes import environment, serving  # noqa: E402
from tests.peers.installing import NotInstalled, node_path, npm_install  # noqa: E402

PACKAGE: Final = "@modelcontextprotocol/conformance@0.1.16"
NODE: Final = 22  # what this version of the suite needs
SUITE_S: Final = 240
# What any server can be asked, whatever it holds.
OWN: Final = (
    "server-initialize", "ping", "tools-list", "server-sse-multiple-streams",
    "dns-rebinding-protection",
)  # fmt: skip
SCENARIOS: Final = 32
# Asks for a stream to be taken up again, which /mcp does not offer; the suite itself does not count
# it yet ("pending"), and it ends with warnings.
NOTHING_CHECKED: Final = {"server-sse-polling"}
_LINE: Final = re.compile(r"^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed", re.MULTILINE)
_ALONE: Final = re.compile(r"^Passed: (\d+)/\d+, (\d+) failed, (\d+) warnings", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Scenario:
    """How one scenario came out: how many checks of it."""

    name: str
    passed: int
    failed: int

    @property
    def is_passed(self) -> bool:
        return not self.failed and (self.passed > 0 or self.name in NOTHING_CHECKED)


@dataclass(frozen=True, slots=True)
class Suite:
    """The installed suite."""

    folder: Path
    path: str

    def run_whole(self, url: str) -> list[Scenario]:
        told = self._run(url, "--suite", "all")
        lines = _LINE.findall(told[told.find("=== SUMMARY ===") :])
        if len(lines) != SCENARIOS:
            sys.stdout.write(told[-3_000:])
        return [Scenario(name, int(passed), int(failed)) for name, passed, failed in lines]

    def run_one(self, url: str, name: str) -> Scenario:
        told = self._run(url, "--scenario", name)
        found = _ALONE.search(told)
        if found is None:
            sys.stdout.write(told[-3_000:])
            return Scenario(name, 0, 1)
        passed, failed, warned = map(int, found.groups())
        return Scenario(name, passed, failed + warned)

    def _run(self, url: str, *arguments: str) -> str:
        command = self.folder / "node_modules" / ".bin" / "conformance"
        ended = subprocess.run(
            [str(command), "server", "--url", f"{url}/mcp", *arguments],
            cwd=self.folder, env=environment(PATH=self.path), capture_output=True, text=True,
            timeout=SUITE_S, check=False,
        )  # fmt: skip
        return re.sub(r"\x1b\[[0-9;]*m", "", ended.stdout) + ended.stderr


def main() -> int:
    """Run the suite against both servers; 0 when everything passed."""
    with tempfile.TemporaryDirectory(prefix="hansard-mcp-") as name:
        folder = Path(name)
        try:
            path = node_path(folder / "node", at_least=NODE)
            npm_install(folder / "suite", PACKAGE)
        except NotInstalled as problem:
            sys.stderr.write(f"MCP conformance: {problem}\n")
            return 1
        suite = Suite(folder / "suite", path)
        with serving_fixture(folder / "fixture") as url:
            whole = suite.run_whole(url)
        with serving(folder / "data") as server:
            own = [suite.run_one(server.http, one) for one in OWN]
    _print("the suite's own contents", whole, of=SCENARIOS)
    _print("hansard serve", own, of=len(OWN))
    complete = len(whole) == SCENARIOS
    return 0 if complete and all(one.is_passed for one in (*whole, *own)) else 1


def _print(title: str, scenarios: list[Scenario], *, of: int) -> None:
    for one in scenarios:
        if not one.is_passed:
            sys.stdout.write(f"{one.name}: {one.passed} passed, {one.failed} failed\n")
        elif not one.passed:
            sys.stdout.write(f"{one.name}: pending in the suite, nothing was checked\n")
    good = sum(one.is_passed and one.passed > 0 for one in scenarios)
    checks = sum(one.passed for one in scenarios)
    sys.stdout.write(f"{title}: {good} of {of} scenarios passed, {checks} checks\n")


@contextmanager
def serving_fixture(data: Path) -> Iterator[str]:
    """Run the suite's server until the block ends; yield its address."""
    with subprocess.Popen(
        [sys.executable, str(HERE / "mcp_fixture.py"), str(data)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(PATH=os.environ["PATH"]),
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, f"the fixture ended with {process.wait()} before it was ready"
            yield json.loads(line)["http"]
        finally:
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    raise SystemExit(main())
