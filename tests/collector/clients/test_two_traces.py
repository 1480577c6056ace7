"""A call that two traces report is counted in one of them; calls that only look alike are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.rebuild import rebuild
from hansard_collector.verification.derived import verify_derived
from hansard_store.database import open_for_maintenance
from hansard_store.deletion import delete_run
from tests.collector.ingesting import Ingesting, span, traces

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))
TOKENS = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20}
GATEWAY, CLIENT = "litellm", "hansard"
ID = "chatcmpl-of-the-provider"
Sent = tuple[str, Span]


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Ingesting]:
    made = Ingesting(tmp_path)
    yield made
    made.close()


def call(
    trace_id: bytes,
    number: int,
    parent: int = 0,
    *,
    scope: str = GATEWAY,
    start_s: float = 1,
    duration_s: float = 1,
    response_id: str | None = ID,
    tells: Mapping[str, Any] = TOKENS,
    model: str = "gpt-4o-mini",
) -> Sent:
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model} | {**tells}
    if response_id is not None:
        told["gen_ai.response.id"] = response_id
    if scope == CLIENT:
        told["hansard.schema_version"] = 1
    made = span(
        number, parent, trace_id=trace_id, start_s=start_s, duration_s=duration_s, attributes=told
    )
    return scope, made


def recorded(trace_id: bytes, number: int, parent: int = 0, **more: Any) -> Sent:
    return call(
        trace_id, number, parent, scope=CLIENT, **{"start_s": 1.1, "duration_s": 0.8, **more}
    )


def step(trace_id: bytes, number: int, parent: int = 0) -> Sent:
    told = {"gen_ai.operation.name": "invoke_agent"}
    return "agent", span(
        number, parent, trace_id=trace_id, start_s=0, duration_s=9, attributes=told
    )


def send(stored: Ingesting, spans: Sequence[Sent], *, service: str = "svc") -> None:
    for scope, one in spans:
        stored.send(traces([one], scope=scope, service=service))


def sums(stored: Ingesting) -> tuple[int, int | None]:
    found: tuple[int, int | None] = stored.one(
        "SELECT sum(model_calls), sum(tokens_input) FROM run"
    )
    return found


def of_run(stored: Ingesting, trace_id: bytes) -> tuple[int, int | None]:
    sql = "SELECT model_calls, tokens_input FROM run WHERE trace_id = ?"
    found: tuple[int, int | None] = stored.one(sql, trace_id)
    return found


@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_a_call_of_two_traces_counts_where_it_was_recorded(
    stored: Ingesting, order: Sequence[int]
) -> None:
    spans = [call(A, 1), recorded(B, 2)]
    send(stored, [spans[index] for index in order])

    assert of_run(stored, A) == (0, None)
    assert of_run(stored, B) == (1, 100)


def test_two_traces_of_one_request_are_counted_once(stored: Ingesting) -> None:
    request = traces([call(A, 1)[1]], scope=GATEWAY)
    request.MergeFrom(traces([recorded(B, 2)[1]], scope=CLIENT))
    stored.send(request)

    assert sums(stored) == (1, 100)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_an_agents_run_keeps_its_call_and_a_clients_own_trace_does_not(
    stored: Ingesting, order: Sequence[int]
) -> None:
    spans = [step(A, 1), call(A, 2, 1), recorded(B, 3)]
    send(stored, [spans[index] for index in order])

    assert of_run(stored, A) == (1, 100)
    assert of_run(stored, B) == (0, None)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_span_that_names_the_response_may_be_the_second_one_of_its_run(
    stored: Ingesting, order: Sequence[int]
) -> None:
    wrapper = call(A, 1, scope="wrapper", response_id=None)
    spans = [wrapper, call(A, 2, 1, start_s=1.1, duration_s=0.7), call(B, 3, scope="callback")]
    send(stored, [spans[index] for index in order])

    assert of_run(stored, A) == (1, 100)
    assert of_run(stored, B) == (0, None)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_call_of_three_traces_is_one(stored: Ingesting, order: Sequence[int]) -> None:
    spans = [call(A, 1), call(C, 2, scope="other", start_s=1.01), recorded(B, 3)]
    send(stored, [spans[index] for index in order])

    assert of_run(stored, B) == sums(stored) == (1, 100)


@pytest.mark.parametrize(
    "other",
    [
        recorded(B, 2, response_id="chatcmpl-other"),
        recorded(B, 2, response_id=None),
        recorded(B, 2, start_s=2.5),  # after the first one's end
        recorded(B, 2, model="gpt-5"),
        recorded(B, 2, start_s=1.5, duration_s=1, tells={"gen_ai.usage.input_tokens": 7}),
        call(B, 2),  # one instrumentation reports each call once
    ],
    ids=["id", "no id", "later", "model", "usage", "instrumentation"],
)
def test_calls_that_differ_are_two(stored: Ingesting, other: Sent) -> None:
    send(stored, [call(A, 1), other])

    assert sums(stored)[0] == 2


def test_two_programs_that_get_one_id_made_two_calls(stored: Ingesting) -> None:
    send(stored, [call(A, 1)], service="one")
    send(stored, [recorded(B, 2)], service="another")

    assert sums(stored) == (2, 200)


@pytest.mark.parametrize("seed", range(6))
def test_a_scripted_model_that_always_gives_one_id_loses_no_call(
    stored: Ingesting, seed: int
) -> None:
    """Twelve calls at one time, each reported by two instrumentations."""
    spans = []
    for number in range(12):
        start_s = 1 + number / 100
        spans.append(call(bytes([10 + number]) * 16, 10 + number, start_s=start_s))
        spans.append(recorded(bytes([40 + number]) * 16, 40 + number, start_s=start_s + 0.001))
    ordered = spans[seed * 4 :] + spans[: seed * 4]
    send(stored, ordered[::-1] if seed % 2 else ordered)

    assert sums(stored) == (12, 1200)


def test_what_is_deleted_counts_no_more_and_the_other_trace_does(stored: Ingesting) -> None:
    send(stored, [call(A, 1), recorded(B, 2)])

    with closing(open_for_maintenance(stored.folder)) as connection:
        delete_run(connection, B, reason="by hand")

    assert of_run(stored, A) == (1, 100)
    assert stored.one("SELECT flags FROM span") == 0


def test_a_rebuild_and_a_deep_verification_derive_the_same(stored: Ingesting) -> None:
    send(stored, [recorded(B, 2), step(A, 1), call(A, 3, 1), call(C, 4, scope="other")])
    before = stored.all("SELECT trace_id, model_calls, tokens_input FROM run ORDER BY 1")

    found = verify_derived(stored.folder)
    rebuild(stored.folder)

    assert found == []
    assert stored.all("SELECT trace_id, model_calls, tokens_input FROM run ORDER BY 1") == before
    assert sums(stored) == (1, 100)


def test_a_richer_report_of_another_call_acquits(stored: Ingesting) -> None:
    send(stored, [call(A, 1), recorded(B, 2)])
    assert sums(stored) == (1, 100)

    send(stored, [recorded(B, 2, duration_s=3, response_id="chatcmpl-other")])

    assert sums(stored) == (2, 200)


def test_a_failed_trace_of_its_own_stays_failed_where_its_call_counts_elsewhere(
    stored: Ingesting,
) -> None:
    failed = call(A, 1)
    failed[1].status.code = 2  # type: ignore[assignment]  # enum by number
    send(stored, [failed, recorded(B, 2)])

    assert stored.one("SELECT status FROM run WHERE trace_id = ?", A) == "error"


def test_a_root_that_tells_the_whole_keeps_it_when_the_other_trace_is_deleted(
    stored: Ingesting,
) -> None:
    agent = {"entity.type": "agent", "entity.name": "a", "ai.model.name": "gpt-4o-mini"}
    whole = agent | {"usage.prompt_tokens": 258, "usage.completion_tokens": 54}
    own = agent | {
        "span.type": "llm", "llm.model": "gpt-4o-mini", "llm.usage.prompt_tokens": 100,
        "llm.usage.completion_tokens": 20,
    }  # fmt: skip
    root = span(1, trace_id=A, start_s=0, duration_s=9, attributes=whole)
    step_of_root = span(2, 1, trace_id=A, start_s=1, attributes=own | {"gen_ai.response.id": ID})
    scope = "@voltagent/core"
    send(stored, [step(B, 3), recorded(B, 4, 3), (scope, root), (scope, step_of_root)])
    assert sums(stored) == (1, 258)

    with closing(open_for_maintenance(stored.folder)) as connection:
        delete_run(connection, B, reason="by hand")

    assert of_run(stored, A) == (1, 258)
