"""The names the SDK writes: in the tables of the documentation, and as upstream has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

import hansard
from hansard import semconv
from tests.instrumentation.compiling.desk import ITEMS, options, running
from tests.instrumentation.recording import attributes, recording

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "instrumentation" / "hansard"
PAGE = (ROOT / "docs" / "semantic-conventions.md").read_text(encoding="utf-8")
CONVENTION = set((ROOT / "tests" / "fixtures" / "gen_ai_names.txt").read_text().split())


class Name(NamedTuple):
    """One attribute, event or link name; in it, `*` stands for whatever the program chose."""

    name: str
    type: str  # as OpenTelemetry writes it; "content": see the page
    on: str
    meaning: str


TYPES: Final = {
    "string", "string[]", "int", "int[]", "double", "boolean", "string, number, boolean", "content",
    "span", "event", "event, boolean",
}  # fmt: skip
_ROW = re.compile(r"^\| `([a-z_0-9.*]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def _table(heading: str) -> tuple[Name, ...]:
    """Return the names of one of the page's tables."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return tuple(Name(*row) for row in _ROW.findall(section))


UPSTREAM, OWN = _table("Upstream names"), _table("Names of our own")
NAMES = (*UPSTREAM, *OWN)
_NAME = re.compile(r"(?:gen_ai|openai|hansard)(?:\.[a-z_0-9]+)+")
# Files, entry points, loggers and hosts.
NO_NAMES = {
    "hansard.toml", "hansard.commands", "hansard.embedded", "hansard.pipeline",
    "openai.azure.com",
    "hansard.hooks",  # a scope and a logger
}  # fmt: skip


def is_known(name: str) -> bool:
    """Whether the table has a name, or the beginning of names."""
    if any(fnmatchcase(name, known.name) for known in NAMES):
        return True
    return any(known.name.startswith(f"{name}.") for known in NAMES)


def literals() -> Iterator[str]:
    """Yield every text in the SDK's source that is spelt like a name."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value.rstrip(".")
                if _NAME.fullmatch(text) and not is_module(text):
                    yield text


def is_module(text: str) -> bool:
    path = ROOT / "instrumentation" / text.replace(".", "/")
    return text in NO_NAMES or path.is_dir() or path.with_suffix(".py").exists()


@pytest.mark.covers("DC-14")
@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.name)
def test_every_name_is_documented_with_its_type_and_meaning(name: Name) -> None:
    assert name.type in TYPES
    assert name.on.strip()
    assert name.meaning.strip()


@pytest.mark.covers("DC-14")
def test_no_name_is_documented_twice_or_outside_of_the_tables() -> None:
    listed = [name.name for name in NAMES]

    assert len(OWN) > len(UPSTREAM) > 40
    assert len(set(listed)) == len(listed)
    assert len(_ROW.findall(PAGE)) == len(listed)


@pytest.mark.covers("DC-14")
def test_every_name_in_the_source_is_in_the_table() -> None:
    found = set(literals())

    assert semconv.INPUT in found
    assert sorted(name for name in found if not is_known(name)) == []


def test_the_page_tells_the_versions_that_spans_carry() -> None:
    assert f"`{semconv.SCHEMA_URL}`" in PAGE
    assert f"| own names | version `{semconv.SCHEMA_VERSION}`" in PAGE


@pytest.mark.covers("OT-09")
def test_upstream_names_are_those_of_the_pinned_revision() -> None:
    attributes = [name.name for name in UPSTREAM if name.type != "event"]
    ours = {name for name in attributes if name.startswith(("gen_ai.", "openai."))}

    assert ours - CONVENTION == set()
    assert not [name.name for name in OWN if not name.name.startswith("hansard.")]


@pytest.mark.covers("OT-09")
def test_span_roles_have_the_names_of_the_conventions_own_package() -> None:
    """Agent, tool, model call, compile, policy and memory, held against OpenTelemetry's constants.

    The package is pinned, and nobody here writes it.
    """
    upstream = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)}
    operations = {one.value for one in gen_ai_attributes.GenAiOperationNameValues}

    @hansard.tool(call_id="id")
    def look(id: str) -> str:
        return "found"

    with running() as (spans, run), run.step("answer"):
        run.call_model(run.compile_step(ITEMS, **options()))
        look("call_1")

    told = {one.name: dict(one.attributes or {}) for one in spans}
    written = {key for one in told.values() for key in one if key.startswith("gen_ai.")}
    named = {
        one["gen_ai.operation.name"] for one in told.values() if "gen_ai.operation.name" in one
    }
    assert written - upstream == set()
    assert named == {"invoke_agent", "execute_tool", "chat"}
    assert named <= operations
    assert {"invoke_agent clerk", "execute_tool look", "hansard.compile"} <= told.keys()
    assert told["execute_tool look"]["gen_ai.tool.call.id"] == "call_1"


def test_what_decorators_and_runs_write_is_in_the_table() -> None:
    @hansard.tool(call_id="id")
    def tool(id: str) -> None:
        """Fail."""
        raise ValueError

    @hansard.agent
    def agent() -> list[int]:
        with pytest.raises(ValueError):  # noqa: PT011
            tool("call_1")
        return list(numbers())

    @hansard.trace
    def numbers() -> Iterator[int]:
        yield 1

    with (
        recording() as recorded,
        hansard.start_run(
            agent_name="clerk", domain="sales", user_goal="an answer", metadata={"tier": "gold"}
        ) as run,
    ):
        agent()
        with run.step("think", metadata={"n": 1}):
            run.record_tool_call("look", {"a": 1}, call_id="call_2")

    written = {key for span in recorded.spans for key in attributes(span)}
    written |= {event.name for span in recorded.spans for event in span.events}
    written |= {
        key for span in recorded.spans for event in span.events for key in event.attributes or {}
    }
    assert len(written) > 20
    assert sorted(key for key in written if not is_known(key)) == []
