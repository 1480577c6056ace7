"""What is kept of arguments, results and errors: by retention mode, and whatever they are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

import hansard
from hansard_compiler.retention_modes import RetentionMode
from tests.instrumentation.recording import Recorded, attributes, content, recording

SECRET = "sk-proj-" + "Ab3xK9mPq7Lw2Zt5" * 3
WORDS = "the words of a user"


def everything(span: ReadableSpan) -> str:
    """Return all that would leave the process with a span, as one text."""
    return str(span.to_json())


@hansard.agent
def leak(words: str, secret: str) -> None:
    with hansard.span("within", attributes={"note": f"{words} {secret}", "session.id": "s-1"}) as s:
        s.set_output({"words": words, "secret": secret})
        s.add_event("told", {"note": f"{words} {secret}"})
    raise LookupError(f"{words}: {secret}")


def leaked(retention: RetentionMode) -> Recorded:
    with recording(retention=retention) as recorded, pytest.raises(LookupError):
        leak(WORDS, SECRET)
    return recorded


@pytest.mark.covers("OT-17")
def test_secrets_are_cut_out_and_the_rest_stays() -> None:
    spans = leaked(RetentionMode.REDACTED_PAYLOADS).spans

    for span in spans:
        assert SECRET not in everything(span)
        assert WORDS in everything(span)
        assert "‹redacted:" in str(attributes(span))
    [event] = spans[1].events
    assert WORDS in str((event.attributes or {})["exception.message"])


@pytest.mark.covers("OT-17")
def test_no_content_at_all_is_kept_in_metadata_only() -> None:
    recorded = leaked(RetentionMode.METADATA_ONLY)

    for span in recorded.spans:
        assert SECRET not in everything(span)
        assert WORDS not in everything(span)
    agent, within = recorded.named("invoke_agent leak"), recorded.named("within")
    assert "hansard.input" not in attributes(agent)
    assert attributes(agent)["hansard.input_size"] > len(WORDS + SECRET)
    assert attributes(agent)["error.type"] == "LookupError"
    assert dict(agent.events[0].attributes or {}) == {"exception.type": "LookupError"}
    assert agent.status.description == "LookupError"
    assert attributes(within)["session.id"] == "s-1"
    assert attributes(within)["note"] == f"‹withheld:{len(WORDS) + 1 + len(SECRET)}›"


@pytest.mark.covers("OT-17")
def test_everything_is_kept_in_full_payloads() -> None:
    for span in leaked(RetentionMode.FULL_PAYLOADS).spans:
        assert SECRET in everything(span)


@pytest.mark.parametrize("retention", RetentionMode)
def test_a_docstring_is_the_tools_description_where_content_is_kept(
    retention: RetentionMode,
) -> None:
    @hansard.tool
    def look() -> None:
        """Look it up in the big book."""

    with recording(retention=retention) as recorded:
        look()

    described = attributes(recorded.only())["gen_ai.tool.description"]
    is_kept = retention is not RetentionMode.METADATA_ONLY
    assert (described == "Look it up in the big book.") is is_kept


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise SystemExit(name)

    def __repr__(self) -> str:
        raise SystemExit

    __len__ = __bool__ = __iter__ = __eq__ = __repr__  # type: ignore[assignment]
    __hash__ = object.__hash__


def test_an_object_that_refuses_everything_goes_through_unchanged() -> None:
    hostile = Hostile()

    @hansard.tool
    def same(value: Hostile) -> Hostile:
        return value

    with recording() as recorded:
        assert same(hostile) is hostile

    shown = content(recorded.only(), "gen_ai.tool.call.arguments")["value"]
    assert shown["$repr"] == "‹repr raised SystemExit›"


def test_an_endless_iterator_is_not_touched() -> None:
    def endless() -> Iterator[int]:
        number = 0
        while True:
            yield number
            number += 1

    @hansard.tool
    def first(numbers: Iterator[int]) -> int:
        return next(numbers)

    numbers = endless()
    with recording() as recorded:
        assert (first(numbers), next(numbers)) == (0, 1)

    shown = content(recorded.only(), "gen_ai.tool.call.arguments")["numbers"]
    assert shown["$type"] == "generator"


def test_arguments_are_shown_as_they_were_when_the_call_began() -> None:
    @hansard.tool
    def add(items: list[int]) -> list[int]:
        items.append(2)
        return items

    items = [1]
    with recording() as recorded:
        add(items)
        items.append(3)

    span = recorded.only()
    assert content(span, "gen_ai.tool.call.arguments") == {"items": [1]}
    assert content(span, "gen_ai.tool.call.result") == [1, 2]


def test_fifty_megabytes_cost_a_bounded_time_and_are_cut() -> None:
    huge = "word " * 10_000_000

    @hansard.tool
    def length(text: str) -> int:
        return len(text)

    with recording() as recorded:
        started = time.process_time()
        assert length(huge) == 50_000_000
        spent = time.process_time() - started

    shown = content(recorded.only(), "gen_ai.tool.call.arguments")["text"]
    assert shown.endswith("characters more›")
    assert len(shown) < 17 << 20
    assert spent < 5  # 0.5 on a quiet machine


def test_a_failing_recorder_harms_nothing() -> None:
    @hansard.agent
    def answer() -> int:
        return 42

    with recording() as recorded:
        recorded.recorder.tracer = None  # type: ignore[assignment]
        assert answer() == 42

    with recording() as recorded:
        recorded.recorder.redactor = None  # type: ignore[assignment]
        with hansard.span("block", input="in") as span:
            span.set_attribute("a", "b")
            span.add_event("e", {"a": "b"})
        assert answer() == 42
    assert [span.name for span in recorded.spans] == ["block", "invoke_agent answer"]
