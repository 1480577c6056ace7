"""A span that is reported again without attributes does not wipe what it told before."""

from __future__ import annotations

from itertools import permutations

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.derivation.rebuild import rebuild
from tests.collector.ingesting import Ingesting, span, traces

CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o-mini",
    "gen_ai.usage.input_tokens": 5,
    "gen_ai.usage.output_tokens": 2,
}
SHOWN = "SELECT role, model, tokens_input, end_ns IS NULL FROM span"


@pytest.mark.parametrize("duration_s", [0.5, 1, 30])
@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_whatever_the_bare_report_ends_the_one_with_attributes_is_shown(
    ingesting: Ingesting, duration_s: float, order: tuple[int, int]
) -> None:
    reports = [span(1, attributes=CHAT), span(1, duration_s=duration_s, status=1)]
    for index in order:
        ingesting.send(traces([reports[index]]))

    assert ingesting.all(SHOWN) == [("llm", "gpt-4o-mini", 5, 0)]
    assert ingesting.one("SELECT model_calls, tokens_input FROM run") == (1, 5)
    assert ingesting.one("SELECT count(*) FROM span_duplicate") == 1


def bare_end() -> Span:
    return span(1, duration_s=2, status=2)


def test_an_end_without_attributes_closes_the_step_with_what_its_start_told(
    ingesting: Ingesting,
) -> None:
    ingesting.send(traces([span(1, duration_s=None, attributes=CHAT)]))
    ingesting.send(traces([bare_end()]))

    assert ingesting.all(SHOWN) == [("llm", "gpt-4o-mini", 5, 0)]
    assert ingesting.one("SELECT status, model_calls FROM run") == ("error", 1)
    rebuild(ingesting.folder)
    assert ingesting.all(SHOWN) == [("llm", "gpt-4o-mini", 5, 0)]


def test_the_same_end_again_is_a_duplicate(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1, duration_s=None, attributes=CHAT)]))
    for _ in range(2):
        ingesting.send(traces([bare_end()]))

    assert ingesting.all(SHOWN) == [("llm", "gpt-4o-mini", 5, 0)]
    assert ingesting.ledger()["duplicate"] == 1
