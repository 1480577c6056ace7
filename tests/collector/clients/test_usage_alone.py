"""Usage beside a call, without words, operation or id, is an account of that call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.collector.ingesting import Ingesting, span, traces

AGENT, CALL, USAGE, OTHER = 1, 2, 3, 4
MODEL = {"gen_ai.request.model": "gpt-4o-mini"}
TOKENS = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20}
CHAT = {"gen_ai.operation.name": "chat", **MODEL, **TOKENS}


def turn(*below: Span) -> list[Span]:
    return [span(AGENT, start_s=0, attributes={"gen_ai.operation.name": "invoke_agent"}), *below]


def usage(number: int = USAGE, *, start_s: float = 2.1, **tokens: int) -> Span:
    told = {f"gen_ai.usage.{name}": count for name, count in tokens.items()}
    return span(
        number, AGENT, name="record_usage", start_s=start_s, duration_s=0,
        attributes={"gen_ai.response.model": "gpt-4o-mini-2024-07-18", **(told or TOKENS)},
    )  # fmt: skip


def sums(ingesting: Ingesting) -> tuple[int, int, int]:
    row: tuple[int, int, int] = ingesting.one(
        "SELECT model_calls, tokens_input, tokens_output FROM run"
    )
    return row


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_usage_beside_its_call_counts_once_in_any_order(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    spans = turn(span(CALL, AGENT, start_s=1, attributes=CHAT), usage())
    for index in order:
        ingesting.send(traces([spans[index]]))

    assert sums(ingesting) == (1, 100, 20)
    assert ingesting.one("SELECT flags & 1 FROM span WHERE name = 'record_usage'")


@pytest.mark.parametrize("parent", [AGENT, CALL])
@pytest.mark.parametrize(
    ("taken", "given"),
    [
        ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
        ("llm.usage.prompt_tokens", "llm.usage.completion_tokens"),
        ("llm.token_count.prompt", "llm.token_count.completion"),
    ],
)
def test_usage_under_other_names_counts_once(
    ingesting: Ingesting, taken: str, given: str, parent: int
) -> None:
    account = span(
        USAGE, parent, name="record_usage", start_s=1.5, duration_s=0,
        attributes={taken: 100, given: 20},
    )  # fmt: skip
    ingesting.send(traces(turn(span(CALL, AGENT, start_s=1, attributes=CHAT), account)))

    assert sums(ingesting) == (1, 100, 20)


def test_usage_with_other_numbers_is_a_call_that_nobody_else_tells(ingesting: Ingesting) -> None:
    other = usage(input_tokens=7, output_tokens=3)
    ingesting.send(traces(turn(span(CALL, AGENT, start_s=1, attributes=CHAT), other)))

    assert sums(ingesting) == (2, 107, 23)


def test_usage_with_no_call_beside_it_is_the_call(ingesting: Ingesting) -> None:
    ingesting.send(traces(turn(usage())))

    assert sums(ingesting) == (1, 100, 20)


def test_usage_long_after_a_call_with_its_numbers_is_another(ingesting: Ingesting) -> None:
    late = usage(start_s=60)
    ingesting.send(traces(turn(span(CALL, AGENT, start_s=1, attributes=CHAT), late)))

    assert sums(ingesting) == (2, 200, 40)


def test_two_equal_calls_with_two_accounts_are_two(ingesting: Ingesting) -> None:
    calls = [span(CALL, AGENT, start_s=1, attributes=CHAT), usage(start_s=2.1)]
    again = [span(OTHER, AGENT, start_s=3, attributes=CHAT), usage(5, start_s=4.1)]
    ingesting.send(traces(turn(*calls)))
    ingesting.send(traces(again))

    assert sums(ingesting) == (2, 200, 40)


@pytest.mark.parametrize("above", [CALL, USAGE])
def test_usage_above_or_below_its_call_is_no_call_either(ingesting: Ingesting, above: int) -> None:
    below = USAGE if above == CALL else CALL
    said = {
        CALL: CHAT | {"gen_ai.output.messages": [{"role": "assistant", "content": "It is warm."}]},
        USAGE: MODEL | TOKENS,
    }
    outer = span(above, AGENT, name=f"s{above}", start_s=1, duration_s=3, attributes=said[above])
    inner = span(below, above, name=f"s{below}", start_s=2, attributes=said[below])
    ingesting.send(traces(turn(outer, inner)))

    assert sums(ingesting) == (1, 100, 20)
    assert ingesting.one("SELECT name FROM span WHERE role = 'llm' AND flags & 1 = 0") == f"s{CALL}"


def test_of_a_failed_call_told_twice_the_span_with_the_words_is_the_call(
    ingesting: Ingesting,
) -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": "hello"}]}]
    outer = span(CALL, AGENT, name="outer", start_s=1, duration_s=3, status=2, attributes=MODEL)
    inner = span(
        USAGE, CALL, name="inner", start_s=2, status=2,
        attributes=MODEL | {"gen_ai.operation.name": "chat", "gen_ai.input.messages": asked},
    )  # fmt: skip
    ingesting.send(traces(turn(outer, inner)))

    assert ingesting.one("SELECT model_calls FROM run") == 1
    assert ingesting.one("SELECT name FROM span WHERE role = 'llm' AND flags & 1 = 0") == "inner"


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_root_that_tells_the_whole_gives_the_rest_that_its_calls_leave_out(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    agent = {"entity.type": "agent", "entity.name": "a", "ai.model.name": "gpt-4o-mini"}
    whole = agent | {"usage.prompt_tokens": 258, "usage.completion_tokens": 54}
    step = agent | {"span.type": "llm", "llm.model": "gpt-4o-mini"}
    spans = [
        span(AGENT, start_s=0, duration_s=9, attributes=whole),
        span(CALL, AGENT, start_s=1, attributes=step | {
            "llm.usage.prompt_tokens": 157, "llm.usage.completion_tokens": 31}),
        span(USAGE, AGENT, start_s=3, attributes=step | {
            "llm.usage.prompt_tokens": 1, "llm.usage.completion_tokens": 1}),
    ]  # fmt: skip
    for index in order:
        ingesting.send(traces([spans[index]], scope="@voltagent/core"))

    assert sums(ingesting) == (2, 258, 54)
    assert ingesting.one("SELECT cost_usd_nano FROM run") == 258 * 150 + 54 * 600
