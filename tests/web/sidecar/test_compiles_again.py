"""Compiles under the rules of the server, made again from the store alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard_web.app.config import WebSettings
from tests.journeys.processes import hansard
from tests.web.sidecar.conftest import House
from tests.web.sidecar.test_policy_api import put, rule, rule_set
from tests.web.sidecar.test_sidecar_models import QUESTION, item, to_compile

pytestmark = pytest.mark.slow

Json = dict[str, Any]

PLAN = item("plan.md", "Merge with the other company.")
LETTER = item("letter.md", "Ana lives in Oslo, and writes every day.")
NO_PLANS = rule("no-plans", "deny", conditions={"item.id": {"starts_with": "plan"}})
SELECTIVE = rule_set(
    NO_PLANS,
    rule("letters", "allow", conditions={"item.id": "letter.md"}, priority=3),
    defaults={"see": "allow"},
)
OWN_RULES = [
    {"id": "own", "name": "own", "effect": "deny", "conditions": {"item.id": {"equals": "a.md"}}}
]


def verdict(house: House, compilation_id: str) -> tuple[int, Json]:
    """Return how `verify compile` ends, and what it prints."""
    ended = hansard("verify", "compile", compilation_id, "--json", "--data", str(house.folder.path))
    told: Json = json.loads(ended.stdout)
    return ended.returncode, told


@pytest.mark.covers("RC-15")
@pytest.mark.parametrize(
    ("sets", "own"),
    [
        (["shipped:support-agent"], []),
        ([SELECTIVE], []),
        ([SELECTIVE, "shipped:support-agent"], OWN_RULES),
        ([], OWN_RULES),
    ],
)
def test_a_compile_under_the_rules_of_the_server_is_made_again_as_it_was(
    house: House, sets: list[Any], own: list[Json]
) -> None:
    agent = house.serve()
    if sets:
        put(agent, *sets)
    body = to_compile(
        agent.start(), PLAN, LETTER, item("a.md", "A page."), QUESTION, policy_rules=own
    )

    compiled = agent.tell("/v1/compile", body)
    if sets:  # what is in force later is not what was in force then
        put(agent, rule_set(rule("all", "deny"), version="2"), version=1)

    decisions = {one["item_id"]: one["decision"] for one in compiled["compiled"]["decisions"]}
    code, told = verdict(house, compiled["compilation_id"])
    assert (code, told["verdict"], told["reasons"]) == (0, "equal", [])
    assert decisions["a.md"] == ("exclude" if own else "include")
    if SELECTIVE in sets:
        assert decisions["plan.md"] == "exclude"


def test_rules_of_a_file_are_stored_with_the_compile(house: House, tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(SELECTIVE))
    agent = house.serve(WebSettings(policy=(rules,)))

    compiled = agent.tell("/v1/compile", to_compile(agent.start(), PLAN, QUESTION))
    rules.unlink()

    code, told = verdict(house, compiled["compilation_id"])
    assert (code, told["reasons"]) == (0, [])


def test_other_rules_than_those_of_the_compile_make_it_differ(house: House) -> None:
    agent = house.serve()
    put(agent, SELECTIVE)
    run_id = agent.start()
    strict = agent.tell("/v1/compile", to_compile(run_id, PLAN, QUESTION))
    put(agent, rule_set(NO_PLANS | {"effect": "allow"}, version="2"), version=1)

    lax = agent.tell("/v1/compile", to_compile(run_id, PLAN, QUESTION))

    policy = [
        agent.step(one["step_id"])["attributes"]["hansard.compilation.policy_ref"]
        for one in (strict, lax)
    ]
    assert policy[0] != policy[1]
    assert strict["compiled"]["compile_hash"] != lax["compiled"]["compile_hash"]
    assert [verdict(house, one["compilation_id"])[0] for one in (strict, lax)] == [0, 0]


@pytest.mark.parametrize("retention", ["redacted_payloads", "metadata_only"])
def test_an_answer_holds_no_secret_that_an_item_is_called_by(house: House, retention: str) -> None:
    key = "sk-proj-" + "Zx81kQ0pLm3RtY7uVb2N" * 2
    agent = house.serve(WebSettings(retention=retention))
    body = to_compile(agent.start(), item(f"file-{key}", "A page."), QUESTION)

    first = agent.post("/v1/compile", body, idempotency_key="k")
    again = agent.post("/v1/compile", body, idempotency_key="k")

    assert first.status_code == 200
    assert key not in first.text
    assert "‹redacted:" in first.text
    if retention == "redacted_payloads":
        assert again.json() == first.json()
    files = [path for path in house.folder.path.rglob("*") if path.is_file()]
    assert not [path for path in files if key.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("dependency_cycle", {"dependencies": ["file-KEY"]}),
        ("required_over_budget", {"kind": "constraint", "content": "word " * 9_000}),
        ("required_withheld", {"kind": "constraint", "sensitivity": "secret"}),
        ("missing_provenance", {"source_ref": None}),
    ],
)
def test_a_refusal_holds_no_secret_that_an_item_is_called_by(
    house: House, code: str, more: Json
) -> None:
    key = "sk-proj-" + "Zx81kQ0pLm3RtY7uVb2N" * 2
    agent = house.serve(WebSettings())
    page = item("file-KEY", "A page.") | more
    named = json.loads(json.dumps(page).replace("file-KEY", f"file-{key}"))

    answer = agent.post("/v1/compile", to_compile(agent.start(), named, QUESTION))

    assert answer.json()["error"]["code"] == code
    assert key not in answer.text
    assert "‹redacted:" in answer.text
