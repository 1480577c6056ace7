"""Past the first divergence, on request: results of the record, of a program's gate, or by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hansard_store.content.payloads import blob_path
from tests.instrumentation.clients.provider import Reply, json_reply
from tests.web.replay.stage import Stage
from tests.web.replay.test_replay_forward import TURNS, forward, ran, recorded_run, saying

Json = dict[str, Any]

# In the place of the second turn: one call that was recorded, and one that was not.
PARTED = saying(None, ("send_email", {"to": "ada"}), ("get", {"k": 9}))
END = saying("All three are in the post.")


def go_on(stage: Stage, told: Json, *answers: Json, **more: Any) -> Json:
    """Have a fork go on live, wait for where it stops, and return it."""
    stage.provider.replies.extend(json_reply(one) for one in answers)
    path = f"/v1/replay/{told['replay_id']}/continue"
    answer = stage.post(path, {"wait_s": 30, **more})
    assert answer.status_code == 201, answer.text
    body: Json = answer.json()
    return body


def refused(stage: Stage, told: Json, **more: Any) -> Json:
    """Ask a fork to go on where it cannot; returns the error's details."""
    answer = stage.post(f"/v1/replay/{told['replay_id']}/continue", {"wait_s": 30, **more})
    assert answer.status_code == 409, answer.text
    error: Json = answer.json()["error"]
    return {**error["details"], "message": error["message"]}


def parted_fork(stage: Stage, **more: Any) -> Json:
    return forward(stage, recorded_run(stage)[0], [TURNS[0], PARTED], **more)


@pytest.mark.covers("RP-20", "RP-23")
def test_it_goes_on_only_on_request_and_waits_for_what_was_not_recorded(stage: Stage) -> None:
    parted = parted_fork(stage)
    sent = len(stage.provider.received)

    waiting = go_on(stage, parted)

    assert (parted["state"], parted["continuation"]["needs"]) == ("diverged", "results")
    assert (waiting["state"], waiting["reason"]) == ("waiting", "needs_results")
    states = {one["call_id"]: one["state"] for one in waiting["continuation"]["calls"]}
    assert states == {"call_send_email_0": "recorded", "call_get_1": "needed"}
    assert len(stage.provider.received) == sent  # nothing was asked without the result
    assert ran == []


def test_a_result_by_hand_lets_it_go_on_and_says_whose_it_is(stage: Stage) -> None:
    waiting = go_on(stage, parted_fork(stage))

    done = go_on(
        stage, waiting, END, by="ada", results=[{"call_id": "call_get_1", "result": {"at": "sea"}}]
    )

    said = stage.provider.received[-1].json["messages"]
    before = stage.provider.received[-2].json
    assert (done["state"], done["continuation"]) == ("done", None)
    assert said[: len(before["messages"])] == before["messages"]
    assert {**stage.provider.received[-1].json, "messages": []} == {**before, "messages": []}
    assert [one["content"] for one in said[-2:]] == ["result of call_send_email_1", '{"at":"sea"}']
    [recorded, given] = done["live"]["calls"]
    assert (recorded["origin"], given["origin"], given["by"]) == ("recorded", "hand", "ada")
    assert ran == []


def test_every_live_step_is_in_the_replays_run_linked_and_labelled(stage: Stage) -> None:
    waiting = go_on(stage, parted_fork(stage))
    done = go_on(stage, waiting, END, results=[{"call_id": "call_get_1", "result": "lost"}])

    live = [one["step_id"] for one in done["steps"] if one.get("is_live")]
    steps = stage.get(f"/v1/runs/{done['run_id']}/steps")["items"]
    tools = [stage.step(one["step_id"]) for one in steps if one["role"] == "tool"]
    call = stage.step(live[0])
    assert len(live) == 1
    assert any(label.startswith("live: from turn 3") for label in done["labels"])
    for one in (call, *tools):
        assert one["run_id"] == done["run_id"]
        assert one["attributes"]["hansard.replay.live"] is True
        assert one["attributes"]["hansard.replay.id"] == done["replay_id"]
        assert one["parent_span_id"] == done["live"]["step_id"].rpartition("-")[2]
    assert call["attributes"]["hansard.replay.of"] == done["divergence"]["source_step_id"]
    origins = {one["attributes"]["hansard.replay.result"] for one in tools}
    assert origins == {"recorded", "hand"}


