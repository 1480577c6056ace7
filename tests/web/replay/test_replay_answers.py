"""The bodies of the replay's routes are those that OpenAPI describes."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from hansard_web.replay.json import ReplayBody, ReplayList
from hansard_web.replay.preview import Preview
from hansard_web.steps.bodies import StepBody
from tests.web.answers import check_fits
from tests.web.replay.stage import SCRIPT, Stage


@pytest.mark.covers("SC-14", "SC-15")
def test_every_answer_is_as_it_is_described(stage: Stage) -> None:
    step_id = stage.compiled_call()
    removal = {"op": "remove_item", "item_id": "almanac"}
    done = stage.replay(step_id, script=SCRIPT, mutations=[removal], notes="why")
    again = stage.replay(done["step_ids"][0], script=SCRIPT, n=2)
    refused = stage.refused(step_id)

    check_fits(ReplayBody, done)
    check_fits(ReplayBody, again)
    check_fits(ReplayBody, stage.get(f"/v1/replay/{refused['replay_id']}"))
    check_fits(ReplayBody, stage.get(f"/v1/replay/{done['replay_id']}?comparison=false"))
    check_fits(Preview, stage.preview(step_id, removal))
    check_fits(ReplayList, stage.get(f"/v1/replay?step={step_id}&limit=1"))
    step = stage.step(step_id)
    check_fits(StepBody, step)
    assert [len(one["replays"]) for one in step["replays"]] == [0, 1]


def test_a_list_goes_on_and_bad_queries_are_refused(stage: Stage) -> None:
    step_id = stage.compiled_call()
    for _ in range(3):
        stage.replay(step_id, recorded=True)

    first = stage.get(f"/v1/replay?step={step_id}&limit=2")
    rest = stage.get(f"/v1/replay?step={step_id}&limit=2&cursor={first['next_cursor']}")

    assert (len(first["items"]), len(rest["items"]), rest["next_cursor"]) == (2, 1, None)
    assert stage.client.get("/v1/replay?cursor=x").status_code == 400
    assert stage.client.get("/v1/replay?limit=501").status_code == 400
    assert stage.client.get("/v1/replay?step=nothing").status_code == 404


def test_a_server_that_only_shows_makes_none(stage: Stage) -> None:
    step_id = stage.compiled_call()
    app = create_app(stage.folder, None, WebSettings())
    with TestClient(app, base_url="http://localhost") as client:
        answer = client.post("/v1/replay", json={"step_id": step_id})

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "recording_disabled")


def test_sent_again_under_its_key_a_replay_is_made_once(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")
    body = {"step_id": step_id, "wait_s": 30}

    first = stage.post("/v1/replay", body, idempotency_key="once-1")
    again = stage.post("/v1/replay", body, idempotency_key="once-1")

    assert again.json()["replay_id"] == first.json()["replay_id"]
    assert again.headers["idempotent-replayed"] == "true"
    assert len(stage.provider.received) == 2


def test_the_run_of_a_replay_is_named_after_its_agent(stage: Stage) -> None:
    told = stage.replay(stage.compiled_call(), recorded=True)

    assert stage.get(f"/v1/runs/{told['run_id']}")["name"] == "invoke_agent clerk"
