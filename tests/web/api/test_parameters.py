"""What a request says that no route declares is refused by name, and how refusals read."""

from __future__ import annotations

import pickle
import re

import pytest

from hansard.errors import HansardError
from hansard_compiler.errors import AmbiguousIdError, ConfigError, NotFoundError
from hansard_web.app.route_loading import api_routes
from tests.signing import add_token, bearer
from tests.web.api.conftest import Api
from tests.web.api.otlp import chat, run_id, span, traces

_CHECKS_ITSELF = "/v1/tables/{table}"


def test_every_route_refuses_a_query_parameter_that_it_does_not_declare(api: Api) -> None:
    document = api.http.get("/v1/openapi.json").json()
    tried = 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if not path.startswith("/v1/") or path == _CHECKS_ITSELF:
                continue
            address = re.sub(r"\{\w+\}", "a" * 32, path)
            body = {"json": {}} if "requestBody" in operation else {}
            answer = api.http.request(method, address, params={"limt": "1"}, **body)
            error = api.error_of(answer)
            known = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
            assert answer.status_code == 400, (method, path, answer.text)
            assert error["code"] == "unknown_parameter", (method, path, answer.text)
            assert error["details"]["parameter"] == "limt"
            assert set(error["details"]["known"]) == known, (method, path)
            assert error["details"]["nearest"] == ("limit" if "limit" in known else None)
            tried += 1
    assert tried > len(api_routes()) // 2


def test_a_long_unknown_parameter_is_repeated_by_its_beginning(api: Api) -> None:
    error = api.refused(400, "/v1/runs", **{"<b>" + "x" * 4_000: "1"})

    assert len(error["message"]) < 700
    assert error["details"]["parameter"].startswith("<b>xxx")


def test_a_table_names_the_filter_that_it_does_not_have(api: Api) -> None:
    assert api.refused(400, "/v1/tables/runs", agnt="a")["details"]["parameter"] == "agnt"


def test_a_page_works_with_parameters_of_the_link_that_led_to_it(api: Api) -> None:
    assert api.http.get("/runs?utm_source=chat", follow_redirects=True).status_code in (200, 404)
    assert api.http.get("/overview?utm_source=chat").status_code == 200


def test_an_unknown_route_says_where_the_routes_are_described(api: Api) -> None:
    error = api.refused(404, "/v1/no-such-thing" + "x" * 3_000)

    assert error["code"] == "not_found"
    assert error["details"] == {"openapi": "/v1/openapi.json"}
    assert "/v1/no-such-thing" in error["message"]
    assert len(error["message"]) < 300
    refused = api.http.delete("/v1/runs")
    assert (refused.status_code, api.error_of(refused)["code"]) == (405, "method_not_allowed")
    assert "GET" in api.error_of(refused)["message"]


def test_a_long_id_is_repeated_by_its_beginning(api: Api) -> None:
    error = api.refused(404, "/v1/conversations/" + "z" * 5_000)

    assert len(error["message"]) < 300


@pytest.mark.parametrize(("name", "known"), [("type", "preference"), ("writer", "app")])
def test_memory_is_not_filtered_by_a_value_that_no_record_can_have(
    api: Api, name: str, known: str
) -> None:
    error = api.refused(400, "/v1/memory", **{name: "no-such-value"})

    assert (error["code"], error["details"]) == ("invalid_query", {"parameter": name})
    assert known in error["message"]
    assert api.get("/v1/memory", **{name: known})["items"] == []


def test_an_error_names_the_module_that_programs_import_it_from() -> None:
    for kind in (HansardError, ConfigError, NotFoundError, AmbiguousIdError):
        assert kind.__module__ == "hansard.errors"
    again = pickle.loads(pickle.dumps(ConfigError("wrong")))
    assert isinstance(again, ConfigError)


def test_the_messages_of_a_conversation_are_read_by_run_each_once(api: Api) -> None:
    talk = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "clerk",
        "gen_ai.conversation.id": "talk 1",
    }
    for number in range(12):
        run = f"run {number}"
        api.send(
            traces(
                span("agent", run=run, start_s=number * 10, attributes=talk),
                chat(
                    parent="agent",
                    run=run,
                    start_s=number * 10,
                    words=f"Question {number}",
                    answer=f"Answer {number}",
                ),
            )
        )

    first = api.get("/v1/conversations/talk 1/messages")
    runs = api.items("/v1/conversations/talk 1/messages")

    assert len(first["items"]) == 10
    assert [one["run_id"] for one in runs] == [run_id(f"run {number}") for number in range(12)]
    said = [
        (one["role"], one["direction"], one["parts"][0]["text"])
        for run in runs
        for one in run["messages"]
    ]
    assert said[:2] == [("user", "input", "Question 0"), ("assistant", "output", "Answer 0")]
    assert len(said) == 24
    api.refused(404, "/v1/conversations/no such talk/messages")
    assert api.refused(400, "/v1/conversations/talk 1/messages", cursor="x")["code"] == (
        "invalid_cursor"
    )


def test_an_answer_with_messages_of_a_conversation_is_bounded(api: Api) -> None:
    talk = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "long"}
    calls = [
        chat(f"chat {number}", parent="agent", start_s=number, words=f"{number} " + "x" * 1_000_000)
        for number in range(7)
    ]
    for call in calls:
        api.send(traces(span("agent", attributes=talk), call))

    answer = api.http.get("/v1/conversations/long/messages")

    assert answer.status_code == 200
    assert len(answer.content) < 5_000_000
    [run] = answer.json()["items"]
    assert run["messages"][0]["parts"] is not None
    assert run["messages"][-1]["parts"] is None


def test_a_neighbouring_site_changes_nothing_where_no_origin_is_named(api: Api) -> None:
    same = {"sec-fetch-site": "same-site"}

    refused = api.http.post("/v1/runs/start", json={"agent_name": "a"}, headers=same)
    assert (refused.status_code, api.error_of(refused)["code"]) == (403, "cross_site")
    assert api.http.get("/v1/runs", headers=same).status_code == 200
    own = api.http.post(
        "/v1/runs/start", json={"agent_name": "a"}, headers={"sec-fetch-site": "same-origin"}
    )
    assert own.status_code < 300, own.text


def test_memory_that_a_token_wrote_names_the_token_in_the_audit_log(api: Api) -> None:
    body = {
        "writer": "app",
        "memory_type": "fact",
        "subject": "colour",
        "content": "blue",
        "namespace": {"project": "shop"},
    }
    token = bearer(add_token(api.folder, "importer"))
    written = api.http.post("/v1/memory/write", json=body, headers=token)
    assert written.status_code == 201, written.text

    [event] = api.get("/v1/events", type="memory.written")["items"]
    assert event["who"] == "importer"
