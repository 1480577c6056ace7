"""One compile per kind of agent: what each needs of a context, in words of the core alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.policy.decider import RuleDecider
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.rules import parse_rules
from tests.compiler.compiling import ports, reasons, request

FIXTURES = Path(__file__).parents[1] / "fixtures" / "domains"
DOMAINS = (
    "coding", "internal-knowledge", "multi-agent", "operations", "research", "support",
)  # fmt: skip


def read(domain: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((FIXTURES / f"{domain}.json").read_text(encoding="utf-8"))
    return told


def compiled(told: dict[str, Any]) -> CompileResult:
    rules = told.get("rules", [])
    asked = request(
        told["items"],
        budget=told["budget"],
        task_summary=told["task"],
        policy_rules=rules,
        compile_config={"scope": told.get("scope", {})},
    )
    return compile_context(asked, ports(policy=RuleDecider(Policy([], rules=parse_rules(rules)))))


@pytest.mark.covers("EX-14")
@pytest.mark.parametrize("domain", DOMAINS)
def test_a_domain_gets_what_it_needs_and_nothing_else(domain: str) -> None:
    told = read(domain)

    found = reasons(compiled(told))

    assert {name: found[name] for name in told["expect"]} == told["expect"]
    assert found["request"] in ("latest_user_request", "within_budget")


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_same_request_of_a_domain_has_the_same_hash(domain: str) -> None:
    assert compiled(read(domain)).compile_hash == compiled(read(domain)).compile_hash


def test_there_is_a_fixture_for_every_domain_and_no_other() -> None:
    assert sorted(path.stem for path in FIXTURES.iterdir()) == sorted(DOMAINS)
