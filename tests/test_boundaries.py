"""What Hansard is not: no domain in the core, no vectors, no accounts, no second distribution.

Held by structure: what the packages need, which tables lead where, what a page can change, and
what a compile decides when its subjects are renamed.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.compiler.compiling import compiled, item
from tests.store.empty import empty_store
from tests.test_floors import FLOORS, ROOT, imports, modules
from tests.web.html import parse
from tests.web.test_scopes import CHANGES

# What the two floors of the core import besides one another and Python: formats, hashing, SQL and
# the HTTP client and the embeddings of providers. Nothing of these knows a domain.
NEEDED_BY_CORE = {
    "hansard_compiler": {
        "google", "httpx2", "numpy", "pydantic", "pydantic_core", "re2", "safetensors",
        "tokenizers", "yaml",
    },
    "hansard_store": {
        "apsw", "google", "opentelemetry", "orjson", "platformdirs", "typing_extensions",
        "zstandard",
    },
}  # fmt: skip
# The same sentences about another subject: terms of equal length and of as many tokens.
RENAMED = {"repository": "laboratory", "pytest": "dosage", "commit": "tablet", "patch": "serum"}
# Every package that the distribution or an extra of it needs: none stores, queues or orchestrates.
REVIEWED = {
    "PyYAML", "anthropic", "apsw", "bpe-openai", "click", "confusable-homoglyphs", "fastapi",
    "genai-prices", "google-re2", "googleapis-common-protos", "grpcio", "hansard", "httptools",
    "jinja2", "markdown-it-py", "mcp", "nh3", "openai", "opentelemetry-exporter-otlp",
    "opentelemetry-sdk", "orjson", "platformdirs", "prometheus-client", "pydantic", "pytest",
    "python-multipart", "rich", "typing_extensions", "uvicorn", "uvloop", "wordllama", "zstandard",
}  # fmt: skip
# Everything that a request can change, as the first part of its path: records of agents, decisions
# about them, and what a browser needs. Of notifications: that one is
# sent again. No workflow, account, plan or ranking is among them.
CHANGED = {
    "annotations", "approvals", "compile", "errors", "events", "logs", "mcp", "memory",
    "messages", "metrics", "model", "notifications", "payloads", "policy", "replay", "replays",
    "reports", "runs", "scores", "signin", "signout", "tasks", "theme", "times", "tools",
    "traces", "transcripts", "views",
}  # fmt: skip
# The packages of the web floor that send a request to a model: a replay, a call for a program, the
# demo, and what the server is set up with.
CALLS_MODELS = {"app", "demo", "replay", "replay_page", "sidecar"}


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    """A store that all migrations made."""
    connection = apsw.Connection(str(empty_store(tmp_path_factory.mktemp("bounds")).database))
    yield connection
    connection.close()


@pytest.mark.covers("AC-03", "NG-09")
@pytest.mark.parametrize("package", NEEDED_BY_CORE)
def test_the_core_needs_nothing_that_knows_a_domain(package: str) -> None:
    needed = {
        module.partition(".")[0] for path in modules(package) for _, module in imports(path)
    } - {*sys.stdlib_module_names, *FLOORS}

    assert needed == NEEDED_BY_CORE[package]


def _outcome(rename: dict[str, str]) -> Any:
    """Compile a crowd with a tight budget; every decision with its reason and its tokens."""
    texts = [
        ("system", "system", "Say when you are unsure."),
        ("rules", "retrieval_doc", "A commit to the repository is checked with pytest. " * 20),
        ("twin", "retrieval_doc", "A commit to the repository is checked with pytest. " * 20),
        ("patch", "retrieval_doc", "The patch of Monday failed in pytest. " * 8),
        ("aside", "retrieval_doc", "Lunch is at noon. " * 40),
        ("note", "memory", "The patch is a commit of Ada."),
        ("rumour", "memory", "The patch is a commit of Bob."),
        ("asked", "user_msg", "which patch failed in pytest?"),
    ]
    for old, new in rename.items():
        texts = [(name, kind, text.replace(old, new)) for name, kind, text in texts]

    result = compiled([item(*one) for one in texts], budget=500)
    return [(one.item_id, one.reason.value, one.final_tokens) for one in result.receipts]


@pytest.mark.covers("AC-03", "NG-09")
def test_a_compile_decides_the_same_about_another_subject() -> None:
    decided = _outcome({})

    assert len({reason for _, reason, _ in decided}) > 2
    assert decided == _outcome(RENAMED)


@pytest.mark.covers("NG-01", "NG-03", "NG-04", "NG-07", "NG-08")
def test_a_request_changes_records_and_decisions_and_nothing_else() -> None:
    paths = [route.partition(" ")[2].removeprefix("/v1") for route in CHANGES]

    assert {path.split("/")[1] for path in paths} == CHANGED


@pytest.mark.covers("NG-01", "NG-08")
def test_no_page_is_a_canvas_or_an_editor() -> None:
    templates = sorted((ROOT / "web" / "hansard_web" / "templates").rglob("*.html"))
    found = [
        path.name
        for path in templates
        if re.search(r"<canvas|contenteditable|draggable=", path.read_text(encoding="utf-8"))
    ]

    assert len(templates) > 50
    assert found == []
    assert parse("<canvas></canvas>").all("canvas")  # such an element would be one of ours


@pytest.mark.covers("NG-03", "NG-04")
def test_what_is_recorded_belongs_to_the_store_and_to_no_account(schema: apsw.Connection) -> None:
    of_tokens = schema.execute(
        "SELECT list.name FROM pragma_table_list AS list, pragma_foreign_key_list(list.name) AS key"
        " WHERE list.schema = 'main' AND key.\"table\" = 'principal_token'"
    ).fetchall()

    assert {str(name) for (name,) in of_tokens} == {"browser_session", "sign_in_link"}


@pytest.mark.covers("NG-07")
def test_only_replays_and_calls_for_a_program_ask_a_model() -> None:
    calling = {
        path.relative_to(ROOT / "web" / "hansard_web").parts[0]
        for path in modules("hansard_web")
        for _, module in imports(path)
        if module.startswith("hansard_compiler.providers")
    }

    assert calling == CALLS_MODELS
    stores = [module for path in modules("hansard_store") for _, module in imports(path)]
    assert [one for one in stores if one.startswith("hansard_compiler.providers")] == []


def requirements() -> list[str]:
    """Everything that any extra of the distribution brings."""
    read: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = read["optional-dependencies"].items()
    return [*read["dependencies"], *(one for name, of in extras if name != "dev" for one in of)]


@pytest.mark.covers("NG-05", "NG-02", "ST-06", "ME-23")
def test_each_package_that_is_needed_was_reviewed() -> None:
    """A list of forbidden names misses the next one: what is new has to be added here, by hand."""
    names = {re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in requirements()}

    assert names - REVIEWED == set(), (
        "a database, an index of vectors or a queue? then it is not to be"
    )
    assert REVIEWED - names == set()


@pytest.mark.covers("NG-05", "ME-23")
def test_what_is_searched_is_searched_as_text(schema: apsw.Connection) -> None:
    virtual = schema.execute(
        "SELECT sql FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
    ).fetchall()

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
    of_the_browser = {"signin", "signout", "theme", "times", "messages", "mcp"}
    nouns = {route.partition(" ")[2].split("/")[1] for route in CHANGES} - {"v1"} - of_the_browser
    by_api = {
        route.partition(" ")[2].split("/")[2].removesuffix("s")
        for route in CHANGES
        if route.partition(" ")[2].startswith("/v1/")
    }

    assert len(nouns) >= 3
    assert {noun for noun in nouns if noun.removesuffix("s") not in by_api} == set()
