"""The pages about policy and providers: blocks print what they say, tables list what is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hansard_compiler.policy.conditions import FIELDS, OPERATORS
from hansard_compiler.policy.files import SHIPPED
from hansard_compiler.policy.rules import DIMENSIONS, Effect
from hansard_compiler.providers import scripted
from hansard_compiler.providers.registry import ADAPTERS
from hansard_compiler.providers.transport import failures

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    name: (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("policy", "providers")
}
_BLOCK = re.compile(r"<!-- run -->\n```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
BLOCKS = [
    pytest.param(code, output, id=f"{name}-{number}")
    for name, page in PAGES.items()
    for number, (code, output) in enumerate(_BLOCK.findall(page))
]


@pytest.mark.slow
@pytest.mark.covers("DC-06")
@pytest.mark.parametrize(("code", "output"), BLOCKS)
def test_a_block_prints_what_the_page_says(code: str, output: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=240
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == output


def test_every_block_is_run() -> None:
    assert len(BLOCKS) == sum(page.count("<!-- run -->") for page in PAGES.values()) > 0


def _first_cells(page: str, heading: str) -> set[str]:
    """Return the names in back quotes of the first column of the first table below a heading."""
    below = f"\n{PAGES[page]}".partition(f"\n{heading}\n")[2]
    rows = re.findall(r"^\| (.+?) \|", below.partition("\n## ")[0], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w[\w-]*)`", row)}


def test_the_tables_of_policy_list_what_there_is() -> None:
    assert _first_cells("policy", "## Conditions") == set(OPERATORS)
    assert _first_cells("policy", "## Dimensions") == set(DIMENSIONS)
    assert _first_cells("policy", "## Effects, and who wins") == {str(effect) for effect in Effect}
    assert _first_cells("policy", "## The rule sets that are shipped") == set(SHIPPED)
    assert all(f"`{field}`" in PAGES["policy"] for field in FIELDS)


def test_the_tables_of_providers_list_what_there_is() -> None:
    kinds = [
        kind
        for kind in vars(failures).values()
        if isinstance(kind, type) and issubclass(kind, failures.ProviderError)
    ]
    leaves = {kind.__name__ for kind in kinds if not kind.__subclasses__()}

    assert _first_cells("providers", "## Failures") == leaves
    assert _first_cells("providers", "# Providers: asking a model, and keeping every byte") == set(
        ADAPTERS
    )
    assert _first_cells("providers", "## The scripted model") == set(scripted._CONDITIONS)
    assert all(f"`{kind.code}`" in PAGES["providers"] for kind in kinds if kind.__name__ in leaves)


def test_what_was_run_against_each_adapter_names_tests_that_are_there() -> None:
    told = dict(re.findall(r"^\[([\w-]+)\]: (\S+ \"test_\w+\")$", PAGES["providers"], re.MULTILINE))
    used = set(re.findall(r"\[(?:yes|typed|as text)\]\[([\w-]+)\]", PAGES["providers"]))

    assert used == set(told)
    for place in told.values():
        path, name = place.replace('"', "").split()
        assert f"def {name}(" in (DOCS / path).read_text(encoding="utf-8"), name
