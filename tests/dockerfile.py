"""Reads a Dockerfile as far as ours goes: stages, what they copy, and what is ignored."""

from __future__ import annotations

import re
import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple


class Instruction(NamedTuple):
    name: str
    value: str


def read_dockerfile(path: Path) -> list[list[Instruction]]:
    """Return the instructions of each stage, lines put together."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    stages: list[list[Instruction]] = []
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, value = line.partition(" ")
            if name == "FROM":
                stages.append([])
            stages[-1].append(Instruction(name, value.strip()))
    return stages


def copied(stage: list[Instruction]) -> list[str]:
    """Return what a stage copies of the checkout."""
    words = [one.value.split() for one in stage if one.name == "COPY"]
    return [name for line in words if not line[0].startswith("--") for name in line[:-1]]


def ignored(file: Path, path: Path) -> bool:
    """Say whether the engine is not sent a path: the last line that fits it decides."""
    is_ignored = False
    places = [path, *path.parents][:-1]
    for line in file.read_text("utf-8").split():
        pattern = line.removeprefix("!")
        names = [one.name if "**/" in pattern else str(one) for one in places]
        if any(fnmatch(name, pattern.removeprefix("**/")) for name in names):
            is_ignored = not line.startswith("!")
    return is_ignored


def copy_context(root: Path, stage: list[Instruction], target: Path) -> None:
    """Copy what a stage takes of the checkout, and of that only what the engine is sent."""
    rules = root / ".dockerignore"

    def left_out(folder: str, names: list[str]) -> set[str]:
        place = Path(folder).relative_to(root)
        return {name for name in names if ignored(rules, place / name)}

    target.mkdir(exist_ok=True)
    for name in copied(stage):
        if (root / name).is_dir():
            shutil.copytree(root / name, target / name, ignore=left_out)
        else:
            shutil.copy(root / name, target)
