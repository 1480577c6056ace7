"""`/metrics` as Prometheus reads it, and the dashboard that asks for it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from hansard_web.app.config import AccessToken, Scope, WebSettings
from tests.collector.ingesting import span, traces
from tests.web.conftest import MakeClient
from tests.web.makers import RunMaker

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana" / "hansard.json"
_NAME = re.compile(r"\bhansard_\w+")


def samples(client: TestClient) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in text_string_to_metric_families(answer.text)
        for one in family.samples
    }


def of(found: Any, name: str, **labels: str) -> float:
    return float(found[f"hansard_{name}", frozenset(labels.items())])


def test_what_was_received_and_what_it_cost_is_what_the_store_says(
    runs: RunMaker, make_client: MakeClient, pipeline: Any
) -> None:
    client = make_client(ingest=pipeline)
    runs.run(model="gpt-4o-mini")
    runs.run(model="gpt-4o-mini")
    runs.run(model='o"dd\n')
    for _ in range(2):  # the second time a duplicate
        body = traces([span(1)]).SerializeToString()
        sent = client.post(
            "/v1/traces", content=body, headers={"content-type": "application/x-protobuf"}
        )
        assert sent.status_code == 200

    found = samples(client)

    assert of(found, "ingest_items_total", signal="spans", outcome="stored") >= 1
    assert of(found, "ingest_items_total", signal="spans", outcome="duplicate") == 1
    assert of(found, "ingest_requests_total", signal="spans") == 2
    assert of(found, "stored_model_calls", model="gpt-4o-mini") == 2
    assert of(found, "stored_model_calls", model='o"dd\n') == 1
    assert of(found, "stored_tokens", model="gpt-4o-mini", type="input") == 2400
    assert of(found, "stored_cost_usd", model="gpt-4o-mini") == 0.0007
    assert of(found, "ingest_queue_requests") == 0
    assert of(found, "approvals_pending", status="awaiting") == 0


def test_models_that_senders_make_up_do_not_grow_the_series(
    runs: RunMaker, client: TestClient
) -> None:
    for number in range(60):
        runs.run(model=f"made-up-{number}")

    found = samples(client)

    models = {dict(labels)["model"] for name, labels in found if name.endswith("model_calls")}
    assert len(models) == 51
    assert of(found, "stored_model_calls", model="other") == 10


def test_a_token_that_only_sends_does_not_read_metrics(make_client: MakeClient) -> None:
    tokens = (
        AccessToken("sends-only", frozenset({Scope.INGEST})),
        AccessToken("reads-all", frozenset({Scope.READ})),
    )
    client = make_client(WebSettings(tokens=tokens))

    refused = client.get("/metrics", headers={"authorization": "Bearer sends-only"})
    nobody = client.get("/metrics")
    allowed = client.get("/metrics", headers={"authorization": "Bearer reads-all"})

    assert (refused.status_code, nobody.status_code, allowed.status_code) == (403, 401, 200)
    assert refused.json()["error"]["code"] == "scope_missing"


def test_every_metric_of_the_dashboard_is_there(
    runs: RunMaker, make_client: MakeClient, pipeline: Any
) -> None:
    runs.run()
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in _NAME.findall(target["expr"])
    }

    there = {name for name, _ in samples(make_client(ingest=pipeline))}

    assert len(asked) > 15
    assert asked <= there
