"""What a type checker sees of decorated functions: the functions as they were written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parent.parent.parent
SNIPPET = """
from collections.abc import AsyncIterator, Iterator
from typing import overload

import hansard

@hansard.agent
def bare(question: str, *, times: int = 1) -> list[str]:
    return [question] * times

@hansard.tool(name="called", call_id="id")
def called(question: str, id: str) -> int:
    return len(question)

@hansard.trace(kind="retriever")
async def coroutine(question: str) -> str:
    return question

@hansard.trace
def generator(count: int) -> Iterator[int]:
    yield count

@hansard.trace()
async def async_generator(count: int) -> AsyncIterator[int]:
    yield count

@overload
def many(value: int) -> int: ...
@overload
def many(value: str) -> str: ...
@hansard.trace
def many(value: int | str) -> int | str:
    return value

class Thing:
    @hansard.agent
    def method(self, a: int) -> str:
        return str(a)

    @hansard.tool
    @classmethod
    def outer_class(cls, a: int) -> "Thing":
        return cls()

    @classmethod
    @hansard.tool
    def inner_class(cls, a: int) -> "Thing":
        return cls()

    @hansard.tool()
    @staticmethod
    def outer_static(a: int) -> float:
        return a

    @staticmethod
    @hansard.tool(description="half")
    def inner_static(a: int) -> float:
        return a

reveal_type(bare)
reveal_type(called)
reveal_type(coroutine)
reveal_type(generator)
reveal_type(async_generator)
reveal_type(many("a"))
reveal_type(Thing().method)
reveal_type(Thing.inner_class)
reveal_type(Thing().outer_static)
reveal_type(Thing.inner_static)
with hansard.span("block", kind="rerank") as span:
    reveal_type(span.set_output)
bare(1)
called("a", id=2)
hansard.trace(kind="nonsense")
hansard.tool(effects="write")
"""

REVEALED = [
    "def (question: str, *, times: int =) -> list[str]",
    "def (question: str, id: str) -> int",
    "def (question: str) -> typing.Coroutine[Any, Any, str]",
    "def (count: int) -> typing.Iterator[int]",
    "def (count: int) -> typing.AsyncIterator[int]",
    "str",
    "def (a: int) -> str",
    "def (a: int) -> Thing",
    "def (a: int) -> float",
    "def (a: int) -> float",
    "def (value: Any)",
]
REFUSED = [
    'Argument 1 to "bare" has incompatible type "int"; expected "str"',
    'Argument "id" to "called" has incompatible type "int"; expected "str"',
    'No overload variant of "trace" matches',
    'Unexpected keyword argument "effects"',
]


@pytest.mark.covers("OT-02")
def test_a_type_checker_sees_the_functions_as_they_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET)
    monkeypatch.chdir(ROOT)

    told, _, _ = api.run(["--no-error-summary", "--hide-error-context", str(snippet)])

    told = re.sub(r"builtins\.|snippet\.(?!py)|collections\.abc\.", "", told)
    revealed = re.findall(r'Revealed type is "(.*)"', told)
    assert revealed == REVEALED
    errors = [line for line in told.splitlines() if ": error: " in line]
    assert len(errors) == len(REFUSED), told
    for refused in REFUSED:
        assert any(refused in error for error in errors), told
