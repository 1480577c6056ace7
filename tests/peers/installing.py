"""What the checks of `make test-peers` take from npm and the Python index, into temporary folders.

A registry may stumble: each installation is tried three times, within a time, and says which
program could not be had.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

TRIES: Final = 3
TRY_S: Final = 240
_NPM: Final = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")


class NotInstalled(Exception):
    """A program of others could not be had; nothing was checked with it."""


def need(*tools: str) -> None:
    """Raise NotInstalled with the names of those that this machine lacks."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        raise NotInstalled(f"these checks need {' and '.join(missing)}, which are not installed")


def npm_install(folder: Path, *packages: str) -> None:
    """Install packages, or what the package.json of the folder names; raises NotInstalled."""
    folder.mkdir(parents=True, exist_ok=True)
    named = " ".join(packages) or f"the packages of {folder.name}/package.json"
    _try([shutil.which("npm") or "npm", "install", "--loglevel=error", *_NPM, *packages],
         folder, named)  # fmt: skip


def pip_install(folder: Path, *packages: str) -> None:
    """Make a virtual environment in `folder` and install packages; raises NotInstalled."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    _try([*pip, *packages], folder, " ".join(packages))


def node_path(folder: Path, *, at_least: int) -> str:
    """Return a PATH whose Node is new enough: this machine's, else one from npm; raises."""
    need("node", "npm")
    told = subprocess.run(
        ["node", "-p", "[parseInt(process.versions.node), process.platform, process.arch].join()"],
        capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    version, platform, machine = told.stdout.strip().split(",")
    if int(version) >= at_least:
        return os.environ["PATH"]
    package = f"node-{platform}-{machine}"
    npm_install(folder, f"{package}@{at_least}")
    binaries = folder / "node_modules" / package / "bin"
    return f"{binaries}{os.pathsep}{os.environ['PATH']}"


def _try(command: Sequence[str], folder: Path, named: str) -> None:
    said = ""
    for turn in range(1, TRIES + 1):
        try:
            ended = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=TRY_S, check=False
            )
        except subprocess.TimeoutExpired:
            said = f"no answer in {TRY_S} s"
        else:
            if not ended.returncode:
                return
            said = (ended.stderr or ended.stdout).strip()[-600:]
        if turn < TRIES:
            sys.stderr.write(f"could not install {named}, trying again: {said[-200:]}\n")
            time.sleep(5 * turn)  # a registry that stumbles wants a moment
    raise NotInstalled(f"could not install {named}, tried {TRIES} times: {said}")
