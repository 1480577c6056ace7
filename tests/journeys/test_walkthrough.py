"""docs/walkthrough.md, followed on a real demo; and the six things that could not be postponed."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from hansard_web.cli import commands
from tests.journeys.demo_story import Story
from tests.signing import credential

PAGE = (Path(__file__).parents[2] / "docs" / "walkthrough.md").read_text(encoding="utf-8")
_SENT_BACK = 2  # of the first run's turns


def data_of(story: Story) -> Path:
    """Return the data folder of the demo, as it printed it."""
    found = re.search(r"export HANSARD_DATA=(\S+)", story.printed)
    assert found is not None
    return Path(found[1])


def post(story: Story, path: str, body: dict[str, Any]) -> Any:
    headers = {"content-type": "application/json", **credential(data_of(story), path, "kim")}
    sent = urllib.request.Request(f"{story.address}{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(sent, timeout=60) as response:
        return json.load(response)


@pytest.mark.covers("DC-08")
def test_what_the_page_has_you_type_answers(story: Story) -> None:
    data = re.search(r"export HANSARD_DATA=(\S+)", story.printed)
    assert data is not None
    plan, patch = (story.call(story.runs[0], turn) for turn in (0, _SENT_BACK))
    named = {"STEP": patch, "LEFT": plan, "RIGHT": patch}
    typed = [line.partition(" #")[0] for line in PAGE.splitlines() if line.startswith("hansard ")]

    group = click.Group("hansard")
    commands(group)

    said = [
        CliRunner().invoke(
            group,
            [named.get(word, word) for word in line.split()[1:]],
            env={"HANSARD_DATA": data[1]},
        )
        for line in typed
    ]

    # The scripted model cannot be asked without its script: 2; and the two steps differ: 1.
    assert [ended.exit_code for ended in said] == [2, 1, 0]
    preview, compared, why = (ended.stdout for ended in said)
    assert "6,000" in preview
    assert "CONVENTIONS.md" in compared
    assert "over_budget" in why


@pytest.mark.covers("DC-08")
def test_the_figures_of_the_page_are_those_of_the_demo(story: Story) -> None:
    bad = story.call(story.runs[0], _SENT_BACK)
    receipts = story.receipts(story.runs[0], _SENT_BACK)
    left_out = [one for one in receipts.values() if one["decision"] == "exclude"]
    budget = story.get(f"/v1/steps/{bad}")["context"]["budget"]["tokens"]

    said = " ".join(PAGE.split())
    assert f"Of {len(receipts)} candidates {len(left_out)} were left out" in said
    assert f"budget to {budget:,}" in said
    later = story.receipts(story.runs[0], _SENT_BACK + 1)
    assert (receipts["README.md"]["decision"], later["README.md"]["decision"]) == (
        "exclude", "redact",
    )  # fmt: skip
    asked = story.get(f"/v1/runs/{story.runs[0]}")["first_input"]
    assert asked.rstrip() in said


@pytest.mark.covers("AC-16")
def test_nothing_of_the_six_was_put_off(story: Story) -> None:
    first = story.runs[0]
    plan, patch = (story.call(first, turn) for turn in (0, _SENT_BACK))

    receipts = story.receipts(first, _SENT_BACK).values()
    replays = story.get(f"/v1/replay?step={patch}")["items"]
    checks = story.get(f"/v1/policy/checks?run={first}&limit=500")["items"]
    blocked = story.get(f"/v1/events?type=policy.blocked&run={first}")["items"]
    difference = story.get(f"/v1/diff/steps/{plan}/{patch}")

    assert all(one["source"] for one in receipts), "provenance on every item"
    assert all(one["decision"] and one["reason"] for one in receipts), "explicit decisions"
    assert {one["mode"] for one in replays} == {"exact", "mutated"}, "replay"
    assert {one["effect"] for one in checks} >= {"allow", "redact"}, "policy checks"
    assert blocked, "what was denied"
    assert difference["is_empty"] is False, "step diffs"
    assert _what_is_read_before_and_after_it_is_invalidated(story) == (1, 0), "durable memory"


def _what_is_read_before_and_after_it_is_invalidated(story: Story) -> tuple[int, int]:
    whose = {"project": "walkthrough"}
    record = {"writer": "app", "memory_type": "fact", "subject": "s", "content": "It holds."}
    written = post(story, "/v1/memory/write", {**record, "namespace": whose})
    before = post(story, "/v1/memory/read", {"namespace": whose})["items"]
    ended = {"memory_id": written["memory"]["memory_id"], "reason": "it does not", "by": "rosa"}
    post(story, "/v1/memory/invalidate", ended)
    after = post(story, "/v1/memory/read", {"namespace": whose})["items"]
    return len(before), len(after)
