"""The conformance suite of the Model Context Protocol against `/mcp`: part of `make test-peers`.

Most scenarios call tools, resources and prompts that only a server made for the suite has; those
are the baseline, `mcp-expected-failures.yml`, and docs/mcp.md says why. The suite fails when
anything else does, and when something of the baseline does not fail any more.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.journeys.processes import environment, serving  # noqa: E402

# Newer ones need Node 22.
PACKAGE = "@modelcontextprotocol/conformance@0.1.11"
BASELINE = HERE / "mcp-expected-failures.yml"


def main() -> int:
    """Run the suite; 0 when it failed where it must and nowhere else."""
    with tempfile.TemporaryDirectory(prefix="hansard-mcp-") as name:
        folder = Path(name)
        told = environment(PATH=os.environ["PATH"], HOME=os.environ.get("HOME", name))
        subprocess.run(
            ["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock",
             "--ignore-scripts", PACKAGE],
            cwd=folder, check=True, env=told,
        )  # fmt: skip
        with serving(folder / "data") as server:
            ended = subprocess.run(
                ["node_modules/.bin/conformance", "server", "--url", f"{server.http}/mcp",
                 "--expected-failures", str(BASELINE)],
                cwd=folder, env=told, capture_output=True, text=True, timeout=300, check=False,
            )  # fmt: skip
    text = re.sub(r"\x1b\[[0-9;]*m", "", ended.stdout)
    lines = text[text.find("=== SUMMARY ===") :].splitlines()
    shown = [line for line in lines if line.strip()]
    sys.stdout.write("\n".join(shown) + "\n")
    if ended.returncode:
        sys.stdout.write(ended.stderr[-2_000:])
    return min(ended.returncode, 1)


if __name__ == "__main__":
    raise SystemExit(main())
