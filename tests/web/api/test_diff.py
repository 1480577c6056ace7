"""`/v1/diff`: any two steps or runs compared, and every answer fits its description."""

from __future__ import annotations

from typing import Any

import pytest

from hansard_web.diff.bodies import CompactionSides, RunDiffAnswer, StepDiffAnswer
from tests.web.answers import check_fits
from tests.web.comparisons import (
    AGNO_RUN,
    FRAMEWORK_RUN,
    LEFT,
    RIGHT,
    TALK,
    World,
    made_world,
    step,
)

Json = dict[str, Any]


def get(world: World, path: str, **query: Any) -> Json:
    answer = world.http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    model = RunDiffAnswer if "/runs/" in path else StepDiffAnswer
    check_fits(CompactionSides if "compaction" in path else model, body)
    return body


def steps_diff(world: World, left: str, right: str) -> Json:
    return get(world, f"/v1/diff/steps/{left}/{right}")


def runs_diff(world: World, left: str, right: str, **query: Any) -> Json:
    return get(world, f"/v1/diff/runs/{left}/{right}", **query)


@pytest.mark.covers("DF-01", "DF-11", "SC-13", "TS-13")
def test_two_steps_of_two_runs_are_compared(world: World) -> None:
    body = steps_diff(world, step(LEFT, 3), step(RIGHT, 3))

    assert not body["is_empty"]
    assert {"context", "messages", "request", "output", "tokens.output"} <= set(
        body["changed_fields"]
    )
    tokens = next(one for one in body["headline"] if one["name"] == "tokens.output")
    assert (tokens["left"], tokens["right"], tokens["delta"]) == (55, 40, -15)
    assert (tokens["direction"], tokens["verdict"]) == ("less", "better")
    cost = next(one for one in body["headline"] if one["name"] == "cost_usd")
    assert cost["direction"] in ("more", "less")


@pytest.mark.slow
@pytest.mark.covers("DF-04", "DF-05", "DF-06", "DF-07", "DF-08", "DF-09", "DF-12")
def test_the_compiles_of_two_calls_are_compared_with_verified_causes(world: World) -> None:
    compile_ = steps_diff(world, step(LEFT, 3), step(RIGHT, 3))["compile"]

    items = {one["item_id"]: one for one in compile_["items"]}
    flips = [one for one in compile_["items"] if one["change"] not in ("same", "score", "content")]
    assert items["earlier-fix"]["change"] == "added"
    assert items["earlier-fix"]["cause"]["kind"] == "input"
    assert any(one["cause"]["kind"] == "budget" for one in flips)
    assert {one["cause"]["basis"] for one in flips} == {"verified"}
    assert any(term["term"] == "freshness" for one in compile_["items"] for term in one["terms"])
    assert {one["name"]: one["delta"] for one in compile_["budget"]}["budget"] == 800
    (rule,) = compile_["policy"]
    assert (rule["rule_id"], rule["left_version"], rule["right_version"]) == (
        "restricted-sources", "6", "7",
    )  # fmt: skip
    names = {one["name"] for one in compile_["settings"]}
    assert {"token_budget", "weight.freshness", "rule.restricted-sources"} <= names


def test_a_compile_step_and_its_call_give_the_same_comparison(world: World) -> None:
    of_calls = steps_diff(world, step(LEFT, 3), step(RIGHT, 3))["compile"]
    assert steps_diff(world, step(LEFT, 2), step(RIGHT, 2))["compile"] == of_calls


def test_the_answer_is_told_by_word_and_the_tool_call_by_path(world: World) -> None:
    body = steps_diff(world, step(LEFT, 3), step(RIGHT, 3))

    gone = "".join(one["text"] for one in body["output"]["text"] if one["op"] == "del")
    come = "".join(one["text"] for one in body["output"]["text"] if one["op"] == "ins")
    assert "render_total" in gone
    assert "to_cents" in come
    paths = {one["path"]: (one["left"], one["right"]) for one in body["output"]["json"]}
    assert paths["$[0].arguments.path"] == ("invoice.py", "money.py")
    assert paths["$[0].arguments.dry_run"] == (None, False)


