"""`hansard.testing`: what is recorded, in memory, the same in every run; nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN, get_current_span

import hansard
from hansard._runtime import recorder as _state
from hansard.testing import START_NS, TICK_NS, Spans, capture


@hansard.tool
def find_order(number: int) -> str:
    if number < 0:
        raise LookupError(f"no order {number}")
    return "in the post"


@hansard.agent
def clerk(question: str) -> str:
    with hansard.span("think") as span:
        span.add_event("thought", {"about": question})
    return find_order(7)


def test_the_snapshot_is_plain_data() -> None:
    with capture() as spans:
        clerk("Where is it?")

    wanted = ("gen_ai.tool.name", "about", "hansard.output")
    assert spans.tree(attributes=wanted) == [
        {
            "name": "invoke_agent clerk",
            "attributes": {"hansard.output": '"in the post"'},
            "children": [
                {
                    "name": "think",
                    "events": [{"name": "thought", "attributes": {"about": "Where is it?"}}],
                },
                {
                    "name": "execute_tool find_order",
                    "attributes": {"gen_ai.tool.name": "find_order"},
                },
            ],
        }
    ]


def test_every_run_has_the_same_ids_and_times() -> None:
    def told() -> list[tuple[object, ...]]:
        with capture() as spans:
            clerk("Where is it?")
        return [(span.name, span.context, span.start_time, span.end_time,
                 [event.timestamp for event in span.events]) for span in spans]  # fmt: skip

    first, second = told(), told()

    assert first == second
    root = first[0]
    assert root[2:4] == (START_NS + TICK_NS, START_NS + 6 * TICK_NS)
    think = first[1]
    assert think[4] == [START_NS + 2 * TICK_NS + 1_000]


def test_failed_and_open_spans_say_so() -> None:
    with capture() as spans:
        run = hansard.start_run("clerk")
        with pytest.raises(LookupError):
            find_order(-1)
        during = spans.text("error.type")
        run.end()

    assert during == (
        "invoke_agent clerk [open]\n  execute_tool find_order [error] error.type=LookupError\n"
    )


def test_content_is_found_wherever_it_is_kept() -> None:
    long = "x" * 5_000
    with capture() as spans:
        clerk(long)

    assert spans.content("invoke_agent clerk", "hansard.input") == f'{{"question":"{long}"}}'
    assert spans.content("invoke_agent clerk", "hansard.output") == '"in the post"'
    assert spans.content("invoke_agent clerk", "hansard.nothing") is None
    assert [len(data) for data in spans.payloads.values()] == [5_015]


@pytest.mark.parametrize("name", ["execute_tool find_order", "nobody"])
def test_asking_for_one_span_that_is_not_one_names_those_there_are(name: str) -> None:
    with capture() as spans:
        find_order(1)
        find_order(2)

    with pytest.raises(LookupError, match="there are \\['execute_tool find_order'\\]"):
        spans.one(name)


def test_instrumentors_can_be_given_the_provider() -> None:
    with capture() as spans, hansard.start_run("clerk", conversation_id="c-1"):
        assert spans.provider is not None
        with spans.provider.get_tracer("another").start_as_current_span("chat gpt"):
            pass

    assert spans.text("gen_ai.conversation.id") == (
        "invoke_agent clerk gen_ai.conversation.id=c-1\n  chat gpt gen_ai.conversation.id=c-1\n"
    )


def test_retention_holds_in_tests_too() -> None:
    with capture(retention="metadata_only") as spans:
        clerk("Where is it?")

    assert "Where is it?" not in str(spans.tree())
    assert "hansard.input_size" in str(spans.tree())


def test_nothing_stays_behind() -> None:
    before = (_state.active(), trace.get_tracer_provider(), otel_context.get_current())

    with pytest.raises(KeyError), capture() as spans, hansard.start_run("clerk"):
        raise KeyError
    clerk("after")

    assert (_state.active(), trace.get_tracer_provider(), otel_context.get_current()) == before
    assert spans.text() == "invoke_agent clerk [error]\n"


def test_a_block_inside_another_records_apart() -> None:
    with capture() as outer:
        clerk("outer")
        with hansard.span("around"), capture() as inner:
            assert get_current_span() is INVALID_SPAN
            find_order(1)
        find_order(2)

    assert inner.text() == "execute_tool find_order\n"
    assert outer.text() == (
        "invoke_agent clerk\n  think\n  execute_tool find_order\naround\nexecute_tool find_order\n"
    )


@pytest.mark.slow
def test_tests_record_where_the_sdk_is_switched_off() -> None:
    script = "import hansard\nwith hansard.testing.capture() as s, hansard.span('x'): pass\n"
    ended = subprocess.run(
        [sys.executable, "-c", script + "print(s.text(), end='')"],
        capture_output=True,
        text=True,
        env=os.environ | {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_SAMPLER": "always_off"},
        timeout=240,
    )

    assert ended.stdout == "x\n", ended.stderr


@pytest.fixture
def spans() -> Callable[[], Spans]:
    def record() -> Spans:
        with capture() as recorded:
            clerk("Where is it?")
        return recorded

    return record


def test_it_fits_a_fixture(spans: Callable[[], Spans]) -> None:
    assert len(spans()) == 3
