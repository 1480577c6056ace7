"""The status of a run whose root span is always `ok`, in any order in which its spans arrive."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.derivation.rebuild import rebuild
from tests.collector.clients.maker import send
from tests.collector.ingesting import Ingesting, span, traces

AGENTS = "openinference.instrumentation.openai_agents"
OK, FAILED = 1, 2
MODEL = {"llm.model_name": "gpt-4o-mini", "llm.token_count.prompt": 10}


def step(
    number: int,
    parent: int,
    kind: str,
    *,
    status: int = OK,
    start_s: float | None = None,
    duration_s: float = 1,
) -> Span:
    attributes = {"openinference.span.kind": kind} | (MODEL if kind == "LLM" else {})
    return span(
        number, parent, status=status, start_s=start_s, duration_s=duration_s, attributes=attributes
    )


def workflow() -> Span:
    return step(1, 0, "AGENT", start_s=0, duration_s=20)


def status(ingesting: Ingesting, spans: Sequence[Span], *, scope: str = AGENTS) -> str:
    send(ingesting, [(scope, one) for one in spans])
    found: str = ingesting.one("SELECT status FROM run")
    rebuild(ingesting.folder)
    assert ingesting.one("SELECT status FROM run") == found
    return found


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_workflow_whose_only_call_failed_has_failed(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    spans = [
        workflow(),
        step(2, 1, "AGENT", status=FAILED, duration_s=3),
        step(3, 2, "LLM", status=FAILED),
    ]

    assert status(ingesting, [spans[index] for index in order]) == "error"


def test_an_agent_that_tries_a_failed_call_again_has_not_failed(ingesting: Ingesting) -> None:
    spans = [workflow(), step(2, 1, "AGENT", duration_s=5)]
    spans += [step(3, 2, "LLM", status=FAILED), step(4, 2, "LLM")]

    assert status(ingesting, spans) == "ok"


def test_an_agent_that_answers_without_the_call_that_failed_has_not_failed(
    ingesting: Ingesting,
) -> None:
    spans = [workflow(), step(2, 1, "AGENT", duration_s=5), step(3, 2, "LLM", status=FAILED)]

    assert status(ingesting, spans) == "ok"


def test_an_agent_after_the_one_that_failed_decides(ingesting: Ingesting) -> None:
    spans = [workflow(), step(2, 1, "AGENT", status=FAILED), step(3, 1, "AGENT", start_s=6)]

    assert status(ingesting, spans) == "ok"


def test_an_agent_that_is_used_as_a_tool_does_not_decide(ingesting: Ingesting) -> None:
    spans = [workflow(), step(2, 1, "AGENT", duration_s=9)]
    spans += [step(3, 2, "TOOL", duration_s=3), step(4, 3, "AGENT", status=FAILED)]

    assert status(ingesting, spans) == "ok"


def test_a_workflow_that_ended_by_a_guardrail_has_failed_though_its_calls_have_not(
    ingesting: Ingesting,
) -> None:
    spans = [workflow(), step(2, 1, "AGENT", status=FAILED, duration_s=5), step(3, 2, "LLM")]

    assert status(ingesting, spans) == "error"


def test_the_status_of_another_librarys_root_counts(ingesting: Ingesting) -> None:
    spans = [workflow(), step(2, 1, "AGENT", status=FAILED, duration_s=3)]

    assert status(ingesting, spans, scope="openinference.instrumentation.crewai") == "ok"


def test_a_model_that_the_response_names_is_not_shown_as_asked_for(ingesting: Ingesting) -> None:
    served = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gemini-2.5-flash-001",
        "input.value": '{"contents": [{"parts": [{"text": "Hi"}]}]}',
        "output.value": '{"candidates": [], "model_version": "gemini-2.5-flash-001"}',
    }
    ingesting.send(traces([span(1, attributes=served)], scope="openinference"))

    row = ingesting.one("SELECT request_model, response_model FROM call")
    assert row == (None, "gemini-2.5-flash-001")


def test_dropped_attributes_of_a_span_are_noted_once(ingesting: Ingesting) -> None:
    cut = step(1, 0, "LLM")
    cut.dropped_attributes_count = 3
    ingesting.send(traces([cut], scope=AGENTS))

    notes = ingesting.one("SELECT notes FROM span").split("\n")

    [note] = [note for note in notes if "dropped" in note]
    assert note.startswith("3 attributes were dropped by the sender's SDK")