def test_a_recorded_result_is_used_once(stage: Stage) -> None:
    twice = saying(None, ("get", {"k": 8}), ("get", {"k": 8}))
    parted = forward(stage, recorded_run(stage)[0], [TURNS[0], twice])

    waiting = go_on(stage, parted)

    assert [one["state"] for one in waiting["continuation"]["calls"]] == ["recorded", "needed"]


def test_asked_for_at_once_it_goes_through_as_long_as_everything_was_recorded(stage: Stage) -> None:
    swapped = saying(None, ("send_email", {"to": "ada"}), ("get", {"k": 8}))

    done = forward(stage, recorded_run(stage)[0], [TURNS[0], swapped, END], live=True)

    assert (done["state"], len(done["steps"])) == ("done", 3)
    assert done["divergence"]["turn"] == 2
    assert done["live"]["turns"] == 1
    assert ran == []


def test_a_preview_says_how_far_it_would_go_and_for_how_much(stage: Stage) -> None:
    steps = recorded_run(stage)

    shown = stage.preview(steps[0], live=True, max_turns=3, max_usd=0.25)

    assert "up to 3 live turns, for at most $0.25" in shown["notes"][-1]
    assert stage.provider.received == []


def test_turns_are_bounded_and_more_can_be_allowed(stage: Stage) -> None:
    again = saying(None, ("get", {"k": 8}))
    results = [{"call_id": "call_get_0", "result": "x"}]
    parted = forward(stage, recorded_run(stage)[0], [TURNS[0], again])

    bounded = go_on(stage, parted, saying(None, ("get", {"k": 77})), max_turns=1)
    more = go_on(stage, bounded, END, max_turns=1, results=results)

    assert (bounded["state"], bounded["reason"]) == ("waiting", "turn_limit")
    assert (bounded["continuation"]["kind"], bounded["continuation"]["needs"]) == ("bounds", "more")
    assert more["state"] == "done"


def test_money_is_bounded_before_it_is_spent(stage: Stage) -> None:
    parted = forward(stage, recorded_run(stage)[0], [TURNS[0], saying(None, ("get", {"k": 8}))])
    sent = len(stage.provider.received)

    bounded = go_on(stage, parted, max_usd=0)

    assert parted["continuation"]["estimate"]["usd"] > 0
    assert (bounded["state"], bounded["reason"]) == ("waiting", "spend_limit")
    assert len(stage.provider.received) == sent


def test_a_provider_that_fails_in_the_middle_leaves_a_fork_that_can_go_on(stage: Stage) -> None:
    waiting = go_on(stage, parted_fork(stage))
    stage.provider.replies.append(Reply([b"{}"], status=503))
    path = f"/v1/replay/{waiting['replay_id']}/continue"
    results = [{"call_id": "call_get_1", "result": "lost"}]

    failed = stage.post(path, {"wait_s": 30, "max_retries": 0, "results": results}).json()
    done = go_on(stage, failed, END)

    assert (failed["state"], failed["reason"]) == ("failed", "provider_failed")
    assert (done["state"], done["error"]) == ("done", None)


def test_a_result_is_given_once_and_only_for_a_call_that_waits(stage: Stage) -> None:
    parted = parted_fork(stage)
    waiting = go_on(stage, parted)
    given = [{"call_id": "call_get_1", "result": "lost"}]

    nobody = refused(stage, waiting, results=[{"call_id": "call_other", "result": 1}])
    answered = refused(stage, waiting, results=[{"call_id": "call_send_email_0", "result": 1}])
    done = go_on(stage, waiting, END, results=given)
    over = refused(stage, done, results=given)

    assert [one["reason"] for one in (nobody, answered, over)] == [
        "result_unknown",
        "result_unknown",
        "not_waiting",
    ]


