"""Search, usage and conversations over the API."""

from __future__ import annotations

import pytest

from tests.web.api.conftest import Api
from tests.web.api.otlp import chat, run_id, span, step_id, traces


def test_a_hit_names_its_run_step_field_and_words(api: Api) -> None:
    api.send(traces(chat(words="Where is the invoice?")))

    page = api.get("/v1/search", q="invoice")

    [hit] = page["items"]
    assert (hit["run_id"], hit["step_id"]) == (run_id(), step_id("chat"))
    assert (hit["field"], hit["message_role"], hit["uses"]) == ("message", "user", 1)
    assert hit["snippet"] == "Where is the invoice?"
    [[start, end]] = hit["highlights"]
    assert hit["snippet"][start:end] == "invoice"
    assert page["next_cursor"] is None


def test_pages_of_hits_join_to_the_whole_list(api: Api) -> None:
    for number in range(5):
        api.send(traces(chat(f"c{number}", words=f"invoice {number}")))

    joined = api.items("/v1/search", q="invoice", limit=2)

    assert joined == api.get("/v1/search", q="invoice")["items"]
    assert [hit["snippet"] for hit in joined] == [f"invoice {n}" for n in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize("q", ["", '"open', "-only", "a*", "***"])
def test_a_search_that_cannot_be_meant_is_refused(api: Api, q: str) -> None:
    assert api.refused(400, "/v1/search", q=q)["code"] == "invalid_search"


@pytest.mark.parametrize("q", ["NEAR(a b)", "a AND NOT", "{x}: y", "body:word", "^x", "a\x00b"])
def test_operators_of_the_engine_are_plain_words(api: Api, q: str) -> None:
    assert api.get("/v1/search", q=q)["items"] == []


def test_usage_is_summed_by_day_model_agent_and_conversation(api: Api) -> None:
    talk = {"gen_ai.conversation.id": "talk/1 ü"}
    api.send(traces(chat(run="a", attributes=talk), chat("again", run="b", attributes=talk)))
    api.send(traces(span("no call", run="c")))

    assert api.get("/v1/usage")["items"][0]["key"] == "2026-05-28"
    [model] = api.get("/v1/usage", by="model")["items"]
    assert (model["runs"], model["model_calls"], model["tokens"]["input"]) == (2, 2, 202)
    talked, silent = api.get("/v1/usage", by="conversation")["items"]
    assert (talked["key"], talked["runs"]) == ("talk/1 ü", 2)
    assert (silent["key"], silent["tokens"], silent["cost_usd"]) == (None, None, None)
    assert api.get("/v1/usage", since="2026-05-29")["items"] == []
    assert api.refused(400, "/v1/usage", by="week")["details"] == {"parameter": "by"}


def test_a_conversation_leads_to_its_runs_in_order(api: Api) -> None:
    talk = {"gen_ai.conversation.id": "talk/1 ü"}
    api.send(traces(chat("second", run="b", start_s=9, attributes=talk)))
    api.send(traces(chat("first", run="a", attributes=talk)))

    [listed] = api.get("/v1/conversations")["items"]
    shown = api.get("/v1/conversations/talk%2F1%20%C3%BC")
    runs = api.get("/v1/runs", conversation="talk/1 ü", sort="started_at")["items"]

    assert {**listed, "schema_version": "1", "transcript_id": None} == shown
    assert (listed["conversation_id"], listed["runs"]) == ("talk/1 ü", 2)
    assert [run["run_id"] for run in runs] == [run_id("a"), run_id("b")]
    assert api.refused(404, "/v1/conversations/none")["code"] == "not_found"