def test_messages_and_request_bytes_are_compared(world: World) -> None:
    body = steps_diff(world, step(LEFT, 3), step(RIGHT, 3))

    assert [one["state"] for one in body["messages"]] == ["same", "same", "changed"]
    words = [(one["op"], one["text"]) for one in body["messages"][2]["text"]]
    assert words == [("same", "Budget "), ("del", "2600"), ("ins", "3400")]
    request = body["request"]
    assert not request["is_equal"]
    assert request["first_difference"] > 0
    assert request["json"]["changes"]


def test_a_tool_step_is_compared_by_arguments_and_result(world: World) -> None:
    body = steps_diff(world, step(LEFT, 5), step(RIGHT, 5))
    assert body["changed_fields"] == ["input", "output"]
    paths = {one["path"]: one["right"] for one in body["input"]["json"]}
    assert paths == {"$.dry_run": False, "$.hunks": 2, "$.path": "money.py"}
    assert {one["path"] for one in body["output"]["json"]} == {"$.ok", "$.files[0]"}


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_a_step_against_itself_is_empty(world: World, number: int) -> None:
    body = steps_diff(world, step(RIGHT, number), step(RIGHT, number))
    assert body["is_empty"]
    assert body["changed_fields"] == []


def test_steps_swapped_are_the_mirror_image(world: World) -> None:
    one = steps_diff(world, step(LEFT, 3), step(RIGHT, 3))
    other = steps_diff(world, step(RIGHT, 3), step(LEFT, 3))
    assert one["changed_fields"] == other["changed_fields"]
    assert [(a["left"], a["right"]) for a in one["headline"]] == [
        (b["right"], b["left"]) for b in other["headline"]
    ]
    sides = [(a["item_id"], a["left"], a["right"]) for a in one["compile"]["items"]]
    assert sides == [(b["item_id"], b["right"], b["left"]) for b in other["compile"]["items"]]


@pytest.mark.covers("DF-11")
def test_two_runs_are_laid_side_by_side(world: World) -> None:
    body = runs_diff(world, LEFT[:8], RIGHT[:8])

    assert not body["is_empty"]
    states = {(one["name"], one["state"]) for one in body["steps"]}
    assert ("list_files", "same") in {(name.split()[-1], state) for name, state in states}
    only = [one for one in body["steps"] if one["state"] == "only_right"]
    assert [one["left"] for one in only] == [None]
    assert "search_code" in only[0]["name"]
    call = next(one for one in body["steps"] if one["role"] == "llm")
    assert (call["state"], call["left"], call["right"]) == (
        "changed", step(LEFT, 3), step(RIGHT, 3),
    )  # fmt: skip
    assert body["detail"]["left"]["step_id"] == step(LEFT, 3)
    assert body["first_divergence"]["number"] == min(
        one["number"] for one in body["steps"] if one["state"] != "same" and one["role"] != "agent"
    )
    assert sum(body["counts"].values()) == body["total"] == len(body["steps"])


def test_a_run_against_itself_is_empty(world: World) -> None:
    body = runs_diff(world, LEFT, LEFT)
    assert body["is_empty"]
    assert {one["state"] for one in body["steps"]} == {"same"}
    assert body["first_divergence"] is body["detail"] is None


def test_runs_swapped_are_the_mirror_image(world: World) -> None:
    one, other = runs_diff(world, LEFT, RIGHT), runs_diff(world, RIGHT, LEFT)
    pairs = {(a["left"], a["right"]) for a in one["steps"]}
    assert pairs == {(b["right"], b["left"]) for b in other["steps"]}
    assert one["counts"]["only_left"] == other["counts"]["only_right"]


