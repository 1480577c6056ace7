"""Runs over the API: lists, filters, one run, its tree."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.api.conftest import Api
from tests.web.api.otlp import chat, run_id, span, step_id, traces


@pytest.mark.covers("SC-09")
def test_a_run_is_listed_with_what_it_did_and_cost(api: Api) -> None:
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "clerk",
        "gen_ai.conversation.id": "talk 1",
        "user.id": "ann",
    }
    api.send(
        traces(
            span("invoke_agent clerk", duration_s=2.5, attributes=agent),
            chat(parent="invoke_agent clerk", start_s=0.1),
        )
    )

    body = api.get("/v1/runs")

    [item] = body["items"]
    cost = item.pop("cost_usd")
    assert 0 < cost < 0.001
    assert body == {
        "schema_version": "1",
        "items": [
            {
                "run_id": run_id(),
                "name": "invoke_agent clerk",
                "agent": "clerk",
                "kind": "agent",
                "domain": None,
                "user_goal": None,
                "status": "ok",
                "started_at": "2026-05-28T20:26:40.000000000Z",
                "ended_at": "2026-05-28T20:26:42.500000000Z",
                "started_ns": "1780000000000000000",
                "ended_ns": "1780000002500000000",
                "duration_ms": 2500.0,
                "span_count": 2,
                "step_count": 2,
                "open_count": 0,
                "model_calls": 1,
                "tool_calls": 0,
                "error_count": 0,
                "models": ["gpt-4o-mini-2024-07-18"],
                "tokens": {
                    "input": 101,
                    "output": 23,
                    "cache_read": None,
                    "cache_write": None,
                    "reasoning": None,
                },
                "conversation_id": "talk 1",
                "group_id": None,
                "user_id": "ann",
                "service_names": ["svc"],
                "first_input": "What is the time?",
                "last_output": "It is noon.",
                "has_receipts": False,
                "pinned": False,
                "synthetic": False,
                "tags": [],
                "scores": [],
                "pending_approvals": 0,
                "rejected_approvals": 0,
                "first_seen_seq": 1,
                "version": item["version"],
            }
        ],
        "next_cursor": None,
    }


@pytest.mark.covers("RC-26")
def test_a_run_without_reported_tokens_says_null_and_not_zero(api: Api) -> None:
    api.send(traces(chat(tokens=None)))

    [item] = api.get("/v1/runs")["items"]

    assert item["tokens"] is None
    assert item["cost_usd"] is None


def names(api: Api, **query: Any) -> list[str]:
    return [item["name"] for item in api.get("/v1/runs", **query)["items"]]


def test_every_filter_narrows_the_list(api: Api) -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "sql"}
    api.send(traces(span("plain", run="a", attributes={"tier": "gold:1"})))
    api.send(traces(span("failed", run="b", start_s=100, status=2, message="no luck")))
    api.send(traces(chat("chat", run="c", start_s=200, duration_s=9), service="bot"))
    api.send(traces(span("execute_tool sql", run="d", start_s=300, attributes=tool)))
    api.send(traces(span("running", run="e", start_s=400, duration_s=None)))

    assert names(api, status="error") == ["failed"]
    assert names(api, status=["error", "open"]) == ["running", "failed"]
    assert names(api, service="bot") == ["chat"]
    assert names(api, model="gpt-4o-mini-2024-07-18") == ["chat"]
    assert names(api, tool="sql") == ["execute_tool sql"]
    assert names(api, attribute="tier:gold:1") == ["plain"]
    assert names(api, attribute="tier:*") == ["plain"]
    assert names(api, attribute=["tier:gold:1", "service.name:bot"]) == []
    assert names(api, q="noon") == ["chat"]
    assert names(api, q='"no luck"') == ["failed"]
    assert names(api, min_duration_ms="8999.5") == ["chat"]
    assert names(api, min_cost="0.00000001") == ["chat"]
    assert names(api, since="2026-05-28T20:31:40Z") == ["running", "execute_tool sql"]
    assert names(api, since="1780000300000000000", until="2026-05-28T22:33:00.0+02:00") == [
        "execute_tool sql"
    ]
    assert names(api, sort="started_at") == [
        "plain",
        "failed",
        "chat",
        "execute_tool sql",
        "running",
    ]
    assert names(api, agent="", q="", status="") == names(api)


@pytest.mark.parametrize(
    ("query", "code", "parameter"),
    [
        ({"limit": 501}, "invalid_query", "limit"),
        ({"limit": 0}, "invalid_query", "limit"),
        ({"limit": -1}, "invalid_query", "limit"),
        ({"limit": "many"}, "invalid_query", "limit"),
        ({"limit": "٥"}, "invalid_query", "limit"),
        ({"cursor": "nonsense"}, "invalid_cursor", "cursor"),
        ({"cursor": "é"}, "invalid_cursor", "cursor"),
        ({"q": '"open'}, "invalid_search", "q"),
        ({"q": "ab*"}, "invalid_search", "q"),
        ({"status": "done"}, "invalid_query", "status"),
        ({"sort": "age"}, "invalid_query", "sort"),
        ({"attribute": "key"}, "invalid_query", "attribute"),
        ({"attribute": ":value"}, "invalid_query", "attribute"),
        ({"attribute": "k:" + "x" * 600}, "invalid_query", "attribute"),
        ({"since": "yesterday"}, "invalid_query", "since"),
        ({"since": "2026-02-30"}, "invalid_query", "since"),
        ({"until": "99999999999999999999"}, "invalid_query", "until"),
        ({"min_duration_ms": "-1"}, "invalid_query", "min_duration_ms"),
        ({"min_duration_ms": "1e400"}, "invalid_query", "min_duration_ms"),
        ({"min_cost": "NaN"}, "invalid_query", "min_cost"),
        ({"min_cost": "cheap"}, "invalid_query", "min_cost"),
    ],
)
@pytest.mark.covers("SC-20")
def test_a_query_that_cannot_be_meant_is_refused_by_name(
    api: Api, query: dict[str, Any], code: str, parameter: str
) -> None:
    error = api.refused(400, "/v1/runs", **query)

    assert error["code"] == code
    assert error["details"] == {"parameter": parameter}


@pytest.mark.covers("SC-18")
@pytest.mark.parametrize("path", ["/v1/runs", "/v1/search?q=x", "/v1/ledger"])
def test_a_client_of_another_schema_version_is_refused(api: Api, path: str) -> None:
    separator = "&" if "?" in path else "?"
    answer = api.http.get(f"{path}{separator}schema_version=999")

    assert answer.status_code == 400
    assert api.error_of(answer)["code"] == "schema_version_unknown"
    assert "speaks '1'" in api.error_of(answer)["message"]


@pytest.mark.covers("SC-22")
def test_pages_of_runs_join_to_the_whole_list(api: Api) -> None:
    for number in range(7):
        api.send(traces(span(f"n{number}", run=f"r{number}", start_s=number % 3)))

    for sort in ("-first_seen", "started_at", "-duration_ms"):
        joined = api.items("/v1/runs", sort=sort, limit=2)
        assert joined == api.get("/v1/runs", sort=sort)["items"]
        assert len(joined) == 7


@pytest.mark.covers("SC-10")
def test_one_run_shows_its_totals_roots_links_and_notes(api: Api) -> None:
    api.send(
        traces(
            span("root", links=[("other", "there"), ("gone", "nowhere")]),
            chat(parent="root"),
            span("lost", "never sent", start_s=5),
        )
    )
    api.send(traces(span("there", run="other", links=[("run", "root")])))

    run = api.get(f"/v1/runs/{run_id()}")

    [listed] = [item for item in api.get("/v1/runs")["items"] if item["run_id"] == run_id()]
    assert {key: run[key] for key in listed} == listed
    assert run["totals"]["steps_by_role"] == {"llm": 1, "other": 2}
    [used] = run["totals"]["by_model"]
    assert (used["model"], used["model_calls"]) == ("gpt-4o-mini-2024-07-18", 1)
    assert [(root["name"], root["orphan"]) for root in run["roots"]] == [
        ("root", False),
        ("lost", True),
    ]
    known, unknown = run["links"]["to"]
    assert known["step"]["name"] == "there"
    assert unknown == {"run_id": run_id("gone"), "span_id": unknown["span_id"], "step": None}
    assert [step["name"] for step in run["links"]["from"]] == ["there"]
    assert {"note": "parent not received: shown at the top", "count": 1} in run["notes"]


def test_a_run_is_found_by_its_first_eight_digits(api: Api) -> None:
    first, second = "abcdef01" + "1" * 24, "abcdef01" + "2" * 24
    api.send(traces(span("one", run=first), span("two", run=second)))

    assert api.get("/v1/runs/ABCDEF011")["run_id"] == first
    error = api.refused(409, "/v1/runs/abcdef01")
    assert error["code"] == "ambiguous_id"
    assert error["details"] == {"matches": [first, second]}
    for unknown in ("abcdef0", "0" * 32, "nonsense", "%00", "abcdef01" + "3" * 24):
        assert api.refused(404, f"/v1/runs/{unknown}")["code"] == "not_found"


def test_an_open_run_has_no_end_and_no_duration(api: Api) -> None:
    api.send(traces(span("running", duration_s=None)))

    run = api.get(f"/v1/runs/{run_id()}")

    assert (run["status"], run["ended_at"], run["duration_ms"]) == ("open", None, None)


@pytest.mark.covers("CO-08")
def test_steps_come_in_the_order_of_the_tree_page_by_page(api: Api) -> None:
    api.send(traces(span("b", "root", start_s=2), span("a", "root", start_s=1)))
    early = api.get(f"/v1/runs/{run_id()}/steps")["items"]
    api.send(traces(span("root"), span("a1", "a", start_s=1.5)))

    assert [(step["name"], step["depth"], step["orphan"]) for step in early] == [
        ("a", 0, True),
        ("b", 0, True),
    ]
    steps = api.items(f"/v1/runs/{run_id()}/steps", cursor="after", limit=1)

    assert [(step["name"], step["depth"], step["has_children"]) for step in steps] == [
        ("root", 0, True),
        ("a", 1, True),
        ("a1", 2, False),
        ("b", 1, False),
    ]
    assert steps[2]["step_id"] == step_id("a1")
    assert steps[2]["start_ns"] == "1780000001500000000"
    assert steps == api.get(f"/v1/runs/{run_id()}/steps")["items"]


def test_a_cursor_of_steps_is_stale_once_the_run_has_changed(api: Api) -> None:
    api.send(traces(span("root"), span("a", "root")))
    path = f"/v1/runs/{run_id()}/steps"
    cursor = api.get(path, limit=1)["next_cursor"]
    api.send(traces(span("late", "root")))

    assert api.refused(409, path, after=cursor)["code"] == "cursor_stale"


def test_a_cursor_of_another_run_is_refused(api: Api) -> None:
    api.send(traces(span("root"), span("a", "root"), span("other", run="other")))
    cursor = api.get(f"/v1/runs/{run_id()}/steps", limit=1)["next_cursor"]

    error = api.refused(400, f"/v1/runs/{run_id('other')}/steps", after=cursor)

    assert (error["code"], error["details"]) == ("invalid_cursor", {"parameter": "after"})


def test_loops_and_lost_parents_are_marked(api: Api) -> None:
    api.send(traces(span("x", "y"), span("y", "x", start_s=1), span("lost", "gone", start_s=2)))

    steps = api.get(f"/v1/runs/{run_id()}/steps")["items"]

    marks = [(step["name"], step["depth"], step["orphan"], step["loop"]) for step in steps]
    assert marks == [("x", 0, False, True), ("y", 1, False, False), ("lost", 0, True, False)]


def test_facets_count_what_the_list_can_be_narrowed_by(api: Api) -> None:
    api.send(traces(chat(run="a")))
    api.send(traces(span("failed", run="b", status=2), span("c", run="c")))

    facets = api.get("/v1/facets", service="svc")

    assert (facets["runs"], facets["is_complete"]) == (3, True)
    assert facets["facets"]["status"] == [
        {"value": "ok", "runs": 2},
        {"value": "error", "runs": 1},
    ]
    assert facets["facets"]["model"] == [{"value": "gpt-4o-mini-2024-07-18", "runs": 1}]
