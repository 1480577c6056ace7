"""Policy over HTTP: what is decided is recorded first, and rules change by version."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hansard_store.database.connections import open_for_ingest
from hansard_store.database.readers import open_reader
from hansard_web.app.config import WebSettings, parse_token
from tests.web.sidecar.conftest import Agent, House

Json = dict[str, Any]


def rule_set(*rules: Json, name: str = "mine", version: str = "1", **more: Any) -> Json:
    return {"schema_version": 1, "name": name, "version": version, "rules": list(rules), **more}


def rule(rule_id: str, effect: str, **more: Any) -> Json:
    return {"id": rule_id, "name": rule_id, "effect": effect, **more}


NO_SECRETS = rule("no-secrets", "deny", applies_to={"action": "see", "sensitivity": "secret"})
NO_WRITES = rule("no-writes", "deny", conditions={"tool.effect": "write"}, priority=5)


def put(agent: Agent, *sets: Json | str, version: int = 0) -> Json:
    answer = agent.put("/v1/policy/rules", {"rule_sets": list(sets), "version": version})
    assert answer.is_success, answer.text
    told: Json = answer.json()
    return told


def ask(agent: Agent, **body: Any) -> Json:
    return agent.tell("/v1/policy/check", body)


# ---- checks


@pytest.mark.covers("SC-08", "PO-02", "PO-03", "RC-10")
def test_a_check_answers_with_the_rule_and_is_recorded_allows_included(agent: Agent) -> None:
    put(agent, rule_set(NO_WRITES, rule("reads", "allow", applies_to={"tool_class": "file"})))

    allowed = ask(agent, tool={"name": "cat", "class": "file", "effect": "read"})
    denied = ask(
        agent,
        context={"agent": "clerk"},
        tool={"name": "rm", "class": "file", "effect": "write", "arguments": {"path": "/x"}},
    )

    assert (allowed["effect"], allowed["rule_id"], allowed["allowed"]) == ("allow", "reads", True)
    assert (denied["effect"], denied["rule_id"], denied["allowed"]) == ("deny", "no-writes", False)
    assert [one["outcome"] for one in denied["rules"]] == ["won", "lost"]
    checks = agent.get("/v1/policy/checks")["items"]
    assert [one["check_id"] for one in checks] == [denied["check_id"], allowed["check_id"]]
    assert checks[0]["subject"] == "rm"
    assert checks[0]["policy_hash"] == denied["policy_hash"]
    assert "/x" not in json.dumps(checks)


def test_an_obligation_is_no_permission(agent: Agent) -> None:
    put(agent, rule_set(rule("receipt", "require_receipt"), rule("yes", "allow")))

    told = ask(agent, tool={"name": "pay"})

    assert (told["effect"], told["obligations"]) == ("require_receipt", ["require_receipt"])
    assert told["allowed"] is False


def test_a_check_belongs_to_the_run_it_names_and_takes_its_agent(agent: Agent) -> None:
    put(agent, rule_set(rule("not-clerks", "deny", applies_to={"agent": "clerk"})))
    run_id = agent.start()

    told = ask(agent, run_id=run_id, tool={"name": "pay"})

    (check,) = agent.get(f"/v1/policy/checks?run={run_id[:12]}")["items"]
    assert told["effect"] == "deny"
    assert (check["run_id"], check["agent"]) == (run_id, "clerk")


@pytest.mark.covers("PO-24")
def test_a_condition_that_cannot_be_judged_denies_and_says_so(agent: Agent) -> None:
    put(agent, rule_set(rule("small", "allow", conditions={"arguments.amount": {"at_most": 5}})))

    told = ask(agent, tool={"name": "pay", "arguments": {"amount": "lots"}})

    assert (told["effect"], told["reason_code"]) == ("deny", "condition_error")


@pytest.mark.covers("PO-25")
def test_a_dry_run_tells_every_rule_and_records_nothing(agent: Agent) -> None:
    put(agent, rule_set(NO_SECRETS, NO_WRITES))
    asked = {"tool": {"name": "rm", "effect": "write"}}

    explained = agent.tell("/v1/policy/explain", asked)
    same = agent.tell("/v1/policy/check", {**asked, "explain": True})

    assert explained == same
    assert explained["decision"]["effect"] == "deny"
    assert {one["rule_id"]: one["outcome"] for one in explained["rules"]} == {
        "no-writes": "fits",
        "no-secrets": "is about 'see' and not about 'do'",
    }
    assert agent.get("/v1/policy/checks")["items"] == []


def test_checks_are_found_by_effect_rule_and_agent_page_by_page(agent: Agent) -> None:
    put(agent, rule_set(NO_WRITES))
    for number in range(7):
        effect = "write" if number % 2 else "read"
        ask(agent, context={"agent": f"a{number % 3}"}, tool={"name": "t", "effect": effect})

    denied = agent.get("/v1/policy/checks?effect=deny")["items"]
    by_rule = agent.get("/v1/policy/checks?rule=no-writes&agent=a0")["items"]
    pages, cursor = [], ""
    while True:
        page = agent.get(f"/v1/policy/checks?limit=3{cursor}")
        pages.append([one["check_id"] for one in page["items"]])
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"

    assert len(denied) == 3
    assert len(by_rule) == 1
    assert [number for page in pages for number in page] == [7, 6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"tool": {"name": "a"}, "item": {"id": "b"}},
        {"tool": {"name": ""}},
        {"tool": {"name": "a", "effect": "destroy"}},
        {"item": {"id": "a", "sensitivity": "cosmic"}},
        {"tool": {"name": "a"}, "context": {"agnt": "x"}},
        {"item": {"id": "a", "trust_score": 2}},
    ],
)
def test_what_cannot_be_asked_is_refused_and_not_recorded(agent: Agent, body: Json) -> None:
    answer = agent.post("/v1/policy/check", body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")
    assert agent.get("/v1/policy/checks")["items"] == []


def test_a_check_of_an_unknown_run_or_foreign_step_is_refused(agent: Agent) -> None:
    mine, other = agent.start(), agent.start()
    step = agent.tell(f"/v1/runs/{other}/steps", {"name": "a"})["step_id"]

    unknown = agent.post("/v1/policy/check", {"tool": {"name": "a"}, "run_id": "f" * 32})
    foreign = agent.post(
        "/v1/policy/check", {"tool": {"name": "a"}, "run_id": mine, "step_id": step}
    )

    assert (unknown.status_code, foreign.status_code) == (404, 404)


def test_what_cannot_be_recorded_is_not_answered(house: House) -> None:
    agent = house.serve()
    blocker = open_for_ingest(house.folder)
    blocker.execute("BEGIN IMMEDIATE")

    answer = agent.post("/v1/policy/check", {"tool": {"name": "pay"}})

    blocker.execute("ROLLBACK")
    blocker.close()
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy")
    assert "effect" not in answer.json()


def test_a_check_survives_the_server_and_holds_no_argument(house: House) -> None:
    agent = house.serve(WebSettings(retention="metadata_only"))
    ask(
        agent,
        context={"user": "canary-user"},
        item={"id": "canary-item", "source_uri": "file:///canary", "kind": "file"},
    )
    ask(agent, tool={"name": "pay", "arguments": {"to": "canary"}})
    house.stop()

    with_checks = open_reader(house.folder)
    found = with_checks.execute("SELECT subject, inputs FROM policy_check ORDER BY id").fetchall()
    with_checks.close()
    assert len(found) == 2
    assert "canary" not in json.dumps(found)
    assert "hmac-sha256:" in found[1][1]


# ---- rules


def test_rules_change_by_version_and_whoever_comes_second_is_told(agent: Agent) -> None:
    first = agent.put("/v1/policy/rules", {"rule_sets": [rule_set(NO_SECRETS)], "version": 0})

    second = agent.put(
        "/v1/policy/rules", {"rule_sets": [rule_set(NO_WRITES)]}, if_match=first.headers["etag"]
    )
    late = agent.put("/v1/policy/rules", {"rule_sets": []}, if_match=first.headers["etag"])
    blind = agent.put("/v1/policy/rules", {"rule_sets": []})
    odd = agent.put("/v1/policy/rules", {"rule_sets": []}, if_match="soon")

    assert second.json()["version"] > first.json()["version"]
    assert (late.status_code, late.json()["error"]["code"]) == (412, "version_conflict")
    assert late.json()["error"]["details"]["found"] == second.json()["version"]
    assert (blind.status_code, odd.status_code) == (428, 400)
    assert [one["rule_id"] for one in agent.get("/v1/policy/rules")["rules"]] == ["no-writes"]


def test_old_versions_and_the_history_of_a_rule_can_be_read(agent: Agent) -> None:
    first = put(agent, rule_set(NO_WRITES))["version"]
    softer = {**NO_WRITES, "effect": "require_approval"}
    second = put(agent, rule_set(softer, version="2"), version=first)["version"]

    old = agent.get(f"/v1/policy/versions/{first}")
    history = agent.get("/v1/policy/versions?rule=no-writes")["items"]
    versions = agent.get("/v1/policy/versions")["items"]

    assert old["rule_sets"][0]["rules"] == [NO_WRITES]
    assert [(one["policy"], one["effect"], one["version"]) for one in history] == [
        (second, "require_approval", "2"),
        (first, "deny", "1"),
    ]
    assert [one["policy"] for one in versions] == [second, first]
    assert agent.client.get("/v1/policy/versions/999").status_code == 404


@pytest.mark.parametrize(
    ("sets", "place"),
    [
        ([rule_set(rule("a", "forbid"))], "rule_sets[0].rules[0].effect"),
        ([rule_set(rule("a", "deny", conditions={"tool.nam": "x"}))], "rule_sets[0].rules[0]"),
        ([rule_set(), rule_set(rule("a", "deny"), rule("a", "deny"), name="b")], "rule_sets[1]"),
        ([rule_set(), rule_set()], "rule sets"),
        ([{"name": "x"}], "rule_sets[0]"),
        (["shipped:nothing"], "nothing"),
        (["../../etc/passwd"], "rule_sets[0]"),
    ],
)
def test_a_bad_rule_is_refused_with_its_place_and_nothing_changes(
    agent: Agent, sets: list[Any], place: str
) -> None:
    before = put(agent, rule_set(NO_WRITES))["version"]

    answer = agent.put("/v1/policy/rules", {"rule_sets": sets, "version": before})

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (422, "invalid_policy")
    assert error["details"]["at"].startswith(place)
    assert agent.get("/v1/policy/rules")["version"] == before


@pytest.mark.parametrize("number", [2**64, -(10**30)])
@pytest.mark.parametrize("at", ["name", "effect", "priority", "conditions", "applies_to"])
def test_a_rule_with_an_integer_past_64_bits_is_refused_with_what_is_wrong(
    agent: Agent, at: str, number: int
) -> None:
    for value in (number, {"tool.effect": number}, [number], {"tool.arguments.n": {"gt": number}}):
        sets = [rule_set({**NO_WRITES, at: value}), rule_set(NO_WRITES, version=number)]
        for bad in sets:
            answer = agent.put("/v1/policy/rules", {"rule_sets": [bad], "version": 0})

            assert answer.status_code in {200, 400, 422}, answer.text
            assert answer.is_success or answer.json()["error"]["message"]


@pytest.mark.covers("PO-15", "PO-16", "PO-17")
def test_the_shipped_rule_sets_can_be_put_by_name_and_hold(agent: Agent) -> None:
    put(
        agent,
        "shipped:support-agent",
        "shipped:research-agent",
        "shipped:coding-agent",
        "shipped:summarizer",
    )

    def effect(agent_name: str, **asked: Any) -> str:
        return str(ask(agent, context={"agent": agent_name}, **asked)["effect"])

    shell = {"name": "shell", "tool_class": "shell"}
    assert effect("support", item={"id": "k", "sensitivity": "secret"}) == "deny"
    assert effect("coding", tool={**shell, "arguments": {"command": "ls"}}) == "allow"
    assert (
        effect("coding", tool={**shell, "arguments": {"command": "rm -rf /"}}) == "require_approval"
    )
    assert len(agent.get("/v1/policy/rules")["rule_sets"]) == 4


def test_only_an_administrator_changes_rules(house: House) -> None:
    tokens = ("ingest:sending-1", "read+decide:reading-1", "admin:ruling-99")
    agent = house.serve(WebSettings(tokens=tuple(map(parse_token, tokens))))
    body = {"rule_sets": [rule_set(NO_WRITES)], "version": 0}

    def status(method: str, path: str, token: str, body: Json) -> int:
        headers = {"authorization": f"Bearer {token}"}
        return agent.client.request(method, path, json=body, headers=headers).status_code

    asked = {"tool": {"name": "a"}}
    assert status("PUT", "/v1/policy/rules", "sending-1", body) == 403
    assert status("PUT", "/v1/policy/rules", "reading-1", body) == 403
    assert status("PUT", "/v1/policy/rules", "ruling-99", body) == 200
    assert status("POST", "/v1/policy/check", "sending-1", asked) == 200
    assert status("POST", "/v1/policy/check", "reading-1", asked) == 403
    assert status("POST", "/v1/policy/explain", "reading-1", asked) == 200


# ---- files


def write(path: Path, value: Any) -> None:
    """Write a file of rules; its time is moved, for file systems that count whole seconds."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(json.dumps(value), encoding="utf-8")
    os.utime(path, ns=(0, max(before, path.stat().st_mtime_ns) + 2_000_000_000))


