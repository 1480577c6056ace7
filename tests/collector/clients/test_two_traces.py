"""A call that two traces report is counted in one of them; calls that only look alike are not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import permutations
from typing import Any

import pytest

from hansard_collector.derivation.rebuild import rebuild
from hansard_collector.derivation.verification import verify_derived
from hansard_store.database.connections import open_for_maintenance
from hansard_store.maintenance.deletion import delete_run
from tests.collector.clients.maker import CLIENT, Scoped, call, counted, send
from tests.collector.ingesting import Ingesting, span, traces

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))
GATEWAY = "litellm"
ID = "chatcmpl-of-the-provider"


def reported(trace_id: bytes, number: int, parent: int = 0, **more: Any) -> Scoped:
    """Return the one call as the gateway's own instrumentation reports it, unless overridden."""
    same = {"scope": GATEWAY, "start_s": 1, "response_id": ID}
    return call(number, parent, trace_id=trace_id, **{**same, **more})


def recorded(trace_id: bytes, number: int, parent: int = 0, **more: Any) -> Scoped:
    """Return the one call as the client within the gateway recorded it, unless overridden."""
    within = {"scope": CLIENT, "start_s": 1.1, "duration_s": 0.8}
    return reported(trace_id, number, parent, **{**within, **more})


def invoked(trace_id: bytes, number: int) -> Scoped:
    attributes = {"gen_ai.operation.name": "invoke_agent"}
    return "agent", span(number, trace_id=trace_id, start_s=0, duration_s=9, attributes=attributes)


@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_a_call_of_two_traces_counts_where_it_was_recorded(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    spans = [reported(A, 1), recorded(B, 2)]
    send(ingesting, [spans[index] for index in order])

    assert counted(ingesting, A) == (0, None)
    assert counted(ingesting, B) == (1, 100)


def test_two_traces_of_one_request_are_counted_once(ingesting: Ingesting) -> None:
    request = traces([reported(A, 1)[1]], scope=GATEWAY)
    request.MergeFrom(traces([recorded(B, 2)[1]], scope=CLIENT))
    ingesting.send(request)

    assert counted(ingesting) == (1, 100)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_an_agents_run_keeps_its_call_and_a_clients_own_trace_does_not(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    spans = [invoked(A, 1), reported(A, 2, 1), recorded(B, 3)]
    send(ingesting, [spans[index] for index in order])

    assert counted(ingesting, A) == (1, 100)
    assert counted(ingesting, B) == (0, None)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_span_that_names_the_response_may_be_the_second_one_of_its_run(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    wrapper = reported(A, 1, scope="wrapper", response_id=None)
    spans = [
        wrapper,
        reported(A, 2, 1, start_s=1.1, duration_s=0.7),
        reported(B, 3, scope="callback"),
    ]
    send(ingesting, [spans[index] for index in order])

    assert counted(ingesting, A) == (1, 100)
    assert counted(ingesting, B) == (0, None)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_call_of_three_traces_is_one(ingesting: Ingesting, order: Sequence[int]) -> None:
    spans = [reported(A, 1), reported(C, 2, scope="other", start_s=1.01), recorded(B, 3)]
    send(ingesting, [spans[index] for index in order])

    assert counted(ingesting, B) == counted(ingesting) == (1, 100)


@pytest.mark.parametrize(
    "other",
    [
        recorded(B, 2, response_id="chatcmpl-other"),
        recorded(B, 2, response_id=None),
        recorded(B, 2, start_s=2.5),  # after the first one's end
        recorded(B, 2, model="gpt-5"),
        recorded(B, 2, start_s=1.5, duration_s=1, attributes={"gen_ai.usage.input_tokens": 7}),
        reported(B, 2),  # one instrumentation reports each call once
    ],
    ids=["id", "no id", "later", "model", "usage", "instrumentation"],
)
def test_calls_that_differ_are_two(ingesting: Ingesting, other: Scoped) -> None:
    send(ingesting, [reported(A, 1), other])

    assert counted(ingesting)[0] == 2


def test_two_programs_that_get_one_id_made_two_calls(ingesting: Ingesting) -> None:
    send(ingesting, [reported(A, 1)], service="one")
    send(ingesting, [recorded(B, 2)], service="another")

    assert counted(ingesting) == (2, 200)


@pytest.mark.parametrize("seed", range(6))
def test_a_scripted_model_that_always_gives_one_id_loses_no_call(
    ingesting: Ingesting, seed: int
) -> None:
    """Twelve calls at one time, each reported by two instrumentations."""
    spans = []
    for number in range(12):
        start_s = 1 + number / 100
        spans.append(reported(bytes([10 + number]) * 16, 10 + number, start_s=start_s))
        spans.append(recorded(bytes([40 + number]) * 16, 40 + number, start_s=start_s + 0.001))
    ordered = spans[seed * 4 :] + spans[: seed * 4]
    send(ingesting, ordered[::-1] if seed % 2 else ordered)

    assert counted(ingesting) == (12, 1200)


def test_what_is_deleted_counts_no_more_and_the_other_trace_does(ingesting: Ingesting) -> None:
    send(ingesting, [reported(A, 1), recorded(B, 2)])

    with closing(open_for_maintenance(ingesting.folder)) as connection:
        delete_run(connection, B, reason="by hand")

    assert counted(ingesting, A) == (1, 100)
    assert ingesting.one("SELECT flags FROM span") == 0


def test_a_rebuild_and_a_deep_verification_derive_the_same(ingesting: Ingesting) -> None:
    send(
        ingesting, [recorded(B, 2), invoked(A, 1), reported(A, 3, 1), reported(C, 4, scope="other")]
    )
    before = ingesting.all("SELECT trace_id, model_calls, tokens_input FROM run ORDER BY 1")

    found = verify_derived(ingesting.folder)
    rebuild(ingesting.folder)

    assert found == []
    assert ingesting.all("SELECT trace_id, model_calls, tokens_input FROM run ORDER BY 1") == before
    assert counted(ingesting) == (1, 100)


def test_a_richer_report_of_another_call_acquits(ingesting: Ingesting) -> None:
    send(ingesting, [reported(A, 1), recorded(B, 2)])
    assert counted(ingesting) == (1, 100)

    send(ingesting, [recorded(B, 2, duration_s=3, response_id="chatcmpl-other")])

    assert counted(ingesting) == (2, 200)


def test_a_failed_trace_of_its_own_stays_failed_where_its_call_counts_elsewhere(
    ingesting: Ingesting,
) -> None:
    failed = reported(A, 1)
    failed[1].status.code = 2  # type: ignore[assignment]  # enum by number
    send(ingesting, [failed, recorded(B, 2)])

    assert ingesting.one("SELECT status FROM run WHERE trace_id = ?", A) == "error"


def test_a_root_that_reports_the_whole_keeps_it_when_the_other_trace_is_deleted(
    ingesting: Ingesting,
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
    send(ingesting, [invoked(B, 3), recorded(B, 4, 3), (scope, root), (scope, step_of_root)])
    assert counted(ingesting) == (1, 258)

    with closing(open_for_maintenance(ingesting.folder)) as connection:
        delete_run(connection, B, reason="by hand")

    assert counted(ingesting, A) == (1, 258)
