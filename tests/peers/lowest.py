"""The lowest and the highest versions of the dependencies that pyproject.toml allows.

Each set is installed into an environment of its own, in a temporary folder, and a fast part of the
suite runs in it; with `--whole` all of it. `python tests/peers/lowest.py lowest` runs one set only.
The lowest set has every dependency of the server at the bound that pyproject.toml names; what these
bring along is chosen by pip. The highest set is what pip chooses today.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
SETS: Final = ("lowest", "highest")
INSTALL_S: Final = 600
TEST_S: Final = 600
EXTRAS: Final = ("server", "embeddings", "yaml")
# What the tests themselves need is of today in both sets.
TOOLS: Final = ("pytest", "pytest-randomly", "pytest-xdist", "hypothesis", "httpx2", "jsonschema",
                "playwright", "trio")  # fmt: skip
# One of each floor that touches its dependencies: models, SQLite, OTLP, HTTP, templates, commands.
PART: Final = (
    "tests/compiler/test_compile.py",
    "tests/compiler/test_policy_files.py",
    "tests/store/test_detecting.py",
    "tests/store/test_memory.py",
    "tests/store/test_read_only_rows.py",
    "tests/store/test_spans.py",
    "tests/collector/test_decode.py",
    "tests/collector/test_pipeline.py",
    "tests/web/api/test_tasks.py",
    "tests/web/cli/test_tasks_commands.py",
    "tests/web/test_tasks_page.py",
)
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*>=\s*([0-9][^\s,;]*)")


def lower_bounds() -> dict[str, str]:
    """Return the lowest version of each package that pyproject.toml allows, by its name."""
    told: Any = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for extra in EXTRAS for one in told["optional-dependencies"][extra]]
    found = {}
    for requirement in (*told["dependencies"], *extras):
        named = _REQUIREMENT.match(requirement)
        if named is None:
            raise SystemExit(f"pyproject.toml: {requirement!r} has no lower bound")
        found[named[1]] = named[2]
    return found


def main() -> int:
    """Run the sets that were named, or both; 0 when all of their tests passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help="lowest or highest")
    parser.add_argument("--keep", type=Path, help="folder of the environments; else temporary")
    parser.add_argument("--whole", action="store_true", help="run the whole suite")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hansard-versions-") as folder:
        home = asked.keep or Path(folder)
        failed = [
            name for name in asked.sets or SETS if not _passes(name, home / name, asked.whole)
        ]
    if failed:
        sys.stderr.write(f"failed: {', '.join(failed)}\n")
    return int(bool(failed))


def _passes(name: str, home: Path, is_whole: bool) -> bool:
    begun = time.monotonic()
    python = home / "venv" / "bin" / "python"
    venv.create(home / "venv", with_pip=True)
    if not _install(python, home, is_lowest=name == "lowest"):
        return False
    for line in _versions(python):
        sys.stdout.write(f"  {line}\n")
    told = _tests(python, () if is_whole else PART, limit_s=None if is_whole else TEST_S)
    verdict = "passed" if told == 0 else f"failed ({told})"
    sys.stdout.write(f"{name}: {verdict} in {time.monotonic() - begun:.0f} s\n")
    sys.stdout.flush()
    return told == 0


def _install(python: Path, home: Path, *, is_lowest: bool) -> bool:
    """Install this checkout and the tools; False, with what pip said, where that cannot be done."""
    constraints = home / "constraints.txt"
    bounds = lower_bounds().items() if is_lowest else ()
    constraints.write_text("".join(f"{name}=={bound}\n" for name, bound in bounds))
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    ended = subprocess.run(
        [*pip, "-c", str(constraints), "-e", f"{ROOT}[{','.join(EXTRAS)}]", *TOOLS],
        cwd=home, capture_output=True, text=True, timeout=INSTALL_S, check=False,
    )  # fmt: skip
    if ended.returncode:
        sys.stderr.write(f"could not install:\n{ended.stderr[-2_000:]}\n")
    return ended.returncode == 0


def _versions(python: Path) -> Iterator[str]:
    """Yield what was installed of the packages that pyproject.toml names, beside the bound."""
    ended = subprocess.run(
        [str(python), "-m", "pip", "freeze", "--disable-pip-version-check"],
        capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    pinned = (line.partition("==") for line in ended.stdout.splitlines() if "==" in line)
    installed = {_key(name): version for name, _, version in pinned}
    for name, bound in lower_bounds().items():
        yield f"{name} {installed.get(_key(name), '?')} (at least {bound})"


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _tests(python: Path, part: Sequence[str], *, limit_s: float | None) -> int:
    """Run tests; returns pytest's exit code, 124 where it took too long.

    Warnings are no errors here: an old version may warn of what a newer one has mended.
    """
    command = [str(python), "-m", "pytest", "-v", "-n", "2", "--tb=short", "-o", "filterwarnings=",
               "-p", "no:cacheprovider", *part]  # fmt: skip
    try:
        return subprocess.run(command, cwd=ROOT, timeout=limit_s, check=False).returncode
    except subprocess.TimeoutExpired:
        return 124


if __name__ == "__main__":
    sys.exit(main())
