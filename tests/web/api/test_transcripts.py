"""Transcripts over HTTP: appended, read, folded, redacted, each with its own scope."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_compiler.transcripts.views import prefix_hash
from hansard_web.app.application import create_app
from tests.instrumentation.transcript_maker import SECRET, assistant, call, result, user
from tests.store.empty import empty_store
from tests.web.api.conftest import Api, Json, make_api
from tests.web.test_security import ALL, GUARDED, READER, SENDER, bearer


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    yield from make_api(tmp_path_factory.mktemp("api") / "data", retention="redacted_payloads")


@pytest.fixture
def talk(api: Api, request: pytest.FixtureRequest) -> str:
    return str(told(api, "/v1/transcripts", conversation=request.node.name)["conversation_id"])


def told(api: Api, path: str, **body: Any) -> Json:
    """Return the body of an answer to a POST, which fits its model."""
    answer = api.http.post(path, json=body)
    assert answer.status_code in (200, 201), answer.text
    return api.checked(answer)


def append(api: Api, log: str, *messages: Json, **more: Any) -> Json:
    return told(
        api, f"/v1/transcripts/{log}", messages=[{"message": one} for one in messages], **more
    )


def refused(api: Api, path: str, status: int, **body: Any) -> Json:
    answer = api.http.post(path, json=body)
    assert answer.status_code == status, answer.text
    return api.error_of(answer)


@pytest.mark.covers("SC-21", "TR-13", "TR-14")
def test_a_conversation_is_told_read_and_folded(api: Api, talk: str) -> None:
    stored = append(api, talk, user("one"), assistant("two"))
    made = told(
        api, f"/v1/transcripts/{talk}/fold", summary="one and two", expected_head=1, by="me"
    )
    append(api, talk, user("three"))

    everything = api.get(f"/v1/transcripts/{talk}")
    active = api.get(f"/v1/transcripts/{talk}", view="active")

    assert stored["head"] == 1
    assert [one["position"] for one in everything["items"]] == [0, 1, 2]
    assert everything["items"][:2] == stored["items"]
    assert [fold["position"] for fold in everything["folds"]] == [made["position"]] == [1]
    assert [one["position"] for one in active["items"]] == [None, 2]
    assert active["prefix_hash"] == prefix_hash(one["message"] for one in active["items"])
    assert active["head"] == 2


def test_a_long_transcript_is_read_page_by_page(api: Api, talk: str) -> None:
    append(api, talk, *(user(f"{n}") for n in range(25)))

    items = api.items(f"/v1/transcripts/{talk}", limit=10)

    assert [one["position"] for one in items] == list(range(25))
    assert api.refused(400, f"/v1/transcripts/{talk}", cursor="zzz")["code"] == "invalid_cursor"


def test_transcripts_are_listed_and_found_by_their_conversation(api: Api, talk: str) -> None:
    append(api, talk, user("find me"))
    name = api.get(f"/v1/transcripts/{talk}")["conversation"]

    (found,) = api.get("/v1/transcripts", conversation=name)["items"]

    assert (found["conversation_id"], found["messages"]) == (talk, 1)
    assert found["first_input"] == "find me"
    assert talk in [one["conversation_id"] for one in api.items("/v1/transcripts", limit=1)]
    assert api.get(f"/v1/transcripts/{talk}/stats")["roles"] == {"user": 1}


@pytest.mark.covers("TR-25")
def test_a_redacted_message_is_veiled_but_for_whoever_asks_for_it_raw(api: Api, talk: str) -> None:
    append(api, talk, user("I am Ada"), assistant("hello"))
    marked = told(
        api, f"/v1/transcripts/{talk}/redactions", position=0, reason="asked for it", by="me"
    )

    shown, _ = api.get(f"/v1/transcripts/{talk}")["items"]
    raw, _ = api.get(f"/v1/transcripts/{talk}", raw=True)["items"]

    assert marked["cache"]["cold_tokens"] > 5
    assert (shown["mark"]["kind"], shown["mark"]["by"]) == ("redacted", "me")
    assert "Ada" not in str(shown)
    assert raw["message"]["parts"][0]["text"] == "I am Ada"
    assert "Ada" not in str(api.get(f"/v1/transcripts/{talk}", view="active"))


@pytest.mark.covers("TR-18")
def test_a_clipped_result_leads_to_its_original(api: Api, talk: str) -> None:
    text = f"{SECRET} " + "row\n" * 20_000
    items = append(api, talk, call("c1"), result("c1", text), clip_bytes=2048)["items"]

    clip = items[1]["message"]["parts"][0]["clip"]
    whole = api.http.get(f"/v1/payloads/{clip['payload']}")

    assert clip["kept_bytes"] <= 2048
    assert whole.status_code == 200
    assert len(whole.content) == clip["size_bytes"]
    assert whole.content.endswith(b"row\nrow\n")
    assert SECRET not in whole.text


@pytest.mark.covers("TR-24", "TR-27")
def test_cost_and_what_a_summary_lost_are_told(api: Api, talk: str) -> None:
    append(api, talk, user("Never deploy on Fridays."), user("word " * 5_000))
    cost = api.get(f"/v1/transcripts/{talk}/cost", model="gpt-4o", window_tokens=6_000)
    check = told(api, f"/v1/transcripts/{talk}/check", summary="deploys happen")

    assert cost["advice"] == "now"
    assert cost["estimator"].startswith("o200k")
    assert [one["sentence"] for one in check["lost"]] == ["Never deploy on Fridays."]
    assert told(api, f"/v1/transcripts/{talk}/check")["sentences"] == 0  # nothing is folded


@pytest.mark.covers("TR-20")
def test_a_sub_agent_is_begun_told_and_ended(api: Api, talk: str) -> None:
    append(api, talk, user("look"))
    branch = told(api, f"/v1/transcripts/{talk}/branches", name="researcher")["branch_id"]
    append(api, branch, user("read"))
    ended = told(api, f"/v1/transcripts/{branch}/end")

    assert (ended["ended"], ended["messages"], ended["parent_position"]) == ("done", 1, 0)
    assert [one["name"] for one in api.get(f"/v1/transcripts/{talk}")["branches"]] == ["researcher"]
    assert api.get(f"/v1/transcripts/{branch}")["branch"]["parent"] == talk
    assert api.items(f"/v1/transcripts/{talk}/branches")[0]["branch_id"] == branch


def test_a_message_sent_again_under_its_id_stands_once(api: Api, talk: str) -> None:
    body = {"messages": [{"message": user("once"), "message_id": "a" * 32, "step_id":
            "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"}]}  # fmt: skip
    first, again = (told(api, f"/v1/transcripts/{talk}", **body) for _ in range(2))

    assert first == again
    assert first["items"][0]["step_id"].startswith("4bf92f35")
    error = refused(
        api,
        f"/v1/transcripts/{talk}",
        409,
        messages=[{"message": user("other"), "message_id": "a" * 32}],
    )
    assert error["code"] == "message_id_used"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"messages": [{"message": {"role": "system", "content": "x"}}]}, 400, "invalid_message"),
        ({"messages": []}, 400, "bad_request"),
        ({"messages": [{"message": {"role": "user"}}]}, 400, "invalid_message"),
        ({"messages": [{"message": {"role": "user", "content": "x"}, "message_id": "X"}]}, 400,
         "bad_request"),
        ({"messages": [{"message": {"role": "user", "content": "x"}, "position": 3}]}, 400,
         "bad_request"),
    ],
)  # fmt: skip
def test_what_cannot_be_appended_is_refused_in_words(
    api: Api, talk: str, body: Json, status: int, code: str
) -> None:
    assert refused(api, f"/v1/transcripts/{talk}", status, **body)["code"] == code
    assert api.get(f"/v1/transcripts/{talk}")["items"] == []


def test_other_ids_and_unknown_ones_are_told_apart(api: Api) -> None:
    run_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    assert api.refused(400, f"/v1/transcripts/{run_id}")["code"] == "invalid_conversation_id"
    assert api.refused(404, f"/v1/transcripts/conv_{run_id}")["code"] == "not_found"
    assert api.refused(404, f"/v1/transcripts/br_{run_id}", view="active")["code"] == "not_found"


def test_a_fold_that_comes_too_late_is_told_where_the_head_is(api: Api, talk: str) -> None:
    append(api, talk, user("a"), user("b"))
    error = refused(api, f"/v1/transcripts/{talk}/fold", 409, summary="a", expected_head=0)

    assert (error["code"], error["details"]) == ("head_stale", {"expected": 0, "found": 1})


def test_a_server_that_keeps_no_content_keeps_no_transcript(tmp_path: Path) -> None:
    for api in make_api(tmp_path / "strict", retention="metadata_only"):
        error = refused(api, "/v1/transcripts", 409, conversation="talk")
        assert error["code"] == "transcript_withheld"


@pytest.mark.parametrize(
    ("method", "path", "least"),
    [
        ("GET", "/v1/transcripts", READER),
        ("POST", "/v1/transcripts", SENDER),
        ("POST", "/v1/transcripts/{talk}", SENDER),
        ("POST", "/v1/transcripts/{talk}/fold", SENDER),
        ("POST", "/v1/transcripts/{talk}/check", READER),
        ("POST", "/v1/transcripts/{talk}/redactions", ALL),
        ("GET", "/v1/transcripts/{talk}?raw=true", ALL),
    ],
)
def test_each_route_has_its_scope(tmp_path: Path, method: str, path: str, least: str) -> None:
    app = create_app(empty_store(tmp_path / "data"), None, GUARDED)
    with TestClient(app, base_url="http://localhost") as client:
        made = client.post("/v1/transcripts", json={"conversation": "t"}, headers=bearer(ALL))
        path = path.format(talk=made.json()["conversation_id"])
        for token in (READER, SENDER, ALL):
            answer = client.request(
                method, path, json={} if method == "POST" else None, headers=bearer(token)
            )
            may = token in (least, ALL)
            assert (answer.status_code != 403) is may, (token, answer.text)
