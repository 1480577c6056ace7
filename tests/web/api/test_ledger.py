"""The ledger, health, and the description of the API."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from fastapi import FastAPI

from hansard import semconv
from hansard_web.api.parameters import check_schema_version
from hansard_web.app.route_loading import api_routes, page_routes
from tests.collector.ingesting import pairs
from tests.web.api.conftest import Api
from tests.web.api.otlp import log, logs, span, traces


@pytest.mark.covers("CO-16")
def test_the_ledger_adds_up_by_signal_and_sender(api: Api) -> None:
    bad = span("bad")
    bad.span_id = b""
    request = traces(span("a"), span("b"), service="bot")
    api.send(request)
    api.send(request)
    partial = api.http.post(
        "/v1/traces",
        content=traces(bad, service="bot").SerializeToString(),
        headers={"content-type": "application/x-protobuf"},
    )
    refused = api.http.post(
        "/v1/traces", content=b"\xff", headers={"content-type": "application/x-protobuf"}
    )
    assert (partial.status_code, refused.status_code) == (200, 400)
    # A refusal is told before it is counted; what comes after it is counted with it, or later.
    api.send(logs(log("said", "a"), service="bot"))

    ledger = api.get("/v1/ledger")

    spans = ledger["spans"]
    assert (spans["received"], spans["stored"], spans["duplicate"], spans["rejected"]) == (
        5, 2, 2, 1,
    )  # fmt: skip
    assert spans["refused"] == 1
    assert ledger["logs"]["stored"] == 1
    assert ledger["metric_points"]["received"] == 0
    bots = [sender for sender in ledger["senders"] if sender["service"] == "bot"]
    assert sum(sender["received"] for sender in bots) == 6
    assert {refusal["code"] for refusal in ledger["refusals"]} >= {"malformed"}
    assert ledger["queue"]["requests"] == 0


def test_health_tells_that_the_store_can_be_written_and_nothing_else(api: Api) -> None:
    health = api.get("/healthz")

    assert set(health) == {"schema_version", "status", "product", "version", "up_seconds"}
    assert (health["status"], health["product"]) == ("ok", "hansard")


@pytest.mark.covers("OT-12")
def test_what_a_sender_lost_is_in_the_ledger(api: Api) -> None:
    lost = log("3 spans were lost", "a")
    lost.event_name = semconv.EVENT_DROPPED
    told = {
        semconv.DROPPED_SIGNAL: "spans",
        semconv.DROPPED_REASON: "spool full",
        semconv.DROPPED_ITEMS: 3,
    }
    lost.attributes.extend(pairs(told))
    api.send(logs(lost, service="bot"))

    [loss] = api.get("/v1/ledger")["drops"]

    assert (loss["service"], loss["signal"], loss["reason"]) == ("bot", "spans", "spool full")
    assert (loss["items"], loss["processes"]) == (3, 1)
    assert loss["last_at"].endswith("Z")


def test_health_is_503_when_the_store_is_gone(api: Api) -> None:
    shutil.rmtree(api.folder.path)

    answer = api.http.get("/healthz")

    assert answer.status_code == 503
    assert answer.json()["status"] == "unavailable"


@pytest.fixture
def described(api: Api) -> dict[str, Any]:
    document: dict[str, Any] = api.http.get("/v1/openapi.json").json()
    return document


@pytest.mark.slow
def test_the_description_is_found_where_generators_look_for_it(
    api: Api, described: dict[str, Any]
) -> None:
    assert api.http.get("/openapi.json").json() == described


@pytest.mark.slow
@pytest.mark.covers("SC-19")
def test_every_route_is_described_with_its_answers_and_errors(described: dict[str, Any]) -> None:
    paths = described["paths"]

    for route in api_routes():
        operation = paths[route.path.replace(":path", "")][next(iter(route.methods or ())).lower()]
        assert operation["description"].endswith(".")
        assert "4XX" in operation["responses"]
        schemas = [
            content.get("schema")
            for status, answer in operation["responses"].items()
            if status in ("200", "201", "202")
            for content in answer["content"].values()
        ]
        assert schemas
    assert {
        "/v1/runs", "/v1/runs/{run_id}", "/v1/runs/{run_id}/steps", "/v1/steps/{step_id}",
        "/v1/steps/{step_id}/raw", "/v1/runs/{run_id}/export", "/v1/search", "/v1/ledger",
        "/v1/payloads/{ref}", "/healthz",
    } <= set(paths)  # fmt: skip


def test_unknown_paths_and_methods_get_an_error_object(api: Api) -> None:
    assert api.refused(404, "/v1/nothing")["code"] == "not_found"
    answer = api.http.post("/v1/runs")
    assert (answer.status_code, api.error_of(answer)["code"]) == (405, "method_not_allowed")


def test_every_route_refuses_a_client_of_another_version() -> None:
    for route in api_routes():
        assert check_schema_version in [one.dependency for one in route.dependencies], route.path


def test_an_application_has_every_route_as_it_was_written(api: Api) -> None:
    """Routers that are included are worked out again, for the first who asks for any page."""
    app = api.http.app
    assert isinstance(app, FastAPI)

    assert {id(route) for route in (*api_routes(), *page_routes())} <= {
        id(route) for route in app.routes
    }
