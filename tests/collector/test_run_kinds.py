"""Runs of kind `agent` have a step of an agent's work; all others are of kind `other`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hansard_collector.derivation.rebuild import rebuild
from hansard_collector.derivation.verification import verify_derived
from hansard_store.database.connections import open_for_maintenance
from hansard_store.runs.filters import RunFilter
from hansard_store.runs.queries import list_runs
from tests.collector.ingesting import Ingesting, log, logs, span, traces

HTTP = {"http.request.method": "GET", "http.route": "/health"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3}


def kinds(ingesting: Ingesting) -> list[str]:
    """Return the kinds of all runs, as lists of each kind find them."""
    found = list_runs(ingesting.db, RunFilter(), now_ns=0).items
    for kind in ("agent", "other"):
        of_kind = list_runs(ingesting.db, RunFilter(kind=kind), now_ns=0).items
        assert of_kind == tuple(run for run in found if run.kind == kind)
    return [run.kind for run in found]


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        (HTTP, "other"),
        ({"db.system.name": "postgresql", "db.query.text": "SELECT 1"}, "other"),
        ({"gen_ai.operation.name": "something of our own"}, "other"),
        (CHAT, "agent"),
        ({"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "e"}, "agent"),
        ({"gen_ai.operation.name": "invoke_agent"}, "agent"),
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ls"}, "agent"),
        ({"openinference.span.kind": "CHAIN"}, "agent"),
        ({"openinference.span.kind": "RETRIEVER"}, "agent"),
        ({"openinference.span.kind": "GUARDRAIL"}, "agent"),
        ({"traceloop.span.kind": "task"}, "agent"),
        ({"hansard.kind": "human_approval"}, "agent"),
        ({"hansard.kind": "policy_check"}, "agent"),
        ({"hansard.kind": "compile"}, "agent"),
        ({"hansard.kind": "memory_write"}, "agent"),
        ({"mcp.method.name": "tools/call", "gen_ai.tool.name": "ls"}, "agent"),
        ({"mcp.method.name": "tools/list"}, "other"),
        ({"mcp.method.name": "ping"}, "other"),
    ],
    ids=str,
)
def test_what_a_run_does_says_its_kind(
    ingesting: Ingesting, attributes: Mapping[str, Any], kind: str
) -> None:
    ingesting.send(traces([span(1, attributes=HTTP), span(2, 1, attributes=attributes)]))

    assert kinds(ingesting) == [kind]


def test_a_step_that_comes_late_makes_a_run_an_agents(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1, attributes=HTTP)]))
    assert kinds(ingesting) == ["other"]

    ingesting.send(traces([span(2, 1, attributes=CHAT)]))

    assert kinds(ingesting) == ["agent"]


def test_a_richer_report_of_its_only_step_may_change_a_runs_kind(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1, duration_s=None, attributes=CHAT)]))
    assert kinds(ingesting) == ["agent"]

    ingesting.send(traces([span(1, attributes=HTTP)]))
    assert kinds(ingesting) == ["other"]

    ingesting.send(traces([span(1, duration_s=2, attributes=CHAT)]))
    assert kinds(ingesting) == ["agent"]


def test_log_records_alone_make_a_run_of_an_agent(ingesting: Ingesting) -> None:
    of_session = {"session.id": "s", "prompt.id": "p"}
    told = {"input_tokens": 3, "output_tokens": 2, "model": "m", "request_id": "r"}
    noted = [("my_agent.user_prompt", {}), ("my_agent.api_response", told)]
    ingesting.send(
        logs(
            log(event_name=name, attributes={**of_session, **more}, trace_id=b"")
            for name, more in noted
        )
    )

    assert kinds(ingesting) == ["agent"]


def test_kinds_are_derived_again_as_they_were(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1, attributes=HTTP)]))
    ingesting.send(traces([span(2, trace_id=b"2" * 16, attributes=CHAT)]))
    assert verify_derived(ingesting.folder) == []

    rebuild(ingesting.folder)

    assert kinds(ingesting) == ["agent", "other"]
    connection = open_for_maintenance(ingesting.folder)
    connection.execute("UPDATE run SET work_count = 0")
    connection.close()
    assert [one.row for one in verify_derived(ingesting.folder)] == ["2"]
