"""Tools that change something: a client proposes, a person decides, then it runs, once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.instrumentation.clients.provider import json_reply
from tests.web.mcp.conftest import LOOKER, Office
from tests.web.mcp.speaking import Speaker
from tests.web.replay.test_replay_forward import recorded_run
from tests.web.replay.test_replay_live import END, parted_fork

FACT = {
    "memory_type": "decision",
    "subject": "database",
    "content": "We stay with SQLite.",
    "namespace": {"project": "ledger"},
}


def waiting(office: Office) -> int:
    return len(office.stage.get("/v1/approvals?status=awaiting")["items"])


def sent(office: Office) -> int:
    return len(office.stage.provider.received)


@pytest.mark.covers("MC-03")
def test_a_replay_that_sends_waits_for_a_person_and_runs_once(office: Office) -> None:
    step_id = office.stage.compiled_call("openai")
    before = sent(office)
    call = {"step_id": step_id, "wait_s": 30.0}

    first = office.agent.call("replay", **call).answer
    early = office.agent.call("replay", **call, confirmation=first["confirmation"]).answer
    assert (first["status"], early["status"], sent(office)) == (
        "pending_confirmation", "pending_confirmation", before,
    )  # fmt: skip
    office.decide(first["approval_id"], "approve")
    ran = office.agent.call("replay", **call, confirmation=first["confirmation"]).answer
    again = office.agent.call("replay", **call, confirmation=first["confirmation"]).error

    assert ran["status"] == "done"
    assert ran["result"]["state"] == "done"
    assert sent(office) == before + 1
    assert again["code"] == "already_claimed"
    kept = office.stage.get(f"/v1/approvals/{first['approval_id']}")
    assert kept["agent"].startswith("mcp")
    assert kept["decided_by"] == "kim"
    assert kept["execution"]["result_ref"] == ran["result"]["replay_id"]
    told = office.agent.call("get_replay", replay_id=ran["result"]["replay_id"]).answer
    assert told["state"] == "done"


def test_a_preview_and_an_answer_from_the_recording_send_nothing_and_ask_nobody(
    office: Office,
) -> None:
    step_id = office.stage.compiled_call("openai")
    before, asked = sent(office), waiting(office)

    preview = office.reader.call("replay", step_id=step_id, preview=True).answer
    recorded = office.agent.call("replay", step_id=step_id, recorded=True, wait_s=30).answer

    assert preview["mode"] == "exact"
    assert (recorded["state"], recorded["recorded"]) == ("done", True)
    assert (sent(office), waiting(office)) == (before, asked)


def test_a_fork_goes_on_live_once_a_person_approved_its_results_and_bounds(office: Office) -> None:
    parted = parted_fork(office.stage)
    before = sent(office)
    call = {
        "replay_id": parted["replay_id"], "max_turns": 2, "max_usd": 0.5, "wait_s": 30.0,
        "results": [{"call_id": "call_get_1", "result": {"at": "sea"}}],
    }  # fmt: skip

    first = office.agent.call("continue_replay", **call).answer
    other = {**call, "max_turns": 9, "confirmation": first["confirmation"]}
    office.decide(first["approval_id"], "approve")
    office.stage.provider.replies.append(json_reply(END))
    changed = office.agent.call("continue_replay", **other).error
    ran = office.agent.call("continue_replay", **call, confirmation=first["confirmation"]).answer

    asked = office.stage.get(f"/v1/approvals/{first['approval_id']}")
    assert "up to 2 live turns for at most $0.5" in asked["description"]
    assert asked["arguments"]["results"][0]["result"] == {"at": "sea"}
    assert changed["code"] == "arguments_changed"
    assert (ran["result"]["state"], ran["result"]["live"]["turns"]) == ("done", 1)
    assert ran["result"]["live"]["by"] == "kim"
    assert sent(office) == before + 1


def test_a_live_replay_tells_a_person_how_far_it_may_go(office: Office) -> None:
    step_id = recorded_run(office.stage)[0]

    first = office.agent.call("replay", step_id=step_id, live=True, max_turns=3).answer
    asked = office.stage.get(f"/v1/approvals/{first['approval_id']}")

    assert "(live, up to 3 live turns for at most $1)" in asked["description"]
    assert (asked["arguments"]["live"], asked["arguments"]["max_turns"]) == (True, 3)


def test_what_does_not_go_on_or_not_by_this_token_is_refused_before_a_person_is_asked(
    office: Office,
) -> None:
    parted = parted_fork(office.stage)
    done = office.stage.replay(office.stage.compiled_call("openai"), recorded=True)
    asked = waiting(office)

    scope = office.reader.call("continue_replay", replay_id=parted["replay_id"]).error
    ended = office.agent.call("continue_replay", replay_id=done["replay_id"]).error

    assert scope["code"] == "scope_missing"
    assert (ended["code"], ended["details"]["reason"]) == ("not_replayable", "not_waiting")
    assert waiting(office) == asked
    assert office.stage.get(f"/v1/replay/{parted['replay_id']}")["state"] == "diverged"


def test_what_the_token_may_not_do_is_refused_before_a_person_is_asked(office: Office) -> None:
    step_id = office.stage.compiled_call("openai")
    asked = waiting(office)

    replay = office.reader.call("replay", step_id=step_id).error
    looker = Speaker(office.url, LOOKER)
    invalidate = looker.call("invalidate_memory", memory_id="ab" * 16, reason="no").error

    assert (replay["code"], invalidate["code"]) == ("scope_missing", "scope_missing")
    assert waiting(office) == asked


def test_what_cannot_be_replayed_is_refused_as_the_api_refuses_it(office: Office) -> None:
    step_id = office.stage.compiled_call("openai")
    run = office.stage.get(f"/v1/runs/{step_id[:32]}/steps")["items"][0]["step_id"]
    asked = waiting(office)

    by_api = office.stage.post("/v1/replay", {"step_id": run}).json()["error"]
    by_tool = office.agent.call("replay", step_id=run).error

    assert by_tool["code"] == by_api["code"] == "not_replayable"
    assert by_tool["details"]["reason"] == by_api["details"]["reason"]
    assert waiting(office) == asked


def test_memory_is_written_in_the_name_of_who_approved_it(office: Office) -> None:
    fact = {**FACT, "namespace": {"project": "of-its-own"}}
    first = office.reader.call("remember_fact", **fact).answer
    unread = office.reader.call("search_memory", namespace=fact["namespace"]).answer["items"]
    office.decide(first["approval_id"], "approve")
    ran = office.reader.call("remember_fact", **fact, confirmation=first["confirmation"]).answer
    found = office.reader.call("search_memory", namespace=fact["namespace"]).answer["items"]

    assert unread == []
    assert ran["status"] == "done"
    (memory,) = found
    assert memory["content"] == FACT["content"]
    assert memory["writer"] == "human_approved_summary"
    assert memory["approval_id"] == first["approval_id"]
    taken = _invalidated(office, memory["memory_id"])
    assert taken["result"]["memory"]["state"] == "invalidated"


def _invalidated(office: Office, memory_id: str) -> Any:
    call = {"memory_id": memory_id, "reason": "we moved"}
    first = office.reader.call("invalidate_memory", **call).answer
    office.decide(first["approval_id"], "approve")
    return office.reader.call(
        "invalidate_memory", **call, confirmation=first["confirmation"]
    ).answer


def test_other_arguments_than_the_approved_ones_do_not_run(office: Office) -> None:
    first = office.reader.call("remember_fact", **FACT).answer
    office.decide(first["approval_id"], "approve")
    other = {**FACT, "content": "We move to files.", "confirmation": first["confirmation"]}

    assert office.reader.call("remember_fact", **other).error["code"] == "arguments_changed"


def test_an_action_that_was_sent_back_comes_again_with_a_new_draft(office: Office) -> None:
    first = office.reader.call("remember_fact", **{**FACT, "subject": "drafts"}).answer
    confirmation = first["confirmation"]
    office.decide(first["approval_id"], "revise", note="say which version")
    same = {**FACT, "subject": "drafts", "confirmation": confirmation}

    unchanged = office.reader.call("remember_fact", **same).answer
    changed = office.reader.call("remember_fact", **{**same, "content": "SQLite 3.53."}).answer
    office.decide(first["approval_id"], "approve", revision=2)
    ran = office.reader.call("remember_fact", **{**same, "content": "SQLite 3.53."}).answer

    assert (unchanged["approval"]["status"], unchanged["note"]) == ("revised", "say which version")
    assert changed["approval"]["revision"] == 2
    assert ran["result"]["memory"]["content"] == "SQLite 3.53."


def test_a_rejected_action_says_so_and_never_runs(office: Office) -> None:
    first = office.reader.call("remember_fact", **{**FACT, "subject": "no"}).answer
    office.decide(first["approval_id"], "reject", reason="not so")

    error = office.reader.call(
        "remember_fact", **{**FACT, "subject": "no"}, confirmation=first["confirmation"]
    ).error

    assert error["code"] == "rejected"
    assert "not so" in error["message"]


def test_a_client_cannot_approve_and_the_key_of_a_proposal_stays_with_the_server(
    office: Office,
) -> None:
    first = office.agent.call("remember_fact", **{**FACT, "subject": "mine"})
    approval_id = first.answer["approval_id"]

    told = office.agent.call("get_approval", approval_id=approval_id).answer

    names = {tool.name for tool in office.agent.run(lambda client: client.list_tools()).tools}
    assert not {name for name in names if "approve" in name or "reject" in name}
    assert "proposal_key" not in first.text
    assert told["status"] == "awaiting"
    listed = office.agent.call("list_approvals", status=["awaiting"]).answer["items"]
    assert approval_id in {one["approval_id"] for one in listed}


def test_a_confirmation_is_of_no_use_to_another_token(office: Office) -> None:
    fact = {**FACT, "subject": "whose"}
    first = office.reader.call("remember_fact", **fact).answer
    office.decide(first["approval_id"], "approve")

    stolen = office.agent.call("remember_fact", **fact, confirmation=first["confirmation"]).error
    made_up = office.agent.call("remember_fact", **fact, confirmation="0" * 40).error
    crossed = office.agent.call(
        "invalidate_memory",
        memory_id=office.reader.call(
            "remember_fact", **fact, confirmation=first["confirmation"]
        ).answer["result"]["memory"]["memory_id"],
        reason="x",
        confirmation=first["confirmation"],
    ).error

    assert stolen["code"] == "bad_token"
    assert made_up["code"] == crossed["code"] == "bad_confirmation"


def test_a_person_who_looks_sees_what_would_be_written(office: Office) -> None:
    first = office.reader.call("remember_fact", **{**FACT, "subject": "shown"}).answer

    kept = office.stage.get(f"/v1/approvals/{first['approval_id']}")

    assert kept["arguments"]["content"] == FACT["content"]
    assert FACT["content"] in kept["description"]
    assert kept["effect"] == "write"
