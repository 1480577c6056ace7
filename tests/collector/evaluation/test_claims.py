"""What is a claim and what is none, and that reading one costs no more than its length."""

from __future__ import annotations

import time

import pytest

from bench.evaluation import lexicon
from hansard.adapters.claims.shell import commands_of, shell_text
from hansard_collector.evaluation.claims import claims_of, tools_of

LEXICON = lexicon()
TOOLS = tools_of(("run_tests", "search", "send_email", "fetch_logs"), LEXICON)


def found(text: str) -> list[tuple[str, str]]:
    """Return what a text claims, as topic and polarity."""
    return [(one.topic.name, one.polarity) for one in claims_of(text, LEXICON, TOOLS)]


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("All tests pass.", [("tests", "success")]),
        ("The tests do not pass.", [("tests", "failure")]),
        ("The search tool is healthy.", [("search", "success")]),
        ("`fetch_logs` timed out.", [("fetch_logs", "failure")]),
        ("I sent the email.", [("send email", "acted")]),
        ("I couldn't send the email.", [("send email", "failure")]),
        ("The tests should pass.", []),
        ("I will run the tests until all tests pass.", []),
        ("If all tests pass, merge.", []),
        ("Do all tests pass?", []),
        ("Kim said all tests pass.", []),
        ("> All tests pass.", []),
        ("```\nAll tests pass.\n```", []),
        ('The README says "all tests pass".', []),
        ("Most tests pass.", []),
        ("Tutti i test passano.", []),
        ("", []),
    ],
)
def test_only_statements_of_outcomes_are_claims(text: str, claims: list[tuple[str, str]]) -> None:
    assert found(text) == claims


def test_a_claim_says_where_it_stands() -> None:
    text = "I looked into it. All tests pass. More later."

    (claim,) = claims_of(text, LEXICON, TOOLS)

    assert text[claim.start : claim.end].strip() == claim.sentence == "All tests pass."


@pytest.mark.parametrize(
    "unit", ["all tests pass ", "`", "'a ", "> ", "not ", "[ ] ", "(", "a'b", "\n\n", "tests "]
)
def test_hostile_texts_cost_no_more_than_their_length(unit: str) -> None:
    begun = time.process_time()

    found(unit * 200_000)

    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("pytest -q", (True, True)),
        ("pytest -q | tail", (False, False)),
        ("pytest -q || true", (False, True)),
        ("cd x && pytest -q", (True, True)),
        ("pytest -q && git push", (True, False)),
        ("pytest -q; echo done", (False, False)),
        ("set -o pipefail; pytest -q | tail", (True, False)),
        ("bash -lc 'pytest -q'", (True, True)),
    ],
)
def test_an_exit_code_tells_of_a_command_only_where_it_is_its_own(
    text: str, meaning: tuple[bool, bool]
) -> None:
    one = next(one for one in commands_of(text) if one.text.startswith("pytest"))

    assert (one.zero_means_done, one.nonzero_means_failed) == meaning


def test_the_command_of_a_shell_tool_may_be_a_list() -> None:
    assert shell_text("shell", {"cmd": ["bash", "-lc", "pytest -q"]}) == "bash -lc 'pytest -q'"
    assert shell_text("read_file", {"command": "pytest"}) is None
