"""`hansard.span()`: a block as a step."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.trace import StatusCode, get_current_span

import hansard
from tests.instrumentation.recording import attributes, recording

SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3


def test_a_block_is_a_step_with_what_is_said_of_it() -> None:
    with recording() as recorded:
        with hansard.span("rank", kind="rerank", input=[2, 1], attributes={"k": 5}) as span:
            assert get_current_span() is span.otel
            span.set_attribute("how", {"by": "score"})
            span.add_event("sorted", {"moves": 1})
            span.set_output([1, 2])
            step_id = span.step_id
        assert not get_current_span().get_span_context().is_valid

    ended = recorded.only()
    assert ended.name == "rank"
    assert attributes(ended) == {
        "hansard.kind": "rerank",
        "hansard.schema_version": "1",
        "hansard.input": "[2,1]",
        "hansard.output": "[1,2]",
        "k": 5,
        "how": '{"by":"score"}',
    }
    assert [(e.name, dict(e.attributes or {})) for e in ended.events] == [("sorted", {"moves": 1})]
    assert ended.context is not None
    assert step_id == f"{ended.context.trace_id:032x}-{ended.context.span_id:016x}"


def test_an_exception_leaves_the_block_unchanged_and_is_told() -> None:
    refusal = ValueError("no")
    with (
        recording() as recorded,
        pytest.raises(ValueError, match="no") as caught,
        hansard.span("fails"),
    ):
        raise refusal

    assert caught.value is refusal
    assert recorded.only().status.status_code is StatusCode.ERROR


def test_an_exception_that_the_block_handles_is_an_event_and_no_failure() -> None:
    with recording() as recorded, hansard.span("retries") as span:
        span.record_error(ValueError("at first"))

    assert recorded.only().status.status_code is StatusCode.UNSET
    assert [event.name for event in recorded.only().events] == ["exception"]


def test_an_async_block_nests_in_the_one_around_it() -> None:
    async def work() -> None:
        async with hansard.span("outer"):
            await asyncio.sleep(0)
            async with hansard.span("inner"):
                await asyncio.sleep(0)

    with recording() as recorded:
        asyncio.run(work())

    inner, outer = recorded.named("inner"), recorded.named("outer")
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id


def test_without_init_a_block_runs_and_nothing_said_of_it_fails() -> None:
    with hansard.span("nothing", input=1) as span:
        span.set_attribute("a", object())
        span.set_output(object())
        span.add_event("e")
        span.record_error(ValueError())

        assert span.step_id == ""
        assert not span.otel.is_recording()


def test_a_program_judges_the_step_that_is_open() -> None:
    hansard.score("before", 1)  # without init(), and without a step: nothing
    with recording() as recorded:
        hansard.score("nowhere", 1)
        with hansard.span("answer"):
            hansard.score("correctness", 1, label="pass", explanation="the key is " + SECRET)
            hansard.score("tone", label="kind")

    [first, second] = recorded.only().events
    assert first.name == second.name == "gen_ai.evaluation.result"
    assert dict(second.attributes or {}) == {
        "gen_ai.evaluation.name": "tone",
        "gen_ai.evaluation.score.label": "kind",
    }
    told = dict(first.attributes or {})
    assert told["gen_ai.evaluation.score.value"] == 1.0
    assert SECRET not in str(told["gen_ai.evaluation.explanation"])


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_an_integer_of_more_than_64_bits_is_sent_as_its_digits(number: int) -> None:
    with (
        recording() as recorded,
        hansard.start_run("clerk", "research", "the goal", metadata={"n": number}),
        hansard.span("step", attributes={"n": number, "list": [1, number], "k": 2**63 - 1}),
    ):
        pass

    sent = encode_spans(recorded.spans)
    found = {
        one.key: one.value
        for scope in sent.resource_spans[0].scope_spans
        for span in scope.spans
        for one in span.attributes
    }
    assert found["n"].string_value == str(number)
    assert found["k"].int_value == 2**63 - 1
    assert [one.string_value for one in found["list"].array_value.values] == ["1", str(number)]
    assert found["hansard.run.metadata.n"].string_value == str(number)
