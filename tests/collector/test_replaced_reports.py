"""A span that is sent again, richer or with other times: its run says what its spans say now."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.derivation.rebuild import rebuild
from hansard_collector.derivation.verification import verify_derived
from tests.collector.ingesting import Ingesting, is_rebuild_due, span, traces


def _agent(name: str, **more: str) -> dict[str, str]:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **more}


def _chat(text: str, **more: str) -> dict[str, str]:
    message = [{"role": "user", "parts": [{"type": "text", "content": text}]}]
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.input.messages": json.dumps(message),
        **more,
    }


_FIRST = [
    span(1, attributes=_agent("planner", **{"user.id": "ana", "session.id": "s1"})),
    span(2, 1, attributes=_chat("hello", **{"session.id": "s2", "user.id": "ben"})),
    span(3, 1, attributes=_chat("there")),
]


@pytest.mark.parametrize(
    "again",
    [
        pytest.param([span(1, duration_s=9, attributes=_agent("writer"))], id="another agent"),
        pytest.param([span(2, 1, duration_s=2, attributes=_chat("bye"))], id="another text"),
        pytest.param(
            [span(1, start_s=8, duration_s=9, attributes=_agent("planner"))], id="a later start"
        ),
        pytest.param(
            [span(1, 7, start_s=8, duration_s=9, attributes=_agent("planner"))], id="no root"
        ),
        pytest.param(
            [
                span(n, parent, start_s=8 + n, duration_s=9, attributes=_chat("later"))
                for n, parent in ((1, 0), (2, 1), (3, 1))
            ],
            id="all later",
        ),
        pytest.param(
            [span(2, 1, duration_s=3, attributes={**_chat("x"), "gen_ai.request.model": "o3"})],
            id="another model",
        ),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_run_holds_nothing_that_only_a_replaced_report_said(
    ingesting: Ingesting, again: list[Span], *, at_once: bool
) -> None:
    if at_once:
        ingesting.send(traces([*_FIRST, *again]))
    else:
        ingesting.send(traces(_FIRST))
        ingesting.send(traces(again))

    assert verify_derived(ingesting.folder) == []


def test_a_run_keeps_the_session_that_another_span_names(ingesting: Ingesting) -> None:
    ingesting.send(traces(_FIRST))

    ingesting.send(traces([span(1, duration_s=9, attributes=_agent("writer"))]))

    assert ingesting.one("SELECT conversation_id, user_id, agent_name FROM run") == (
        "s2", "ben", "writer",
    )  # fmt: skip
    assert ingesting.all("SELECT value FROM run_facet WHERE kind = 'agent'") == [("writer",)]


def test_a_report_that_ends_earlier_shortens_the_run(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1, duration_s=50)]))
    ingesting.send(traces([span(1, duration_s=2, attributes=_agent("planner"))]))

    assert ingesting.one("SELECT ended_ns - started_ns FROM run") == 2_000_000_000


def test_a_large_run_is_left_to_a_rebuild_that_the_store_knows_of(ingesting: Ingesting) -> None:
    children = [span(n, 1, attributes=_chat(f"question {n}")) for n in range(2, 400)]
    ingesting.send(traces([*_FIRST[:1], *children]))

    ingesting.send(traces([span(1, start_s=3, duration_s=9, attributes=_agent("writer"))]))
    is_due = is_rebuild_due(ingesting.folder)
    rebuild(ingesting.folder)

    assert is_due
    assert not is_rebuild_due(ingesting.folder)
    assert verify_derived(ingesting.folder) == []


_ATTRIBUTES = st.sampled_from(
    [
        {},
        _agent("planner", **{"user.id": "ana"}),
        _agent("writer", **{"session.id": "s1"}),
        _chat("hello", **{"session.id": "s2"}),
        {**_chat("there"), "gen_ai.response.model": "o3", "gen_ai.usage.input_tokens": "7"},
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"},
    ]
)


@st.composite
def _reports(draw: st.DrawFn) -> Span:
    number = draw(st.integers(1, 3))
    duration: Any = draw(st.sampled_from([None, 1, 5]))
    start = draw(st.sampled_from([0, 2, 4]))
    status = draw(st.sampled_from([0, 2]))
    parent = draw(st.sampled_from([0, 1])) if number > 1 else 0
    attributes = draw(_ATTRIBUTES)
    return span(
        number, parent, start_s=start, duration_s=duration, status=status, attributes=attributes
    )


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(sent=st.lists(st.lists(_reports(), min_size=1, max_size=4), min_size=1, max_size=5))
def test_reports_in_any_order_leave_what_deriving_again_gives(
    tmp_path_factory: pytest.TempPathFactory, sent: list[list[Span]]
) -> None:
    ingesting = Ingesting(tmp_path_factory.mktemp("reports") / "store")
    try:
        for reports in sent:
            ingesting.send(traces(reports))

        assert verify_derived(ingesting.folder) == []
    finally:
        ingesting.close()
