"""Two instrumentations that tell one call side by side, and calls that only look alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.rebuild import rebuild
from tests.collector.ingesting import Ingesting, span, traces

AGENT = 1
FRAMEWORK, CLIENT = "openinference.instrumentation.llama_index", "hansard"
TOKENS = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20}
ASKED = [{"role": "user", "parts": [{"type": "text", "content": "Where is order 7?"}]}]
SAID = [{"role": "assistant", "parts": [{"type": "text", "content": "In the post."}]}]

NOT_OF_A_FAILURE = {*TOKENS, "gen_ai.output.messages", "gen_ai.response.id"}


@pytest.fixture(params=["full_payloads", "metadata_only"])
def stored(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ingesting]:
    made = Ingesting(tmp_path, retention=request.param)
    yield made
    made.close()


@pytest.fixture
def worded(tmp_path: Path) -> Iterator[Ingesting]:
    """Return a store that keeps messages."""
    made = Ingesting(tmp_path)
    yield made
    made.close()


def call(
    number: int, *, start_s: float, duration_s: float = 1, tells: Mapping[str, Any] = TOKENS
) -> Span:
    """Return a call of one question and one answer; `tells` adds to it."""
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.input.messages": ASKED,
        "gen_ai.output.messages": SAID,
    }
    return span(number, AGENT, start_s=start_s, duration_s=duration_s, attributes=told | {**tells})


def recorded(number: int, *, start_s: float, **more: Any) -> tuple[str, Span]:
    """Return a call as a recorded client tells it: with the provider's id."""
    own = {"hansard.schema_version": 1, "gen_ai.response.id": f"chatcmpl-{number}"}
    tells = {**more.pop("tells", TOKENS), **own}
    return CLIENT, call(number, start_s=start_s, tells=tells, **more)


def framed(number: int, *, start_s: float, **more: Any) -> tuple[str, Span]:
    return FRAMEWORK, call(number, start_s=start_s, **more)


def send(stored: Ingesting, spans: Sequence[tuple[str, Span]]) -> None:
    for scope, one in spans:
        stored.send(traces([one], scope=scope))


def sums(stored: Ingesting) -> tuple[int, int | None]:
    row: tuple[int, int | None] = stored.one("SELECT model_calls, tokens_input FROM run")
    return row


@pytest.mark.parametrize("order", list(permutations(range(2))))
@pytest.mark.parametrize("late_s", [0.1, 5])
def test_a_stream_that_began_when_its_framework_span_had_ended_counts_once(
    stored: Ingesting, order: Sequence[int], late_s: float
) -> None:
    spans = [framed(2, start_s=1, duration_s=0.05), recorded(3, start_s=1 + late_s)]
    send(stored, [spans[index] for index in order])

    assert sums(stored) == (1, 100)
    assert stored.one("SELECT hex(span_id) FROM span WHERE flags & 1") == f"{2:016X}"
    rebuild(stored.folder)
    assert sums(stored) == (1, 100)


@pytest.mark.parametrize("told_by", ["neither", "client", "framework"])
def test_equal_messages_are_one_call_where_the_usage_is_not_told(
    worded: Ingesting, told_by: str
) -> None:
    none: Mapping[str, Any] = {}
    framework = TOKENS if told_by == "framework" else none
    client = TOKENS if told_by == "client" else none
    send(worded, [
        framed(2, start_s=1, duration_s=0.05, tells=framework),
        recorded(3, start_s=3, tells=client),
    ])  # fmt: skip

    assert worded.one("SELECT model_calls FROM run") == 1


@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_a_failure_that_two_tell_is_one_and_its_retry_another(
    worded: Ingesting, order: Sequence[int]
) -> None:
    for number, start_s in ((2, 1.0), (4, 3.0)):
        spans = [framed(number, start_s=start_s), recorded(number + 1, start_s=start_s + 1.5)]
        for _, one in spans:
            one.status.code = 2  # type: ignore[assignment]  # enum by number
            kept = [pair for pair in one.attributes if pair.key not in NOT_OF_A_FAILURE]
            del one.attributes[:]
            one.attributes.extend(kept)
        send(worded, [spans[index] for index in order])

    assert sums(worded) == (2, None)