def test_a_changed_file_is_in_force_at_the_next_check_and_a_broken_one_is_not(
    house: House, tmp_path: Path
) -> None:
    file = tmp_path / "rules.json"
    write(file, rule_set(NO_WRITES))
    agent = house.serve(WebSettings(policy=(file,)))
    asked = {"tool": {"name": "rm", "effect": "write"}}
    first = agent.tell("/v1/policy/check", asked)["effect"]

    write(file, rule_set({**NO_WRITES, "effect": "require_approval"}, version="2"))
    changed = agent.tell("/v1/policy/check", asked)["effect"]
    write(file, rule_set(rule("broken", "forbid")))
    broken = agent.tell("/v1/policy/check", asked)["effect"]
    told = agent.get("/v1/policy/rules")["problem"]
    file.unlink()
    gone = agent.tell("/v1/policy/check", asked)["effect"]
    write(file, rule_set())
    mended = agent.tell("/v1/policy/check", asked)["effect"]

    assert (first, changed, broken) == ("deny", "require_approval", "require_approval")
    assert (gone, mended) == ("require_approval", "allow")
    assert "rules[0].effect" in told
    assert agent.get("/v1/policy/rules")["problem"] is None
    history = agent.get("/v1/policy/versions?rule=no-writes")["items"]
    assert [one["source"] for one in history] == ["file", "file"]


def test_rules_of_files_and_of_the_api_hold_together(house: House, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    write(file, rule_set(NO_WRITES, name="house"))
    agent = house.serve(WebSettings(policy=(file, Path("shipped:support-agent"))))

    put(agent, rule_set(rule("writes", "allow", priority=900), name="mine"))
    clash = agent.put("/v1/policy/rules", {"rule_sets": [rule_set(name="house")]}, if_match="*")

    assert ask(agent, tool={"name": "rm", "effect": "write"})["effect"] == "deny"
    assert (clash.status_code, clash.json()["error"]["code"]) == (422, "invalid_policy")
    sources = [one["source"] for one in agent.get("/v1/policy/rules")["rule_sets"]]
    assert sources == ["api", "file", "file"]


def test_rules_hold_in_the_next_server_and_in_the_one_beside(house: House) -> None:
    agent, beside = house.serve(), house.serve()
    put(agent, rule_set(NO_WRITES))
    asked = {"tool": {"name": "rm", "effect": "write"}}

    here = beside.tell("/v1/policy/check", asked)["effect"]
    house.stop()
    after = house.serve().tell("/v1/policy/check", asked)["effect"]

    assert (here, after) == ("deny", "deny")
