"""Annotations over HTTP: given, listed, withdrawn; and the data set of what is marked."""

from __future__ import annotations

import json
from typing import Any

import apsw
import pytest
from httpx2 import Response

from hansard_store.runs.queries import RunItem, get_run
from hansard_web.annotations import dataset
from hansard_web.annotations.bodies import DatasetLine
from hansard_web.app.config import AccessToken, Scope, WebSettings
from tests.web.answers import check_fits
from tests.web.api.conftest import Api
from tests.web.api.otlp import chat, log, logs, pairs, run_id, span, step_id, traces
from tests.web.conftest import MakeClient
from tests.web.makers import RunMaker


def post(api: Api, path: str, **body: Any) -> Response:
    return api.http.post(path, json=body)


def given(api: Api, **body: Any) -> dict[str, Any]:
    """Annotate, and return the annotation."""
    answer = post(api, "/v1/annotations", **body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = api.checked(answer)["annotation"]
    return found


def score(value: float, name: str = "correctness", **more: Any) -> dict[str, Any]:
    return {"kind": "score", "name": name, "score": {"value": value}, **more}


def lines(api: Api, **query: Any) -> list[dict[str, Any]]:
    answer = api.http.get("/v1/annotations/export", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    found = [json.loads(line) for line in answer.text.splitlines()]
    for line in found:
        check_fits(DatasetLine, line)
    return found


def test_what_is_said_is_shown_on_the_run_and_on_the_step(api: Api) -> None:
    api.send(traces(span("root"), chat(parent="root")))
    run, step = run_id(), step_id("chat")
    tag = given(api, run_id=run, kind="tag", tag="Golden")
    number = given(api, step_id=step, by="judge", source="llm", **score(0.7, explanation="ok"))

    shown = api.get(f"/v1/runs/{run}")
    assert shown["tags"] == ["golden"]
    assert shown["scores"] == [{"name": "correctness", "value": 0.7, "label": None, "count": 1}]
    assert shown["annotations"] == [tag]
    assert api.get(f"/v1/steps/{step}")["annotations"] == [number]
    assert api.get("/v1/runs", tag="golden", score="correctness>0.5")["items"][0]["run_id"] == run
    assert api.get("/v1/runs", score="correctness<0.5")["items"] == []
    assert api.get("/v1/facets")["facets"]["tag"] == [{"value": "golden", "runs": 1}]
    assert api.items("/v1/annotations", run=run[:8], limit=1) == [number, tag]
    assert api.items("/v1/annotations", step=step) == [number]
    assert api.items("/v1/annotations", kind="tag", name="golden", author="me") == [tag]
    assert api.get(f"/v1/annotations/{tag['annotation_id'][-8:]}")["annotation"] == tag


def test_what_programs_send_as_evaluations_stands_in_the_same_list(api: Api) -> None:
    api.send(traces(chat()))
    told = {"gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.score.value": 0.25}
    record = log("said", "chat", name="gen_ai.evaluation.result")
    record.attributes.extend(pairs(told))
    api.send(logs(record))
    measured = post(api, "/v1/scores", step_id=step_id("chat"), name="length",
                    score={"value": 12, "label": "short"}, by="wc")  # fmt: skip

    assert api.checked(measured)["annotation"]["source"] == "code"
    found = api.items("/v1/annotations", step=step_id("chat"))
    assert [(one["name"], one["score"]["value"], one["origin"]) for one in found] == [
        ("length", 12.0, "api"),
        ("relevance", 0.25, "otlp"),
    ]
    assert api.get("/v1/runs", score="relevance=0.25")["items"] != []
    in_a_persons_name = post(api, "/v1/scores", step_id=step_id("chat"), source="human",
                             name="x", score={"value": 1})  # fmt: skip
    assert in_a_persons_name.status_code == 400


def test_a_note_is_withdrawn_and_stays_in_the_history(api: Api) -> None:
    api.send(traces(chat()))
    note = given(api, run_id=run_id(), kind="note", text="no")
    path = f"/v1/annotations/{note['annotation_id']}/withdraw"

    gone = api.checked(post(api, path, reason="of another run", by="iris"))["annotation"]
    again = post(api, path)

    assert (gone["state"], gone["ended"]["by"]) == ("withdrawn", "iris")
    assert (again.status_code, api.error_of(again)["code"]) == (409, "annotation_not_current")
    assert api.items("/v1/annotations") == []
    assert api.items("/v1/annotations", state="all") == [gone]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"kind": "tag", "tag": "<"}, 400, "bad_request"),
        ({"kind": "score", "name": "a", "score": {}}, 400, "bad_request"),
        ({"kind": "note", "text": "x" * 20_000}, 400, "bad_request"),
        ({"kind": "tag", "tag": "x", "run_id": "0" * 32}, 404, "not_found"),
    ],
)
def test_what_cannot_be_kept_is_an_error_with_a_code(
    api: Api, body: dict[str, Any], status: int, code: str
) -> None:
    api.send(traces(chat()))
    refused = post(api, "/v1/annotations", **{"run_id": run_id(), **body})

    assert refused.status_code == status
    assert api.error_of(refused)["code"] == code


