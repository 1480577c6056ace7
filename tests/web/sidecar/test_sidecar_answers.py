"""What the sidecar and policy answer is what the OpenAPI document says, to the last field."""

from __future__ import annotations

from typing import Any

import pytest

from hansard_web.policy import decider
from hansard_web.policy import json as policy_models
from hansard_web.sidecar import compiles, model_calls, runs
from tests.web.answers import check_fits
from tests.web.sidecar.conftest import Agent
from tests.web.sidecar.test_sidecar_models import QUESTION, SCRIPT, to_compile

Json = dict[str, Any]


@pytest.mark.covers("SC-01", "SC-02", "SC-03", "SC-04")
def test_every_answer_of_a_run_is_as_described(agent: Agent) -> None:
    run = agent.tell("/v1/runs/start", {"agent_name": "clerk"})
    run_id = run["run_id"]
    step = agent.tell(
        f"/v1/runs/{run_id}/steps",
        {
            "name": "a",
            "inputs": [QUESTION],
            "tool_calls": [{"name": "t", "call_id": "c0"}],
            "tool_results": [{"call_id": "c0", "result": 1}],
        },
    )
    called = agent.tell("/v1/tools/call", {"run_id": run_id, "name": "t", "call_id": "c1"})
    answered = agent.tell("/v1/tools/result", {"run_id": run_id, "call_id": "c1", "result": 1})
    compiled = agent.tell("/v1/compile", to_compile(run_id, step_id=step["step_id"]))
    asked = agent.tell(
        "/v1/model/call",
        {"run_id": run_id, "compilation_id": compiled["compilation_id"], "script": SCRIPT},
    )
    ended = agent.tell(f"/v1/runs/{run_id}/end")

    check_fits(runs.StartedRun, run)
    check_fits(runs.StepInput, step)
    check_fits(runs.CalledTool, called)
    check_fits(runs.AnsweredTool, answered)
    check_fits(compiles.CompiledAnswer, compiled)
    check_fits(model_calls.CalledModel, asked)
    check_fits(runs.EndedRun, ended)
    lengths = [len(step[name]) for name in ("input_refs", "tool_calls", "tool_results")]
    assert lengths == [1, 1, 1]


@pytest.mark.covers("SC-08")
def test_every_answer_of_policy_is_as_described(agent: Agent) -> None:
    body = {"rule_sets": ["shipped:coding-agent"], "version": 0}
    rules = agent.put("/v1/policy/rules", body).json()
    asked = {"tool": {"name": "shell", "class": "shell"}, "context": {"agent": "coding"}}
    checked = agent.tell("/v1/policy/check", asked)
    explained = agent.tell("/v1/policy/explain", asked)
    rule_id = rules["rules"][0]["rule_id"]

    check_fits(decider.Checked, checked)
    check_fits(decider.Explained, explained)
    check_fits(policy_models.Rules, rules)
    check_fits(policy_models.Rules, agent.get("/v1/policy/rules"))
    check_fits(policy_models.Checks, agent.get("/v1/policy/checks"))
    check_fits(policy_models.Versions, agent.get("/v1/policy/versions"))
    history = agent.get(f"/v1/policy/versions?rule={rule_id}")
    check_fits(policy_models.Versions, history)
    check_fits(policy_models.VersionRules, agent.get("/v1/policy/versions/1"))
    assert len(history["items"]) == 1


@pytest.mark.slow
def test_the_document_describes_bodies_headers_and_answers_of_every_route(agent: Agent) -> None:
    document = agent.get("/v1/openapi.json")
    routes = [
        ("post", "/v1/runs/start", "201"),
        ("post", "/v1/runs/{run_id}/steps", "200"),
        ("post", "/v1/runs/{run_id}/end", "200"),
        ("post", "/v1/tools/call", "200"),
        ("post", "/v1/tools/result", "200"),
        ("post", "/v1/compile", "200"),
        ("post", "/v1/model/call", "200"),
        ("post", "/v1/policy/check", "200"),
        ("post", "/v1/policy/explain", "200"),
        ("put", "/v1/policy/rules", "200"),
    ]

    for method, path, status in routes:
        operation = document["paths"][path][method]
        body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        answer = operation["responses"][status]["content"]["application/json"]["schema"]
        named = [one["$ref"] for one in answer.get("anyOf", [answer])]
        schemas = document["components"]["schemas"]
        assert schemas[body.rpartition("/")[2]]["additionalProperties"] is False
        assert all(one.rpartition("/")[2] in schemas for one in named)
    headers = {one["name"] for one in document["paths"]["/v1/runs/start"]["post"]["parameters"]}
    assert {"idempotency-key", "traceparent"} <= headers