def test_what_did_not_part_or_sent_nothing_does_not_go_on(stage: Stage) -> None:
    steps = recorded_run(stage)
    whole = forward(stage, steps[0], TURNS)
    offline = stage.replay(steps[0], mode="forward", recorded=True)

    reasons = [refused(stage, one)["reason"] for one in (whole, offline)]
    mixed = stage.post("/v1/replay", {"step_id": steps[0], "live": True, "recorded": True})

    assert reasons == ["not_waiting", "not_waiting"]
    assert mixed.status_code == 400
    assert stage.post("/v1/replay/" + "0" * 32 + "/continue", {}).status_code == 404


def test_integers_over_64_bits_in_a_call_are_kept_as_they_are(stage: Stage) -> None:
    huge = saying(None, ("get", {"k": 10**30}))

    told = forward(stage, recorded_run(stage)[0], [huge])

    assert told["state"] == "diverged"
    assert told["continuation"]["calls"][0]["arguments"] == {"k": 10**30}


def test_of_two_who_go_on_at_once_one_does(stage: Stage) -> None:
    waiting = go_on(stage, parted_fork(stage))
    sent = len(stage.provider.received)
    path = f"/v1/replay/{waiting['replay_id']}/continue"
    stage.provider.replies.extend([json_reply(END), json_reply(END)])
    body = {"wait_s": 30, "results": [{"call_id": "call_get_1", "result": "lost"}]}

    with ThreadPoolExecutor(2) as both:
        answers = list(both.map(lambda _: stage.post(path, body), range(2)))

    codes = sorted(one.status_code for one in answers)
    told = stage.get(f"/v1/replay/{waiting['replay_id']}")
    assert codes == [201, 409]
    assert (told["state"], len(told["steps"])) == ("done", 3)
    assert len(stage.provider.received) == sent + 1


def test_sent_again_under_its_key_a_fork_goes_on_once(stage: Stage) -> None:
    waiting = go_on(stage, parted_fork(stage))
    path = f"/v1/replay/{waiting['replay_id']}/continue"
    stage.provider.replies.append(json_reply(END))
    body = {"wait_s": 30, "results": [{"call_id": "call_get_1", "result": "lost"}]}

    first, again = (stage.post(path, body, Idempotency_Key="once-more") for _ in range(2))

    assert (first.status_code, again.status_code) == (201, 201)
    assert len(again.json()["steps"]) == 3


def test_where_the_bytes_of_the_last_answer_are_gone_it_says_so(stage: Stage) -> None:
    large = saying("so many words " * 20_000, ("get", {"k": 9}))
    waiting = go_on(stage, forward(stage, recorded_run(stage)[0], [TURNS[0], large]))
    ref = stage.step(waiting["continuation"]["step_id"])["attributes"]["hansard.response.ref"]
    blob_path(stage.folder, bytes.fromhex(ref.removeprefix("sha256:"))).unlink()

    told = refused(stage, waiting, results=[{"call_id": "call_get_0", "result": "lost"}])

    assert told["reason"] == "no_recording"
    assert stage.get(f"/v1/replay/{waiting['replay_id']}")["state"] == "waiting"


def test_the_source_is_not_touched_by_what_goes_on_live(stage: Stage) -> None:
    steps = recorded_run(stage)
    before = stage.rows_of(steps[0][:32])

    parted = forward(stage, steps[0], [TURNS[0], PARTED])
    waiting = go_on(stage, parted)
    go_on(stage, waiting, END, results=[{"call_id": "call_get_1", "result": "lost"}])

    assert stage.rows_of(steps[0][:32]) == before
