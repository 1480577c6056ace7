"""Runs and steps as models: from the spans alone the same as from the store.

`of_spans` follows the table "Models and spans" of docs/semantic-conventions.md and knows nothing of
the store; `of_store` reads the record that the API answers, and the published schemas hold it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData

from hansard_compiler.models.runs import RunRecord, StepRecord
from tests.web.sidecar.conftest import Agent
from tests.web.sidecar.test_sidecar_models import QUESTION, SCRIPT, item, to_compile

Json = dict[str, Any]
BY_OPERATION = {
    "chat": "model_call",
    "embeddings": "model_call",
    "execute_tool": "tool_call",
    "upsert_memory": "memory_write",
    "update_memory": "memory_write",
    "hansard.policy.check": "policy_check",
}
SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(ns: int) -> datetime:
    return EPOCH + timedelta(microseconds=ns // 1000)


def of_spans(spans: list[Span]) -> tuple[RunRecord, list[StepRecord]]:
    """A run is its root span, a step each span; open spans have no end."""
    [root] = [one for one in spans if not one.parent_span_id]
    told = attributes(root)
    steps = [_step_of(one, at_) for at_, one in enumerate(sorted(spans, key=_began))]
    run = RunRecord(
        run_id=root.trace_id.hex(),
        agent_name=told["gen_ai.agent.name"],
        domain=told["hansard.run.domain"],
        user_goal=told["hansard.run.goal"],
        started_at=at(root.start_time_unix_nano),
        ended_at=at(root.end_time_unix_nano),
        status=_status_of(root),
        metadata=metadata(told, "hansard.run.metadata."),
    )
    return run, steps


def _began(span: Span) -> tuple[int, bytes]:
    return span.start_time_unix_nano, span.span_id


def _step_of(span: Span, index: int) -> StepRecord:
    told = attributes(span)
    kind = told.get("gen_ai.operation.name") or span.name
    return StepRecord(
        step_id=f"{span.trace_id.hex()}-{span.span_id.hex()}",
        run_id=span.trace_id.hex(),
        step_index=index,
        step_kind=BY_OPERATION.get(kind, "other"),  # type: ignore[arg-type]
        started_at=at(span.start_time_unix_nano),
        ended_at=at(span.end_time_unix_nano),
        status=_status_of(span),
        metadata=metadata(told, "hansard.step.metadata."),
    )


def _status_of(span: Span) -> Any:
    if attributes(span).get("hansard.cancelled"):
        return "cancelled"
    return "failed" if span.status.code == span.status.STATUS_CODE_ERROR else "completed"


def attributes(span: Span) -> Json:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def metadata(told: Json, prefix: str) -> Json:
    return {key.removeprefix(prefix): told[key] for key in told if key.startswith(prefix)}


def of_store(agent: Agent, run_id: str) -> tuple[RunRecord, list[StepRecord]]:
    """Read the record over the API, page by page, with nothing but the models."""
    pages: list[Json] = []
    cursor = ""
    while not pages or cursor:
        pages.append(agent.get(f"/v1/runs/{run_id}/record?limit=3{cursor}"))
        cursor = pages[-1]["next_cursor"] and f"&cursor={pages[-1]['next_cursor']}"
    steps = [StepRecord.model_validate(one) for page in pages for one in page["steps"]]
    assert {page["total"] for page in pages} == {len(steps)}
    return RunRecord.model_validate(pages[0]["run"]), steps


@pytest.mark.covers("DM-16", "DM-17", "DM-18", "DM-26")
def test_from_spans_alone_runs_steps_and_decisions_are_those_of_the_store(agent: Agent) -> None:
    begun = {"domain": "support", "user_goal": "Refund order 7", "metadata": {"order": 7}}
    run_id = agent.start(**begun)
    path = f"/v1/runs/{run_id}/steps"
    plan = {"name": "plan", "kind": "chain", "metadata": {"turn": 1}}
    step = agent.tell(path, plan)["step_id"]
    rule = {"id": "no-b", "effect": "deny", "conditions": {"item.id": {"equals": "b"}}}
    asked = to_compile(
        run_id, item("a", "x"), item("b", "y"), QUESTION, step_id=step, policy_rules=[rule]
    )
    compiled = agent.tell("/v1/compile", asked)
    call = {"compilation_id": compiled["compilation_id"], "script": SCRIPT}
    agent.tell("/v1/model/call", {"run_id": run_id, "step_id": step, **call})
    agent.tell("/v1/tools/call", {"run_id": run_id, "name": "refund", "call_id": "c1"})
    agent.tell("/v1/tools/result", {"run_id": run_id, "call_id": "c1", "error": "declined"})
    told = {"memory_type": "fact", "subject": "order 7", "content": "paid", "writer": "app"}
    agent.tell("/v1/memory/write", {**told, "run_id": run_id, "namespace": {"project": "shop"}})
    agent.tell(path, {"step_id": step, "status": "completed"})
    agent.tell(path, {"name": "left", "status": "cancelled"})
    agent.tell(f"/v1/runs/{run_id}/end", {"status": "failed", "error": "declined"})

    sent = TracesData.FromString(
        agent.client.get(f"/v1/runs/{run_id}/export?format=otlp-proto").content
    )
    spans = [
        one for many in sent.resource_spans for scope in many.scope_spans for one in scope.spans
    ]

    run, steps = of_spans(spans)
    assert (run, steps) == of_store(agent, run_id)
    _fits_published_schemas(agent, run_id)
    [whole] = [one for one in agent.get("/v1/runs")["items"] if one["run_id"] == run_id]
    assert whole["user_goal"] == agent.get(f"/v1/runs/{run_id}")["user_goal"] == "Refund order 7"
    rows = agent.get("/v1/sql?q=SELECT+domain,user_goal+FROM+runs")["rows"]
    assert rows == [["support", "Refund order 7"]]
    assert (run.status, run.metadata) == ("failed", {"order": 7})
    assert {one.step_kind for one in steps} >= {
        "model_call", "tool_call", "memory_write", "policy_check", "other",
    }  # fmt: skip
    assert {one.status for one in steps} == {"completed", "failed", "cancelled"}
    [made] = [one for one in spans if one.name == "hansard.compile"]
    assert _decisions(made) == [
        (one["item_id"], one["decision"], one["reason_code"])
        for one in compiled["compiled"]["decisions"]
    ]


def _decisions(span: Span) -> list[tuple[str, ...]]:
    """A decision stands at one place of several arrays of the compile's span."""
    lists = {
        one.key: [value.string_value for value in one.value.array_value.values]
        for one in span.attributes
        if one.value.HasField("array_value")
    }
    names = ("ids", "decisions", "reasons")
    return list(zip(*(lists[f"hansard.item.{name}"] for name in names), strict=True))


