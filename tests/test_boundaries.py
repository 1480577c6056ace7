"""What Hansard is not: no domain in the core, no vectors, no accounts, no second distribution.

Names are walked: of modules, classes, functions, arguments, fields, tables, columns, routes,
commands and settings. What they do is judged by other tests; that nothing is called so is here.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import apsw
import click
import pytest

from hansard_web.app.config import SETTINGS
from hansard_web.cli import COMMANDS, ServerCommand
from tests.store.empty import empty_store
from tests.test_floors import FOLDERS, ROOT, modules
from tests.web.test_scopes import CHANGES

CORE = ("hansard_compiler", "hansard_store")
# Words of a domain, that of the demo first.
OF_A_DOMAIN = {
    "repo", "repos", "repository", "git", "codebase", "pytest", "unittest", "lint", "linter", "ide",
    "coder", "coding", "stacktrace", "python", "javascript", "typescript",
    "ticket", "crm", "customer", "helpdesk", "support", "invoice", "shop", "patient", "legal",
    "research", "researcher", "paper", "bibliography",
}  # fmt: skip
# Where such a word stands for something else than the core's own work.
PERMITTED = {
    "hansard_compiler/policy/files.py": {"coding", "research", "support"},  # shipped rule sets
    "hansard_compiler/redaction/metadata_keys.py": {"coding"},  # whose keys they are
}
OTHER_MEANINGS = {"validate_python", "LEGAL", "is_legal"}  # pydantic's; lawful transitions
OF_ANOTHER_PRODUCT = {
    "tenant", "tenants", "billing", "subscription", "organisation", "organization", "seat",
    "checkout", "workflow", "workflows", "dag", "canvas", "orchestrator", "scheduler",
    "leaderboard", "vector", "vectors", "ide", "editor",
}  # fmt: skip
# Every package that the distribution or an extra of it needs: none stores, queues or orchestrates.
LOOKED_AT = {
    "PyYAML", "anthropic", "apsw", "bpe-openai", "click", "confusable-homoglyphs", "fastapi",
    "genai-prices", "google-re2", "googleapis-common-protos", "grpcio", "hansard", "httptools",
    "jinja2", "markdown-it-py", "mcp", "nh3", "openai", "opentelemetry-exporter-otlp",
    "opentelemetry-sdk", "orjson", "platformdirs", "pydantic", "pytest", "python-multipart", "rich",
    "uvicorn", "uvloop", "wordllama", "zstandard",
}  # fmt: skip
OF_OTHER_STORES = re.compile(
    r"faiss|chroma|qdrant|pinecone|weaviate|milvus|lance|pgvector|sqlite-vec|annoy|hnsw|numpy|torch"
    r"|psycopg|asyncpg|sqlalchemy|redis|celery|kafka|boto|minio|s3fs|langgraph|temporal|prefect"
)


def words(name: str) -> set[str]:
    """Return the words of a name in snake, camel or kebab case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def names_of(path: Path) -> Iterator[str]:
    """Yield what a module names, and the short strings it compares with."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for attribute in ("id", "attr", "name", "arg", "asname"):
            name = getattr(node, attribute, None)
            if isinstance(name, str):
                yield name
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\A[\w:./-]{1,40}\Z", node.value)


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """Every table and view with each of its columns."""
    connection = apsw.Connection(str(empty_store(tmp_path_factory.mktemp("bounds")).database))
    rows = connection.execute(
        "SELECT list.name, one.name FROM pragma_table_list AS list, "
        "pragma_table_xinfo(list.name) AS one WHERE list.schema = 'main'"
    ).fetchall()
    connection.close()
    return [(str(table), str(column)) for table, column in rows]


@pytest.mark.covers("AC-03", "NG-09")
@pytest.mark.parametrize("package", CORE)
def test_no_name_of_the_core_is_of_a_domain(package: str) -> None:
    found = set()
    for path in modules(package):
        place = str(path.relative_to(ROOT / FOLDERS[package]))
        for name in set(names_of(path)) - OTHER_MEANINGS:
            foreign = words(name) & OF_A_DOMAIN - PERMITTED.get(place, set())
            found |= {(place, name)} if foreign else set()

    assert found == set()


@pytest.mark.covers("AC-03", "NG-09")
def test_no_table_and_no_column_is_of_a_domain(schema: list[tuple[str, str]]) -> None:
    assert len(schema) > 600
    assert {(t, c) for t, c in schema if (words(t) | words(c)) & OF_A_DOMAIN} == set()


def test_the_words_of_a_domain_would_be_found() -> None:
    assert words("GitRepository_of-pytest") & OF_A_DOMAIN == {"git", "repository", "pytest"}


def commands() -> Iterator[str]:
    for entry in COMMANDS:
        yield entry.name
        command = ServerCommand(entry).load()
        if isinstance(command, click.Group):
            yield from command.commands


@pytest.mark.covers("NG-01", "NG-03", "NG-04", "NG-07", "NG-08")
def test_nothing_is_offered_that_is_another_product(schema: list[tuple[str, str]]) -> None:
    offered = {*CHANGES, *commands(), *(setting.name for setting in SETTINGS)}
    offered |= {table for table, _ in schema} | {column for _, column in schema}
    offered |= {path.stem for path in modules("hansard_web")}

    assert {name for name in offered if words(name) & OF_ANOTHER_PRODUCT} == set()


def requirements() -> list[str]:
    """Everything that any extra of the distribution brings."""
    told: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = told["optional-dependencies"].items()
    return told["dependencies"] + [one for name, of in extras if name != "dev" for one in of]


@pytest.mark.covers("NG-05", "NG-02", "ST-06")
def test_no_vector_database_no_other_store_and_no_orchestrator_is_needed() -> None:
    needed = requirements()

    assert len(needed) > 10
    assert [one for one in needed if OF_OTHER_STORES.search(one)] == []


@pytest.mark.covers("NG-05", "NG-02", "ST-06")
def test_each_package_that_is_needed_was_looked_at() -> None:
    """A list of forbidden names misses the next one: what is new has to be added here, by hand."""
    names = {re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in requirements()}

    assert names - LOOKED_AT == set(), (
        "a database, an index of vectors or a queue? then it is not to be"
    )
    assert LOOKED_AT - names == set()


@pytest.mark.covers("NG-05")
def test_what_is_searched_is_searched_as_text(tmp_path: Path) -> None:
    connection = apsw.Connection(str(empty_store(tmp_path / "data").database))
    virtual = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
    ).fetchall()
    connection.close()

    assert len(virtual) >= 3
    assert all(re.search(r"USING fts5\b", str(sql)) for (sql,) in virtual)


@pytest.mark.covers("NG-10")
def test_there_is_one_distribution() -> None:
    made = [
        path.relative_to(ROOT)
        for path in ROOT.rglob("pyproject.toml")
        if not {"venv", ".venv", "demo", "fixtures", "examples"} & set(path.parts)
        and not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    ]

    assert made == [Path("pyproject.toml")]
    assert distribution("hansard").metadata["Name"] == "hansard"


@pytest.mark.covers("NG-11")
def test_whatever_a_page_does_the_api_does_too() -> None:
    """By the noun: a form of `/approvals/…` has a route of `/v1/approvals/…` that changes."""
    of_the_browser = {"signin", "signout", "theme", "messages", "mcp"}
    nouns = {route.partition(" ")[2].split("/")[1] for route in CHANGES} - {"v1"} - of_the_browser
    by_api = {
        route.partition(" ")[2].split("/")[2].removesuffix("s")
        for route in CHANGES
        if route.partition(" ")[2].startswith("/v1/")
    }

    assert len(nouns) >= 3
    assert {noun for noun in nouns if noun.removesuffix("s") not in by_api} == set()
