"""Two instrumentations that report one call side by side, and calls that only look alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from hansard_collector.derivation.rebuild import rebuild
from tests.collector.clients.maker import CLIENT, TOKENS, Scoped, call, counted, send
from tests.collector.ingesting import Ingesting, span

AGENT = 1
FRAMEWORK = "openinference.instrumentation.llama_index"
ASKED = [{"role": "user", "parts": [{"type": "text", "content": "Where is order 7?"}]}]
ANSWERED = [{"role": "assistant", "parts": [{"type": "text", "content": "In the post."}]}]

NOT_OF_A_FAILURE = {*TOKENS, "gen_ai.output.messages", "gen_ai.response.id"}


@pytest.fixture(params=["full_payloads", "metadata_only"])
def stored(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ingesting]:
    made = Ingesting(tmp_path, retention=request.param)
    yield made
    made.close()


def report(number: int, *, attributes: Mapping[str, Any] = TOKENS, **more: Any) -> Scoped:
    """Return a call of one question and one answer; `attributes` adds to these."""
    worded = {"gen_ai.input.messages": ASKED, "gen_ai.output.messages": ANSWERED, **attributes}
    return call(number, AGENT, attributes=worded, **more)


def recorded(number: int, **more: Any) -> Scoped:
    """Return a call as a recorded client reports it: with the provider's id."""
    return report(number, scope=CLIENT, response_id=f"chatcmpl-{number}", **more)


def framed(number: int, **more: Any) -> Scoped:
    return report(number, scope=FRAMEWORK, **more)


@pytest.mark.parametrize("order", list(permutations(range(2))))
@pytest.mark.parametrize("late_s", [0.1, 5])
def test_a_stream_that_began_when_its_framework_span_had_ended_counts_once(
    stored: Ingesting, order: Sequence[int], late_s: float
) -> None:
    spans = [framed(2, start_s=1, duration_s=0.05), recorded(3, start_s=1 + late_s)]
    send(stored, [spans[index] for index in order])

    assert counted(stored) == (1, 100)
    assert stored.one("SELECT hex(span_id) FROM span WHERE flags & 1") == f"{2:016X}"
    rebuild(stored.folder)
    assert counted(stored) == (1, 100)


@pytest.mark.parametrize("reporter", ["neither", "client", "framework"])
def test_equal_messages_are_one_call_without_reported_usage(
    ingesting: Ingesting, reporter: str
) -> None:
    none: Mapping[str, Any] = {}
    framework = TOKENS if reporter == "framework" else none
    client = TOKENS if reporter == "client" else none
    send(ingesting, [
        framed(2, start_s=1, duration_s=0.05, attributes=framework),
        recorded(3, start_s=3, attributes=client),
    ])  # fmt: skip

    assert ingesting.one("SELECT model_calls FROM run") == 1


@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_a_failure_that_two_report_is_one_and_its_retry_another(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    for number, start_s in ((2, 1.0), (4, 3.0)):
        spans = [framed(number, start_s=start_s), recorded(number + 1, start_s=start_s + 1.5)]
        for _, one in spans:
            one.status.code = 2  # type: ignore[assignment]  # enum by number
            kept = [pair for pair in one.attributes if pair.key not in NOT_OF_A_FAILURE]
            del one.attributes[:]
            one.attributes.extend(kept)
        send(ingesting, [spans[index] for index in order])

    assert counted(ingesting) == (2, None)


@pytest.mark.parametrize("make", [framed, recorded])
def test_two_equal_calls_at_one_time_that_were_reported_once_each_are_two(
    stored: Ingesting, make: Any
) -> None:
    send(stored, [make(2, start_s=1), make(3, start_s=1.001)])

    assert counted(stored) == (2, 200)


@pytest.mark.parametrize("client", [CLIENT, "openinference.instrumentation.openai"])
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_two_equal_calls_at_one_time_that_were_reported_twice_each_are_two(
    ingesting: Ingesting, order: Sequence[int], client: str
) -> None:
    spans = [
        framed(2, start_s=1, duration_s=0.05), framed(3, start_s=1.101, duration_s=0.05),
        report(4, scope=client, start_s=1.1, response_id="chatcmpl-4"),
        report(5, scope=client, start_s=1.201, response_id="chatcmpl-5"),
    ]  # fmt: skip
    send(ingesting, [spans[index] for index in order])

    assert counted(ingesting) == (2, 200)


def test_calls_whose_provider_gave_two_ids_are_two_whatever_they_say(ingesting: Ingesting) -> None:
    framework = framed(2, start_s=1, response_id="chatcmpl-other")
    send(ingesting, [framework, recorded(3, start_s=1.2)])

    assert counted(ingesting) == (2, 200)


def test_equal_numbers_of_other_words_are_another_call(ingesting: Ingesting) -> None:
    other = [{"role": "assistant", "parts": [{"type": "text", "content": "Lost."}]}]
    later = recorded(3, start_s=3, attributes=TOKENS | {"gen_ai.output.messages": other})
    send(ingesting, [framed(2, start_s=1, duration_s=0.05), later])

    assert counted(ingesting) == (2, 200)


def test_an_equal_call_that_came_long_after_is_another(stored: Ingesting) -> None:
    send(stored, [framed(2, start_s=1), recorded(3, start_s=60)])

    assert counted(stored) == (2, 200)


def test_fifty_streams_at_one_time_count_fifty(ingesting: Ingesting) -> None:
    framework = [framed(2 + n, start_s=1 + n / 1000, duration_s=0.001) for n in range(50)]
    client = [recorded(102 + n, start_s=1.5 + n / 1000) for n in range(50)]
    send(ingesting, [*framework, *client])

    assert counted(ingesting) == (50, 5000)


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("has_tokens", [True, False])
def test_a_framework_span_that_an_exporter_cut_leaves_the_recorded_call_to_count(
    stored: Ingesting, order: Sequence[int], has_tokens: bool
) -> None:
    cut = [{"role": "user", "parts": [{"type": "text", "content": "the last of many messages"}]}]
    reported = (TOKENS if has_tokens else {}) | {"gen_ai.input.messages": cut}
    outer = framed(2, start_s=1, duration_s=3, response_id="chatcmpl-3", attributes=reported)
    scope, inner = recorded(3, start_s=2)
    inner.parent_span_id = outer[1].span_id
    agent = span(AGENT, None, start_s=0, duration_s=9, attributes={"gen_ai.agent.name": "clerk"})
    spans = [outer, (scope, inner), (CLIENT, agent)]

    send(stored, [spans[index] for index in order])

    assert counted(stored) == (1, 100)
    sql = "SELECT span_id FROM call JOIN span ON span.id = call.span WHERE counted = 1"
    assert stored.all(sql) == [(inner.span_id,)]
    rebuild(stored.folder)
    assert counted(stored) == (1, 100)