def test_a_sparing_store_says_what_it_keeps(sparing_api: Api) -> None:
    sparing_api.send(traces(chat()))
    note = post(sparing_api, "/v1/annotations", run_id=run_id(), kind="note", text="x")
    secret = post(sparing_api, "/v1/annotations", run_id=run_id(), kind="tag",
                  tag="ghp_" + "a1b2c3d4e5f6" * 3)  # fmt: skip

    if note.status_code == 409:
        assert sparing_api.error_of(note)["code"] == "annotation_text_not_retained"
    else:
        assert note.status_code == 201
    assert sparing_api.error_of(secret)["code"] == "annotation_secret"


def test_a_run_is_summed_up_once_however_many_of_its_steps_are_marked(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(connection: apsw.Connection, wanted: str, *, now_ns: int) -> RunItem:
        read.append(wanted)
        return get_run(connection, wanted, now_ns=now_ns)

    names = [f"chat {number}" for number in range(5)]
    api.send(traces(span("root"), *(chat(name, parent="root") for name in names)))
    for name in names:
        given(api, step_id=step_id(name), kind="tag", tag="golden")
    monkeypatch.setattr(dataset, "get_run", counted)

    assert len(lines(api, tag="golden")) == 5
    assert read == [run_id()]


def test_bad_questions_are_refused_in_words(api: Api) -> None:
    two = {"run": "a", "step": "b"}
    for query in ({"kind": "praise"}, {"state": "gone"}, two, {"cursor": "x"}):
        api.refused(400, "/v1/annotations", **query)
    api.refused(400, "/v1/annotations/export", score="a>")
    api.refused(400, "/v1/runs", tag="<")
    api.refused(404, "/v1/annotations/export", run="abcdef01")
    api.refused(404, "/v1/annotations/abcdef01")


def test_a_token_of_a_sender_measures_and_never_speaks_for_a_person(
    make_client: MakeClient, runs: RunMaker
) -> None:
    tokens = (
        AccessToken("ingest-secret-token", frozenset({Scope.INGEST})),
        AccessToken("decide-secret-token", frozenset({Scope.DECIDE})),
    )
    client, run = make_client(WebSettings(tokens=tokens)), runs.run()
    body = {"run_id": run, "name": "length", "score": {"value": 3}}

    def status(path: str, token: str, **more: Any) -> int:
        bearer = {"Authorization": f"Bearer {token}-secret-token"}
        return client.post(path, json={**body, **more}, headers=bearer).status_code

    assert status("/v1/scores", "ingest") == 201
    assert status("/v1/annotations", "ingest", kind="score") == 403
    assert status("/v1/annotations", "decide", kind="score") == 201


# ---- the data set


def test_a_line_holds_what_a_model_was_given_and_what_was_said_of_it(api: Api) -> None:
    api.send(traces(span("root"), chat(parent="root"), span("other", "root")))
    step = step_id("chat")
    given(api, step_id=step, kind="tag", tag="golden")
    given(api, step_id=step, **score(0.4, expected="noon", by="ana"))
    given(api, step_id=step, kind="note", text="too short", by="ana")

    (line,) = lines(api)

    shown = api.get(f"/v1/steps/{step}")["call"]
    for field in ("input", "output"):
        assert [one["parts"] for one in line[field]] == [one["parts"] for one in shown[field]]
        assert line[field]
    assert (line["run_id"], line["step_id"], line["role"]) == (run_id(), step, "llm")
    assert (line["expected"], line["tags"]) == ("noon", ["golden"])
    assert [(one["name"], one["value"], one["author"]) for one in line["scores"]] == [
        ("correctness", 0.4, "ana")
    ]
    assert [one["text"] for one in line["notes"]] == ["too short"]


def test_a_marked_run_is_told_by_its_first_prompt_and_its_last_answer(api: Api) -> None:
    api.send(traces(span("root"), chat(parent="root")))
    given(api, run_id=run_id(), kind="tag", tag="golden")
    given(api, step_id=step_id("root"), kind="tag", tag="odd")

    run, step = lines(api)

    call = api.get(f"/v1/steps/{step_id('chat')}")["call"]
    assert (run["step_id"], run["role"]) == (None, "run")
    assert [one["parts"] for one in run["input"]] == [one["parts"] for one in call["input"]]
    assert [one["parts"] for one in run["output"]] == [one["parts"] for one in call["output"]]
    assert (step["step_id"], step["tags"]) == (step_id("root"), ["odd"])
    assert lines(api, tag="golden") == [run]
    assert lines(api, tag=["golden", "odd"]) == []
    assert lines(api, run=run_id()[:10]) == [run, step]
    assert lines(api, score="x") == []


def test_a_long_data_set_is_read_line_by_line(api: Api) -> None:
    names = [f"s{number}" for number in range(45)]
    api.send(traces(*(span(name) for name in names)))
    for name in names:
        given(api, step_id=step_id(name), kind="tag", tag="all")

    found = lines(api, tag="all")

    assert {line["step_id"] for line in found} == {step_id(name) for name in names}
    assert len(found) == 45


def test_an_exported_run_carries_what_was_said_of_it(api: Api) -> None:
    api.send(traces(chat()))
    said = given(api, run_id=run_id(), kind="tag", tag="golden")

    whole = api.http.get(f"/v1/runs/{run_id()}/export").json()
    by_line = api.http.get(f"/v1/runs/{run_id()}/export?format=jsonl").text.splitlines()

    assert whole["hansardAnnotations"] == [said]
    assert json.loads(by_line[-1]) == {"hansardAnnotations": [said]}
