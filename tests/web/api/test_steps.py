"""One step over the API: what was sent, what it means, what hangs on it."""

from __future__ import annotations

import json
import math

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from tests.web.api.conftest import Api
from tests.web.api.otlp import chat, log, logs, run_id, span, step_id, traces


@pytest.mark.covers("SC-11")
def test_a_plain_span_is_shown_whole(api: Api) -> None:
    sent = span(
        "GET /",
        "gone",
        kind=2,
        status=2,
        message="it broke",
        attributes={"http.route": "/", "n": 1, "ratio": 0.5, "on": True, "none": None},
        events=[("exception", {"exception.type": "ValueError"})],
    )
    api.send(traces(sent))

    step = api.get(f"/v1/steps/{step_id('GET /')}")

    assert step["step_id"] == step_id("GET /")
    assert (step["name"], step["role"], step["kind"], step["status"]) == (
        "GET /", "other", "server", "error",
    )  # fmt: skip
    assert step["status_message"] == "it broke"
    assert step["error"]["message"] == "it broke"
    assert step["attributes"] == {
        "http.route": "/", "n": 1, "ratio": 0.5, "on": True, "none": None,
    }  # fmt: skip
    [event] = step["events"]
    assert (event["name"], event["attributes"]) == (
        "exception",
        {"exception.type": "ValueError"},
    )
    assert event["time"] == "2026-05-28T20:26:40.000000000Z"
    assert step["resource"]["attributes"] == {"service.name": "svc"}
    assert step["scope"] == {
        "name": "test.scope",
        "version": "1.2",
        "schema_url": "https://s/1.37.0",
    }
    assert (step["call"], step["tool"], step["context"]) == (None, None, None)
    assert step["raw_url"] == f"/v1/steps/{step_id('GET /')}/raw"


def test_a_model_call_is_shown_in_normal_form_with_its_sources(api: Api) -> None:
    api.send(traces(chat()))

    call = api.get(f"/v1/steps/{step_id('chat')}")["call"]

    assert (call["provider"], call["request_model"], call["finish_reason"]) == (
        "openai", "gpt-4o-mini", "stop",
    )  # fmt: skip
    [asked], [said] = call["input"], call["output"]
    assert (asked["role"], asked["parts"]) == (
        "user",
        [{"type": "text", "text": "What is the time?"}],
    )
    assert said["parts"] == [{"type": "text", "text": "It is noon."}]
    assert len(asked["hash"]) == 64
    assert (call["tokens"]["input"], call["tokens"]["output"]) == (101, 23)
    assert call["tokens"]["cache_read"] is None
    assert call["sources"]["tokens.input"] == "gen_ai.usage.input_tokens"
    assert call["cost"]["source"].startswith("genai-prices ")


def test_a_tool_is_shown_with_its_arguments_and_result(api: Api) -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "sql",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.call.arguments": '{"query": "select 1"}',
        "gen_ai.tool.call.result": "1",
    }
    api.send(traces(span("execute_tool sql", attributes=attributes)))

    step = api.get(f"/v1/steps/{step_id('execute_tool sql')}")

    assert step["role"] == "tool"
    tool = step["tool"]
    assert (tool["name"], tool["call_id"]) == ("sql", "call_1")
    assert tool["arguments"] == {"query": "select 1"}


@pytest.mark.parametrize("log_first", [True, False])
def test_logs_that_carry_a_steps_ids_are_its_logs_in_any_order_of_arrival(
    api: Api, log_first: bool
) -> None:
    if log_first:
        api.send(logs(log("said", "s", name="my.event")))
    api.send(traces(span("s")))
    if not log_first:
        api.send(logs(log("said", "s", name="my.event")))

    [found] = api.get(f"/v1/steps/{step_id('s')}")["logs"]

    assert (found["event_name"], found["body"], found["severity_text"]) == (
        "my.event", "said", "INFO",
    )  # fmt: skip


def test_links_show_where_they_lead_and_who_links_here(api: Api) -> None:
    api.send(traces(span("a", links=[("other", "b"), ("gone", "c")])))
    api.send(traces(span("b", run="other")))

    a = api.get(f"/v1/steps/{step_id('a')}")
    b = api.get(f"/v1/steps/{step_id('b', 'other')}")

    assert [link["step"] and link["step"]["name"] for link in a["links"]] == ["b", None]
    assert [step["name"] for step in b["linked_from"]] == ["a"]


def test_what_json_cannot_say_is_tagged(api: Api) -> None:
    attributes = {
        "nan": math.nan,
        "infinite": -math.inf,
        "bytes": b"\x00\xff",
        "big": 2**63 - 1,
        "nested": {"list": [1, None, {"deep": b""}]},
    }
    api.send(traces(span("s", attributes=attributes)))

    assert api.get(f"/v1/steps/{step_id('s')}")["attributes"] == {
        "nan": {"$float": "nan"},
        "infinite": {"$float": "-inf"},
        "bytes": {"$bytes": "AP8="},
        "big": 9223372036854775807,
        "nested": {"list": [1, None, {"deep": {"$bytes": ""}}]},
    }


