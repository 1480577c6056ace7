"""Rules on commands: how a text is read, and how well the scores part what can be undone."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.quality.escalation import (
    HALVES,
    IRREVERSIBLE,
    LABELS,
    area,
    at_threshold,
    histogram,
    scored,
)
from hansard._config.settings import load_settings
from hansard._hooks.settings import DEFAULT_THRESHOLD, load_hook_settings
from hansard.adapters.commands import CommandRules, classify_command, load_rules, score_command
from hansard.adapters.commands.shell import read_commands
from hansard_collector.judges import JudgeSettings
from hansard_collector.judges.choices import parse_classifier
from hansard_compiler.classifier import IRREVERSIBLE as LABEL_IRREVERSIBLE
from hansard_compiler.classifier import REVERSIBLE, ClassifierQuestion

ROWS = list(scored())


def words(text: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in read_commands(text)]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("rm -rf '/a b'", [["rm", "-rf", "/a b"]]),
        ('a "b $HOME c"', [["a", "b $HOME c"]]),
        ("X=1 Y=2; cmd $X ${Y}z", [["cmd", "1", "2z"]]),
        ("a && b || c; d & e | f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a # b\nc", [["a"], ["c"]]),
        ("if a; then b; fi", [["a"], ["b"]]),
        ("for x in 1 2; do c $x; done", [["c", "1 2"]]),
        ("f() { g; }; f", [["g"], ["f"]]),
        ("echo $(inner x) y", [["echo", "$()", "y"], ["inner", "x"]]),
        ("a `b`", [["a", "$()"], ["b"]]),
        ("r\\m 'x'\"y\"", [["rm", "xy"]]),
        ("a {b,c}d", [["a", "bd", "cd"]]),
        ("alias q='rm -rf'; q /", [["alias", "q=rm -rf"], ["rm", "-rf", "/"]]),
        ("cat <<E\nrm x\nE\nls", [["cat"], ["ls"]]),
        ("a 2>&1 >b <c", [["a"]]),
        ("$'\\x72m' x", [["rm", "x"]]),
        ("'unclosed", [["unclosed"]]),
    ],
)
def test_a_shell_text_is_read_into_its_commands(text: str, read: list[list[str]]) -> None:
    assert words(text) == read


@given(st.text(max_size=300))
def test_any_text_is_read_and_scored(text: str) -> None:
    read_commands(text)

    assert 0 <= score_command(text).value <= 1


@given(
    st.lists(
        st.sampled_from(
            ["rm", "-rf", "/", "'", '"', "$(", ")", "`", "|", "<<E", "\n", "E", "{", "}", "\\",
             "$x", "bash", "-c", "&&", ";", "xargs", "eval", "sudo", ">", "find", "-exec", "(",
             "#"]
        ),
        max_size=60,
    )
)  # fmt: skip
def test_any_mix_of_what_a_shell_means_is_scored(parts: list[str]) -> None:
    assert 0 <= score_command(" ".join(parts)).value <= 1


@pytest.mark.parametrize(
    "text",
    ["$(" * 30_000, "'" * 60_000, "a|" * 30_000, "bash -c '" * 5_000, "{a,b}" * 10_000,
     "x=$x$x;" * 5_000, "\\" * 60_000, "<<E\n" * 10_000, "eval " * 10_000,
     "rm -rf " + "/a " * 20_000,
     "x=aaaaaaaaaa;" + "x=$x$x$x$x;" * 40 + "rm $x"],
    ids=range(11),
)  # fmt: skip
def test_a_hostile_text_takes_no_longer_than_another(text: str) -> None:
    began = time.process_time()
    score_command(text)

    assert time.process_time() - began < 2


@pytest.mark.covers("DI-21")
@pytest.mark.parametrize("half", HALVES)
def test_what_cannot_be_undone_scores_above_the_threshold_and_the_rest_below(half: str) -> None:
    rows = [row for row in ROWS if row.half == half]

    found = at_threshold(rows, DEFAULT_THRESHOLD)

    assert len(rows) >= 100
    assert found.precision >= 0.9
    assert found.recall >= 0.9
    assert area(rows) >= 0.95


@pytest.mark.covers("DI-21")
def test_scores_are_spread_and_ordered_by_how_hard_it_is_to_undo() -> None:
    counts = histogram(ROWS)
    means = [
        sum(row.score for row in mine) / len(mine)
        for mine in ([row for row in ROWS if row.label == label] for label in LABELS)
    ]

    assert len(ROWS) >= 400
    assert sum(count > 0 for count in counts) == len(counts)
    assert max(counts) < len(ROWS) / 2  # irreversible ones: two fifths of the set
    assert means == sorted(means)
    assert sum(row.score == 1 for row in ROWS) < len(ROWS) / 10


def test_the_target_matters() -> None:
    scores = [
        score_command(f"rm -rf {target}").value
        for target in ("/tmp/x", "node_modules", "src", '"$DIR"/*', "~", "/")
    ]

    assert scores == sorted(scores)
    assert scores[1] < 0.5 < scores[2] < DEFAULT_THRESHOLD < scores[3]


def test_every_rule_names_its_reason() -> None:
    for row in ROWS:
        assert row.reason, row.command
        assert row.label != IRREVERSIBLE or row.score < 0.8 or len(row.reason) > 5


@pytest.mark.covers("MM-14")
def test_the_rules_are_a_classifier_of_the_task_irreversible() -> None:
    rules = CommandRules()
    labels = (LABEL_IRREVERSIBLE, REVERSIBLE)

    assert rules.name == load_rules().version == "commands/1"
    assert rules(ClassifierQuestion("irreversible", "rm -rf /", labels)).label == LABEL_IRREVERSIBLE
    assert rules(ClassifierQuestion("irreversible", "git status", labels)).label == REVERSIBLE
    assert classify_command("./unknown-program").label is None
    assert rules(ClassifierQuestion("topic", "rm -rf /", labels)).label is None


def test_the_light_settings_are_those_of_the_table() -> None:
    given = {
        "HANSARD_HOOK_THRESHOLD": "0.7",
        "HANSARD_HOOK_CLASSIFIER": "off",
        "HANSARD_HOOK_TIMEOUT_MS": "50",
        "HANSARD_HOOK_RECORD": "no",
        "HANSARD_DATA": "/nonexistent",
    }
    for environment in ({}, given):
        light, whole = load_hook_settings({}, environment), load_settings({}, environment)
        assert light.data == str(whole.data)
        assert light.threshold == whole.hook_threshold
        assert light.classifier == (whole.hook_classifier or "rules")
        assert light.classifier_timeout_ms == whole.hook_classifier_timeout_ms
        assert (light.timeout_ms, light.record) == (whole.hook_timeout_ms, whole.hook_record)


@pytest.mark.covers("MM-14")
@pytest.mark.parametrize(
    "given",
    [
        "",
        "off",
        "openai:gpt-5",
        "openai:gpt-5 irreversible=offline",
        "irreversible=openai:gpt-5 off",
        "topic=openai:gpt-5 contradiction=off",
        "irreversible=off topic=openai:gpt-5 anthropic:claude",
    ],
)
def test_the_classifier_of_commands_is_that_of_the_judges(given: str) -> None:
    light = load_hook_settings({}, {"HANSARD_CLASSIFIER": given, "HANSARD_DATA": "/nonexistent"})
    choices = tuple(map(parse_classifier, given.split()))
    wanted = str(JudgeSettings(classifier=choices).choice_for("irreversible"))

    assert light.classifier == {"offline": "rules"}.get(wanted, wanted)
    assert light.model == (wanted if ":" in wanted else "")


@pytest.mark.slow
def test_loading_the_rules_is_quick_and_light() -> None:
    code = (
        "import sys; from hansard.adapters.commands import score_command;"
        "score_command('rm -rf /'); import json;"
        "print(json.dumps([m for m in ('typing', 'dataclasses', 'hansard_compiler')"
        " if m in sys.modules]))"
    )
    ended = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True,
                           env={"PYTHONPATH": ":".join(sys.path)}, check=True)  # fmt: skip

    assert json.loads(ended.stdout) == []


@pytest.mark.parametrize(
    ("command", "is_warned"),
    [
        ('rm -rf "$(mktemp -d)"', False),
        ('T=$(mktemp -d); cp a "$T"; rm -rf "$T"', False),
        ('rm -rf "$(mktemp -d -p /srv/data)/.."', True),
        ("rm -rf $HOME/projects/*", True),
        ("rm -rf ~/projects", True),
        ("rm -rf ~/.cache/*", False),
    ],
)
def test_a_temporary_folder_is_one_and_all_of_a_folder_is_the_folder(
    command: str, is_warned: bool
) -> None:
    assert (score_command(command).value >= 0.75) == is_warned
