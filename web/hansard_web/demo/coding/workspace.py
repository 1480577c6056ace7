"""The repository the agent works in: a copy of a small fixture, with tests that really run."""

from __future__ import annotations

import difflib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from hansard_compiler.errors import ConfigError
from hansard_store.database.data_folder import make_private

FIXTURE = files("hansard_web.demo.coding").joinpath("repo")
_LONGEST_TEST_S = 60
# The output is part of a prompt, so it is the same everywhere: no plugin of this Python, no width
# of this terminal, and nothing by which pytest would know that it runs in CI, where it tells more.
_PLAIN = {
    "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "COLUMNS": "80", "NO_COLOR": "1",
}  # fmt: skip
_NEEDED = ("PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "SYSTEMROOT")


class PytestMissing(ConfigError):
    """The fixture's tests cannot run."""

    code = "pytest_missing"

    def __init__(self) -> None:
        super().__init__("the demo runs real tests: pip install 'hansard[demo]' brings pytest")


class NoSuchText(ValueError):
    """A patch does not fit the file; the message goes to the model."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder with the fixture's files in it."""

    root: Path

    def read(self, path: str) -> str:
        """Return a file's text. Raises OSError, also for a path that leads out of the folder."""
        return self._inside(path).read_text(encoding="utf-8")

    def paths(self) -> list[str]:
        """Return every file, in order."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        names = [path.relative_to(self.root).as_posix() for path in found]
        return sorted(name for name in names if "__pycache__" not in name)

    def replace(self, path: str, old: str, new: str) -> None:
        """Put new text in place of old. Raises NoSuchText unless the old stands there once."""
        text = self.read(path)
        if text.count(old) != 1:
            raise NoSuchText(f"{path} has this text {text.count(old)} times, not once")
        self._inside(path).write_text(text.replace(old, new), encoding="utf-8")

    def run_tests(self) -> str:
        """Run the tests and return what they printed."""
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "--tb=short"],
            cwd=self.root,
            env={name: os.environ[name] for name in _NEEDED if name in os.environ} | _PLAIN,
            capture_output=True,
            text=True,
            timeout=_LONGEST_TEST_S,
            check=False,
        )
        return ended.stdout + ended.stderr

    def diff(self) -> str:
        """Return what changed since the copy was made, as a unified diff."""
        return "".join(line for path in self.paths() for line in self._diff_of(path))

    def _diff_of(self, path: str) -> Iterator[str]:
        original = FIXTURE.joinpath(path)
        before = original.read_text(encoding="utf-8") if original.is_file() else ""
        if path == _PRICES:
            return iter(())
        return difflib.unified_diff(
            before.splitlines(keepends=True),
            self.read(path).splitlines(keepends=True),
            f"a/{path}",
            f"b/{path}",
        )

    def _inside(self, path: str) -> Path:
        found = (self.root / path).resolve()
        if not found.is_relative_to(self.root.resolve()):
            raise PermissionError(f"{path} leads out of the repository")
        return found


def need_pytest() -> None:
    """Raise PytestMissing where the fixture's tests could not run."""
    if importlib.util.find_spec("pytest") is None:
        raise PytestMissing


# Large and about something else: made here, since a fixture of half a megabyte says no more.
_PRICES = "docs/prices-2019.csv"
_ARTICLES = 900


def make_workspace(root: Path) -> Workspace:
    """Copy the fixture to a folder that does not exist yet. Raises PytestMissing."""
    need_pytest()
    make_private(root.parent)
    with as_file(FIXTURE) as fixture:
        shutil.copytree(fixture, root, ignore=shutil.ignore_patterns("__pycache__"))
    rows = [f"A-{n:04},article {n},{n % 90 + 1}.{n % 100:02}\n" for n in range(_ARTICLES)]
    prices = root / _PRICES
    prices.parent.mkdir(exist_ok=True)
    prices.write_text("number,article,price\n" + "".join(rows))
    for path in (root, *root.rglob("*")):  # it stands in the data folder
        path.chmod(0o700 if path.is_dir() else 0o600)
    return Workspace(root)