@pytest.mark.parametrize(
    "arguments",
    [
        '{"text": "\\ud800 alone"}',  # a lone surrogate, escaped inside JSON
        '{"number": 123456789012345678901234567890}',
        "[" * 400 + "]" * 400,
        "[" * 50_000,
        '{"a": NaN}',
        '{"a":',
    ],
)
def test_odd_json_inside_attributes_is_shown_and_found_and_listed(api: Api, arguments: str) -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "odd",
        "gen_ai.tool.call.arguments": arguments,
    }
    api.send(traces(span("execute_tool odd", attributes=attributes)))

    step = api.get(f"/v1/steps/{step_id('execute_tool odd')}")

    assert step["attributes"]["gen_ai.tool.call.arguments"] == arguments
    assert step["tool"]["arguments"] is not None
    assert api.get(f"/v1/runs/{run_id()}/steps")["items"][0]["tool_name"] == "odd"
    assert len(api.get("/v1/search", q="odd")["items"]) >= 1


def test_halves_of_a_shared_id_are_two_steps(api: Api) -> None:
    api.send(traces(span("call", kind=3), service="client"))
    api.send(traces(span("call", kind=2), service="server"))

    client = api.get(f"/v1/steps/{step_id('call')}")
    server = api.get(f"/v1/steps/{step_id('call')}.server")

    assert (client["kind"], server["kind"]) == ("client", "server")
    assert server["step_id"] == step_id("call") + ".server"
    assert server["resource"]["attributes"] == {"service.name": "server"}
    assert len(api.get(f"/v1/runs/{run_id()}/steps")["items"]) == 2


def test_unknown_and_ambiguous_steps_are_refused(api: Api) -> None:
    api.send(traces(span("a"), span("b")))

    for unknown in ("nonsense", run_id("other"), f"{run_id()}-{'0' * 16}"):
        assert api.refused(404, f"/v1/steps/{unknown}")["code"] == "not_found"
        assert api.refused(404, f"/v1/steps/{unknown}/raw")["code"] == "not_found"
    error = api.refused(409, f"/v1/steps/{run_id()}")
    assert sorted(error["details"]["matches"]) == sorted([step_id("a"), step_id("b")])


def test_a_second_call_shows_what_it_kept_and_added(api: Api) -> None:
    def said(role: str, text: str) -> dict[str, object]:
        return {"role": role, "parts": [{"type": "text", "content": text}]}

    first = [said("user", "one")]
    second = [*first, said("assistant", "It is noon."), said("user", "two")]
    api.send(
        traces(
            chat("first", attributes={"gen_ai.input.messages": json.dumps(first)}),
            chat("second", start_s=5, attributes={"gen_ai.input.messages": json.dumps(second)}),
        )
    )

    context = api.get(f"/v1/steps/{step_id('second')}")["context"]

    assert context["kind"] == "derived"
    assert context["continues"] == step_id("first")
    assert (context["call_number"], context["calls_in_run"]) == (2, 2)
    assert [row["change"] for row in context["messages"]] == ["kept", "added", "added"]
    assert context["messages"][1]["origin"]["step_id"] == step_id("first")


def test_a_duration_is_compared_with_the_last_of_its_name(api: Api) -> None:
    for number in range(4):
        api.send(traces(span("same", run=f"r{number}", duration_s=number + 1)))

    step = api.get(f"/v1/steps/{step_id('same', 'r2')}")

    assert step["same_name"] == {"count": 3, "longer_than": 2, "median_ms": 2000.0}


def test_raw_gives_the_span_and_its_logs_as_they_came(api: Api) -> None:
    about = log("about it", "s")
    api.send(logs(about, log("about another", "t")))
    api.send(traces(span("s", attributes={"n": 1}), span("t")))

    answer = api.http.get(f"/v1/steps/{step_id('s')}/raw")

    raw = json.loads(answer.content)
    [resource] = raw["resourceSpans"]
    [scope] = resource["scopeSpans"]
    [only] = scope["spans"]
    assert only["spanId"] == step_id("s").partition("-")[2]
    assert only["attributes"] == [{"key": "n", "value": {"intValue": "1"}}]
    assert scope["schemaUrl"] == "https://s/1.37.0"
    [logged] = raw["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert logged["body"] == {"stringValue": "about it"}
    assert logged["timeUnixNano"] == str(about.time_unix_nano)


def test_what_retention_removed_is_named(sparing_api: Api) -> None:
    secret = "sk-ant-api03-" + "Ab1" * 31 + "AA"
    sparing_api.send(traces(span("s", attributes={"note": f"key {secret}"})))

    step = sparing_api.get(f"/v1/steps/{step_id('s')}")
    raw = sparing_api.http.get(f"/v1/steps/{step_id('s')}/raw").text

    assert secret not in json.dumps(step)
    assert secret not in raw
    assert step["redactions"] != []


def test_a_log_alone_makes_no_step(api: Api) -> None:
    api.send(logs(LogRecord(body=log("x", "s").body), log("early", "s")))

    assert api.refused(404, f"/v1/steps/{step_id('s')}")["code"] == "not_found"