@pytest.mark.covers("DF-11")
def test_one_conversation_through_two_libraries_is_aligned_across_their_dialects(
    world: World,
) -> None:
    body = runs_diff(world, AGNO_RUN, FRAMEWORK_RUN)

    calls = [one for one in body["steps"] if one["role"] == "llm"]
    assert [(one["left"] is None, one["right"] is None) for one in calls] == [(False, False)] * 2
    tools = [one for one in body["steps"] if one["role"] == "tool"]
    assert [one["state"] for one in tools] == ["same"]  # one tool, one answer, two names of it
    assert {one["state"] for one in calls} == {"same"}  # they were told, and said, the same
    first = steps_diff(world, calls[0]["left"], calls[0]["right"])
    said = [one for one in first["messages"] if one["role"] == "user"]
    assert {one["state"] for one in said} <= {"same", "retold"}
    assert "output" not in first["changed_fields"]  # both asked for the weather in Paris


def test_pages_of_steps_hold_every_row_once(world: World) -> None:
    whole = runs_diff(world, LEFT, RIGHT)["steps"]
    found: list[Json] = []
    cursor = None
    while True:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        body = runs_diff(world, LEFT, RIGHT, **query)
        assert (body["detail"] is None) == bool(cursor)
        found += body["steps"]
        cursor = body["next_cursor"]
        if cursor is None:
            break
    assert found == whole
    changes = runs_diff(world, LEFT, RIGHT, only="changes")["steps"]
    assert changes == [one for one in whole if one["state"] != "same"]


@pytest.mark.covers("DF-03")
def test_a_compaction_offers_what_was_sent_before_and_after_it(world: World) -> None:
    body = get(world, f"/v1/diff/compaction/{step(TALK, 8)}")

    assert (body["before"], body["after"]) == (step(TALK, 4), step(TALK, 9))
    states = [one["state"] for one in body["diff"]["messages"]]
    assert states.count("only_left") >= 3
    assert states[0] == "same"
    again = get(world, f"/v1/diff/compaction/{step(TALK, 9)}")
    assert (again["before"], again["after"]) == (body["before"], body["after"])


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/diff/steps/dead-beef/dead-beef", 404, "not_found"),
        (f"/v1/diff/steps/{LEFT}/{RIGHT}", 409, "ambiguous_id"),
        ("/v1/diff/runs/00000000/00000001", 404, "not_found"),
        (f"/v1/diff/runs/{LEFT}/{RIGHT}?cursor=x", 400, "invalid_cursor"),
        (f"/v1/diff/runs/{LEFT}/{RIGHT}?only=x", 400, "invalid_query"),
        (f"/v1/diff/runs/{LEFT}/{RIGHT}?limit=501", 400, "invalid_query"),
        (f"/v1/diff/compaction/{step(LEFT, 3)}", 404, "no_compaction"),
        (f"/v1/diff/saved/{LEFT}/{step(RIGHT, 3)}", 400, "mixed_target_types"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(
    world: World, path: str, status: int, code: str
) -> None:
    answer = world.http.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.json()["error"]["message"]


def test_a_cursor_of_a_run_that_grew_is_stale(world: World) -> None:
    run = world.new_run()
    world.put_run(run, "growing", budget=2_600, patch={"path": "x"})
    cursor = runs_diff(world, run, LEFT, limit=1)["next_cursor"]
    world.put_run(run, "growing", budget=2_700, patch={"path": "y"}, is_better=True)
    answer = world.http.get(f"/v1/diff/runs/{run}/{LEFT}", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "cursor_stale")


def test_a_run_without_payloads_is_compared_by_its_receipts(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Requests and results never came: what is left is evidence, and says so."""
    for world in made_world(tmp_path_factory.mktemp("bare") / "data", keeps_payloads=False):
        body = steps_diff(world, step(LEFT, 2), step(RIGHT, 2))
        flips = [one for one in body["compile"]["items"] if one["cause"]]
        assert flips
        assert {one["cause"]["basis"] for one in flips} == {"evidence"}
        assert body["compile"]["settings"] is None
        assert any("request" in note for note in body["notes"])
