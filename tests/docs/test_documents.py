"""The documentation says what is: settings, tables, commands, links, requirement rows."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import click
import pytest

from hansard._cli.commands import LazyCommand
from hansard._cli.commands import commands as sdk_commands
from hansard._config.settings import SETTINGS as SDK_SETTINGS
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.config import SETTINGS
from hansard_web.cli import COMMANDS, ServerCommand
from tests.test_floors import FOLDERS

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *sorted(DOCS.glob("*.md")),
    *(page for folder in ("connect", "api") for page in sorted(DOCS.glob(f"{folder}/*.md"))),
]

_ROW = re.compile(r"^\| ([A-Z]{2}-\d{2}) \| (.+?) \| (core|deep|beyond) \| (.+) \|$", re.MULTILINE)
_TABLE_ROW = re.compile(r"^\| `(\w+)` \| (primary|derived) \| (.+) \|$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def _text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


# ---- configuration


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_is_listed_as_it_is(setting) -> None:  # type: ignore[no-untyped-def]
    kind = setting.kind.replace(" | ", ", ")
    given = f"| `{setting.flag}` | `{setting.variable}` | {setting.default} | {kind} |"
    row = f"{given} {setting.sentence} |"

    assert row in _text("configuration.md")


def test_no_setting_is_listed_that_is_not_there() -> None:
    listed = set(re.findall(r"^\| `(--[a-z-]+)` ", _text("configuration.md"), re.MULTILINE))

    assert listed == {setting.flag for setting in SETTINGS}


@pytest.mark.parametrize("setting", SDK_SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_of_the_sdk_is_listed_as_it_is(setting) -> None:  # type: ignore[no-untyped-def]
    env = ", ".join(f"`{name}`" for name in setting.env)
    row = f"| `{setting.name}` | {env} | {setting.default} | {setting.kind} | {setting.sentence} |"

    assert row in _text("configuration.md")


# ---- data model


def test_every_table_is_listed_as_primary_or_derived(tmp_path: Path) -> None:
    connection = open_for_ingest(DataFolder(tmp_path / "data"))
    named = {str(name) for (name,) in connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')"
    ) if not str(name).startswith("sqlite_")}  # fmt: skip
    connection.close()
    listed = [name for name, _, _ in _TABLE_ROW.findall(_text("data-model.md"))]

    assert sorted(listed) == sorted(named)


# ---- requirements


def test_no_row_is_there_twice() -> None:
    ids = [row[0] for row in _ROW.findall(_text("requirements.md"))]

    assert ids
    assert len(ids) == len(set(ids))


def test_every_marker_names_a_row() -> None:
    known = {row[0] for row in _ROW.findall(_text("requirements.md"))}
    claimed = {
        (str(path.relative_to(ROOT)), argument.value)
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "covers"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }

    assert claimed
    assert [claim for claim in sorted(claimed) if claim[1] not in known] == []


# ---- pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    targets = _LINK.findall(page.read_text(encoding="utf-8"))
    local = [t.partition("#")[0] for t in targets if not t.startswith(("http", "#"))]

    assert [target for target in local if not (page.parent / target).exists()] == []


@cache
def _known_commands() -> frozenset[str]:
    known = set()
    for entry in COMMANDS:
        command = ServerCommand(entry).load()
        known.add(entry.name)
        if isinstance(command, click.Group):
            known |= {f"{entry.name} {name}" for name in command.commands}
    sdk = click.Group()
    sdk_commands(sdk)
    for name, lazy in sdk.commands.items():
        known.add(name)
        loaded = lazy.load() if isinstance(lazy, LazyCommand) else lazy
        if isinstance(loaded, click.Group):
            known |= {f"{name} {verb}" for verb in loaded.commands}
    return frozenset(known)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_shows_exists(page: Path) -> None:
    known = _known_commands()
    nouns = {name.partition(" ")[0] for name in known if " " in name}
    shown = re.findall(
        r"(?:^|[`/ ])hansard ([a-z]+)(?: ([a-z][a-z-]*))?", _code(page), re.MULTILINE
    )

    named = {f"{first} {second}" if first in nouns and second else first for first, second in shown}
    assert named - known == set()


def _code(page: Path) -> str:
    """Return what stands in backquotes and fenced blocks."""
    text = page.read_text(encoding="utf-8")
    fenced = re.findall(r"^```(?:sh)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return "\n".join((*fenced, *re.findall(r"`(hansard [^`\n]+)`", text)))


@pytest.mark.covers("NG-12", "DC-11")
def test_the_readme_begins_with_a_paragraph_and_then_runs_make() -> None:
    """What the paragraph says is for a reader to judge."""
    title, first, *rest = (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n")
    code = _code(ROOT / "README.md")

    assert title.startswith("# ")
    assert re.match(r"\w", first)
    assert {"demo", "test"} <= set(re.findall(r"^make ([a-z-]+)", code, re.MULTILINE))
    assert re.search(r"^\S*hansard serve$", code, re.MULTILINE)
    assert rest


@pytest.mark.covers("DC-10")
def test_the_readme_leads_to_the_demo_and_to_another_domain() -> None:
    """The coding demo, another domain's walk-through and agents of other kinds: a page each."""
    linked = set(_LINK.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    headings = re.findall(r"^## (.+)$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)

    assert {"docs/walkthrough.md", "docs/walkthrough-research.md", "examples/README.md"} <= linked
    assert any("coding agents" in heading for heading in headings)


@pytest.mark.covers("DC-11")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_has_one_install_and_make_is_there(page: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    code = _code(page)

    installs = re.findall(r"pip install (.+)", code)
    extras = {
        name
        for line in installs
        for words in re.findall(r"(?:\.|hansard)\[([\w,-]+)\]", line)
        for name in words.split(",")
    }
    files = {name for line in installs for name in re.findall(r"-[cr] (\S+)", line)}
    assert extras - set(project["optional-dependencies"]) == set()
    assert [name for name in files if not (ROOT / name).exists()] == []
    assert set(re.findall(r"^make ([a-z-]+)", code, re.MULTILINE)) - set(targets) == set()
    if page == ROOT / "README.md":
        assert (extras, files) == ({"server"}, {"constraints.txt"})


@pytest.mark.covers("DC-02", "EX-18")
@pytest.mark.parametrize(("package", "folder"), FOLDERS.items())
def test_the_architecture_page_leads_to_every_package_of_a_floor(package: str, folder: str) -> None:
    linked = {
        (DOCS / target.partition("#")[0]).resolve()
        for target in _LINK.findall(_text("architecture.md"))
    }
    floor = ROOT / folder / package

    assert [path for path in linked if path.is_relative_to(floor) and path.is_file()]


def test_decisions_are_numbered_in_their_order() -> None:
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    numbers = [int(found) for found in re.findall(r"^## (\d+)\. ", text, re.MULTILINE)]

    assert numbers == sorted(set(numbers))
