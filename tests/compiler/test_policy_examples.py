"""The four rule sets that are shipped, each doing what its sentence says."""

from __future__ import annotations

import pytest

from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.facts import PolicyContext
from hansard_compiler.policy.files import SHIPPED, shipped_rule_set
from hansard_compiler.policy.masks import apply_mask
from hansard_compiler.policy.rules import Effect
from tests.compiler.policy_makers import item, tool


def shipped(name: str) -> Policy:
    return Policy([shipped_rule_set(name)])


@pytest.mark.covers("PO-15")
def test_a_support_agent_may_not_see_secrets() -> None:
    support, other = PolicyContext(agent="support-eu"), PolicyContext(agent="coding")
    checked = shipped("support-agent")

    assert checked.check_item(support, item(sensitivity="secret")).rule_id == "support.no-secrets"
    assert checked.check_item(support, item(sensitivity="secret")).is_denied
    assert checked.check_item(support, item()).effect is Effect.ALLOW
    assert checked.check_item(other, item(sensitivity="secret")).effect is Effect.ALLOW


def test_a_support_agent_sees_restricted_items_without_card_numbers() -> None:
    check = shipped("support-agent").check_item(
        PolicyContext(agent="support"), item(sensitivity="restricted")
    )

    ((rule_id, mask),) = check.masks
    masked = apply_mask({"note": "card 4111 1111 1111 1111 declined"}, mask, rule_id)
    assert masked.content == {"note": "card ‹masked:support.mask-card-numbers› declined"}


@pytest.mark.covers("PO-16")
@pytest.mark.parametrize(
    ("environment", "effect", "denied"),
    [
        ("production", "write", True),
        ("production", None, True),
        (None, "write", True),
        ("production", "read", False),
        ("staging", "write", False),
        (None, "read", False),
    ],
)
def test_a_research_agent_may_not_write_to_production(
    environment: str | None, effect: str | None, denied: bool
) -> None:
    context = PolicyContext(agent="research", environment=environment)

    check = shipped("research-agent").check_tool(
        context, tool(tool_class="database", effect=effect)
    )

    assert check.is_denied is denied


@pytest.mark.covers("PO-16")
def test_a_research_agent_may_use_web_tools() -> None:
    context = PolicyContext(agent="research", environment="production")

    check = shipped("research-agent").check_tool(context, tool(tool_class="web", effect="read"))

    assert (check.effect, check.rule_id) == (Effect.ALLOW, "research.web")


READING = [
    "ls",
    "ls -la src",
    "cat 'a b.txt'",
    "grep -rn 'def main' src | head -n 5",
    "git status --short",
    "git log --oneline -n 3",
    "git diff --stat=80 HEAD",
    'find . -name "x.py"',
]
NOT_KNOWN_TO_READ = [
    "rm -rf /",
    "'rm' -rf x",
    "r\\m -rf x",
    '"rm" -rf x',
    "/bin/rm -rf x",
    "./ls",
    "ls; rm -rf x",
    "ls && rm -rf x",
    "ls\nrm -rf x",
    "ls & rm -rf x",
    "ls | xargs rm",
    "ls || rm x",
    "alias ls='rm -rf'; ls",
    "ls() { rm -rf x; }; ls",
    "$(rm -rf x)",
    "`rm -rf x`",
    'ls "$(rm -rf x)"',
    "ls $IFS",
    "ls <(rm -rf x)",
    "cat x > /etc/passwd",
    "cat x >> y",
    "{ rm -rf x; }",
    "(rm -rf x)",
    "{rm,-rf,x}",
    "bash -c 'rm -rf x'",
    "sh cleanup.sh",
    "env rm -rf x",
    "LD_PRELOAD=./evil.so ls",
    "sudo ls",
    "python -c 'import shutil'",
    "find . -delete",
    "find . -exec rm {} +",
    "find . -fprint x",
    "git diff --output=x",
    "git diff --outp=x",
    "git -c core.pager=rm log",
    "git push --force",
    "git checkout .",
    "sort -o x y",
    "uniq -c input output",
    "time rm -rf x",
    "ls\rrm",
    "git branch new",
    "git log --output=x",
    "ls -la | tee",
    "! ls",
    "exec ls",
    ". ./x",
    "find . -ok rm",
    "sort -ox y",
    "sed -i s/a/b/ x",
    "tee x",
    "ls |& tee x",
    "ls # comment",
    "ls !!",
    "ls *",
    "ls ~root",
    "ls 'unclosed",
    "",
    "   ",
    "''",
    "|",
    "ls |",
    "echo a^b",
]


@pytest.mark.covers("PO-17")
@pytest.mark.parametrize("command", READING)
def test_a_coding_agent_runs_reading_commands_by_itself(command: str) -> None:
    check = shipped("coding-agent").check_tool(
        PolicyContext(agent="coding"), tool(arguments={"command": command})
    )

    assert (check.effect, check.rule_id) == (Effect.ALLOW, "coding.read-only-shell")


@pytest.mark.covers("PO-17")
@pytest.mark.parametrize("command", NOT_KNOWN_TO_READ)
def test_a_coding_agent_asks_before_any_other_command(command: str) -> None:
    check = shipped("coding-agent").check_tool(
        PolicyContext(agent="coding"), tool(arguments={"command": command})
    )

    assert (check.effect, check.rule_id) == (Effect.REQUIRE_APPROVAL, "coding.other-shell")
    assert check.needs_approval


@pytest.mark.covers("PO-17")
def test_a_coding_agent_asks_when_the_command_stands_elsewhere() -> None:
    for arguments in ({}, {"cmd": "ls"}, {"command": None}):
        check = shipped("coding-agent").check_tool(
            PolicyContext(agent="coding"), tool(arguments=arguments)
        )

        assert check.needs_approval


@pytest.mark.covers("PO-17")
def test_a_command_as_a_list_is_judged_by_its_words() -> None:
    checked, context = shipped("coding-agent"), PolicyContext(agent="coding")

    plain = checked.check_tool(context, tool(arguments={"command": ["ls", "a; rm -rf x", "*"]}))
    other = checked.check_tool(context, tool(arguments={"command": ["rm", "-rf", "x"]}))

    assert plain.effect is Effect.ALLOW
    assert other.needs_approval


@pytest.mark.covers("PO-18")
@pytest.mark.parametrize(
    ("kind", "sensitivity", "denied"),
    [
        ("summary", "restricted", False),
        ("retrieval_doc", "restricted", True),
        ("file", "restricted", True),
        ("summary", "secret", True),
        ("file", "internal", False),
    ],
)
def test_a_low_trust_summarizer_sees_summaries_but_no_raw_restricted_documents(
    kind: str, sensitivity: str, denied: bool
) -> None:
    check = shipped("summarizer").check_item(
        PolicyContext(agent="summarizer"), item(kind=kind, sensitivity=sensitivity)
    )

    assert check.is_denied is denied


def test_the_shipped_rule_sets_work_together() -> None:
    together = Policy([shipped_rule_set(name) for name in SHIPPED])

    check = together.check_item(PolicyContext(agent="support"), item(sensitivity="secret"))

    assert check.rule_id == "support.no-secrets"
    assert len(together.rules) == 8