@pytest.mark.parametrize("make", [framed, recorded])
def test_two_equal_calls_at_one_time_that_were_told_once_each_are_two(
    stored: Ingesting, make: Any
) -> None:
    send(stored, [make(2, start_s=1), make(3, start_s=1.001)])

    assert sums(stored) == (2, 200)


@pytest.mark.parametrize("client", [CLIENT, "openinference.instrumentation.openai"])
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_two_equal_calls_at_one_time_that_were_told_twice_each_are_two(
    worded: Ingesting, order: Sequence[int], client: str
) -> None:
    ids = [{"gen_ai.response.id": f"chatcmpl-{number}"} for number in (4, 5)]
    own = {"hansard.schema_version": 1} if client == CLIENT else {}
    spans = [
        framed(2, start_s=1, duration_s=0.05), framed(3, start_s=1.101, duration_s=0.05),
        (client, call(4, start_s=1.1, tells=TOKENS | own | ids[0])),
        (client, call(5, start_s=1.201, tells=TOKENS | own | ids[1])),
    ]  # fmt: skip
    send(worded, [spans[index] for index in order])

    assert sums(worded) == (2, 200)


def test_calls_whose_provider_gave_two_ids_are_two_whatever_they_say(worded: Ingesting) -> None:
    framework = framed(2, start_s=1, tells=TOKENS | {"gen_ai.response.id": "chatcmpl-other"})
    send(worded, [framework, recorded(3, start_s=1.2)])

    assert sums(worded) == (2, 200)


def test_equal_numbers_of_other_words_are_another_call(worded: Ingesting) -> None:
    other = [{"role": "assistant", "parts": [{"type": "text", "content": "Lost."}]}]
    tells = TOKENS | {"gen_ai.output.messages": other}
    send(worded, [framed(2, start_s=1, duration_s=0.05), recorded(3, start_s=3, tells=tells)])

    assert sums(worded) == (2, 200)


def test_an_equal_call_that_came_long_after_is_another(stored: Ingesting) -> None:
    send(stored, [framed(2, start_s=1), recorded(3, start_s=60)])

    assert sums(stored) == (2, 200)


def test_fifty_streams_at_one_time_count_fifty(worded: Ingesting) -> None:
    framework = [framed(2 + n, start_s=1 + n / 1000, duration_s=0.001) for n in range(50)]
    client = [recorded(102 + n, start_s=1.5 + n / 1000) for n in range(50)]
    send(worded, [*framework, *client])

    assert sums(worded) == (50, 5000)


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("has_tokens", [True, False])
def test_a_framework_span_that_an_exporter_cut_leaves_the_recorded_call_to_count(
    stored: Ingesting, order: Sequence[int], has_tokens: bool
) -> None:
    cut = [{"role": "user", "parts": [{"type": "text", "content": "the last of many messages"}]}]
    tells = {"gen_ai.input.messages": cut, "gen_ai.response.id": "chatcmpl-3"}
    outer = framed(2, start_s=1, duration_s=3, tells=(TOKENS if has_tokens else {}) | tells)
    scope, inner = recorded(3, start_s=2)
    inner.parent_span_id = outer[1].span_id
    agent = span(AGENT, None, start_s=0, duration_s=9, attributes={"gen_ai.agent.name": "clerk"})
    spans = [outer, (scope, inner), (CLIENT, agent)]

    send(stored, [spans[index] for index in order])

    assert sums(stored) == (1, 100)
    counted = "SELECT span_id FROM call JOIN span ON span.id = call.span WHERE counted = 1"
    assert stored.all(counted) == [(inner.span_id,)]
    rebuild(stored.folder)
    assert sums(stored) == (1, 100)
