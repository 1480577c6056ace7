"""Figures over time through the API and the command: the same numbers, and clear refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from hansard_web.overview.bodies import FigureAnswer
from hansard_web.overview.cli import latency, overview
from tests.web.answers import check_fits
from tests.web.makers import RunMaker


def figures(client: TestClient, path: str = "/v1/overview", **query: Any) -> Any:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    check_fits(FigureAnswer, answer.json())
    return answer.json()


@pytest.fixture
def two_agents(runs: RunMaker) -> RunMaker:
    runs.run(agent="clerk", model="gpt-4o-mini", duration_s=2)
    runs.run(agent="mender", model="gpt-4o-mini-2024-07-18", status=2, tool="find_order",
             age_s=3 * 86_400)  # fmt: skip
    return runs


@pytest.mark.covers("UI-26")
def test_an_overview_sums_the_runs_of_a_window_by_day_and_by_what_is_wanted(
    two_agents: RunMaker, client: TestClient
) -> None:
    found = figures(client, by="agent")

    total = found["total"]["total"]
    assert (total["runs"], total["failed_runs"], total["error_rate"]) == (2, 1, 0.5)
    assert (total["tokens"]["input"], total["cost_usd"]) == (2400, 0.0007)
    assert (found["step"], len(found["total"]["points"])) == ("day", 2)
    assert {one["key"]: one["total"]["runs"] for one in found["series"]} == {
        "clerk": 1, "mender": 1,
    }  # fmt: skip


def test_a_filter_and_a_window_narrow_it(two_agents: RunMaker, client: TestClient) -> None:
    failed = figures(client, status="error")
    recent = figures(client, since="24h")

    assert failed["total"]["total"]["runs"] == 1
    assert (recent["total"]["total"]["runs"], recent["step"]) == (1, "hour")


def test_latency_compares_models_with_or_without_their_dates(
    two_agents: RunMaker, client: TestClient
) -> None:
    dated = figures(client, "/v1/latency")
    merged = figures(client, "/v1/latency", merge_models=True)
    tools = figures(client, "/v1/latency", by="tool")

    assert {one["key"] for one in dated["series"]} == {"gpt-4o-mini", "gpt-4o-mini-2024-07-18"}
    assert [(one["key"], one["total"]["model_calls"]) for one in merged["series"]] == [
        ("gpt-4o-mini", 2)
    ]
    assert merged["series"][0]["total"]["call_latency"]["count"] == 2
    assert [(one["key"], one["total"]["tool_calls"]) for one in tools["series"]] == [
        ("find_order", 1)
    ]
    assert dated["series"][0]["points"] == []


def test_the_command_says_the_same(two_agents: RunMaker, client: TestClient) -> None:
    data = str(two_agents.folder.path)

    as_json = CliRunner().invoke(overview, ["--by", "agent", "--json", "--data", data])
    table = CliRunner().invoke(latency, ["--by", "agent", "--data", data])

    assert as_json.exit_code == 0, as_json.output
    assert json.loads(as_json.output)["series"] == figures(client, by="agent")["series"]
    assert table.exit_code == 0, table.output
    assert "mender" in table.output


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ({"by": "colour"}, "by"),
        ({"step": "minute"}, "step"),
        ({"since": "2026-01-02", "until": "2026-01-01"}, "since"),
        ({"since": "2020-01-01", "step": "hour"}, "step"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    client: TestClient, query: dict[str, str], parameter: str
) -> None:
    answer = client.get("/v1/overview", params=query)

    assert answer.status_code == 400
    assert answer.json()["error"]["details"]["parameter"] == parameter


@pytest.mark.covers("UI-26")
@pytest.mark.parametrize("by", ["model", "agent", "user", "service", "tag"])
def test_the_usage_page_shows_what_the_api_sums(
    two_agents: RunMaker, client: TestClient, by: str
) -> None:
    api = client.get("/v1/usage", params={"by": by}).json()["items"]
    table = client.get(
        "/v1/tables/usage", params={"by": by, "dated": "1", "format": "json"}
    ).json()["rows"]
    page = client.get("/usage", params={"since": "all", "dated": "1"}).text

    of_api = {one["key"]: (one["model_calls"], one["cost_usd"]) for one in api}
    assert {one["key"]: (one["model_calls"], one["cost_usd"]) for one in table} == of_api
    assert sum(one["model_calls"] for one in table) == 2
    for key in of_api:
        assert key is None or f'title="{key}"' in page


def test_usage_of_all_time_is_that_of_the_runs_however_old(
    runs: RunMaker, client: TestClient
) -> None:
    runs.run(model="gpt-4o-mini", age_s=500 * 86_400)
    runs.run(model="gpt-4o-mini", age_s=60)

    def calls(since: str) -> int:
        items = client.get("/v1/tables/usage", params={"since": since, "format": "json"}).json()[
            "rows"
        ]
        return sum(one["model_calls"] for one in items)

    assert (calls("all"), calls("30d")) == (2, 1)
    assert client.get("/usage?since=all&show=tokens&by=user").status_code == 200
    assert client.get("/usage?since=all&show=kinds&step=hour").status_code == 200