def _fits_published_schemas(agent: Agent, run_id: str) -> None:
    told = agent.get(f"/v1/runs/{run_id}/record")
    for name, values in (("RunRecord", [told["run"]]), ("StepRecord", told["steps"])):
        check = Draft202012Validator(json.loads((SCHEMAS / f"{name}.json").read_bytes()))
        assert [list(check.iter_errors(one)) for one in values] == [[]] * len(values)


@pytest.mark.covers("DM-19")
def test_status_of_the_record_goes_from_running_to_each_of_its_ends(agent: Agent) -> None:
    def told(run_id: str) -> tuple[str, Any, list[str]]:
        record = agent.get(f"/v1/runs/{run_id}/record")
        steps = [one["status"] for one in record["steps"]]
        return record["run"]["status"], record["run"]["ended_at"], steps

    ends = ("completed", "failed", "cancelled")
    begun = {end: agent.start(domain="support", user_goal="x") for end in ends}
    running = {end: told(run_id) for end, run_id in begun.items()}
    for end, run_id in begun.items():
        agent.tell(f"/v1/runs/{run_id}/end", {"status": end})

    assert list(running.values()) == [("running", None, ["running"])] * 3
    for end, run_id in begun.items():
        status, ended_at, steps = told(run_id)
        assert (status, steps) == (end, [end])
        assert ended_at is not None
