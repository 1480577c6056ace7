"""What a sceptic asks, each with the page that answers it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hansard_web.app.server_file import Endpoints
from hansard_web.demo.claims.chapter import Chapter
from hansard_web.demo.coding.coder import CONVENTIONS
from hansard_web.demo.coding.golden import Golden
from hansard_web.demo.coding.tools import PROJECT


def summary(endpoints: Endpoints, found: Golden, *, is_scripted: bool = True) -> str:
    """Return the end of the demo's story, a question and a link each.

    What a real model did is on the pages alone.
    """
    lines = []
    for question, answer, path in _questions(found, is_scripted=is_scripted):
        is_told = answer and is_scripted
        lines += [f"  {question}" + (f" {answer[0].upper()}{answer[1:]}." if is_told else "")]
        lines += [f"    {endpoints.http}{path}"]
    return "\n".join(lines)


def summary_of_claims(endpoints: Endpoints, found: Chapter) -> str:
    """Return the questions that the third chapter answers, with a link each."""
    questions = (
        ("Is what the agent said true? No: the last run of its tests failed.",
         f"/runs/{found.first.run_id}"),
        ("What does the next run know? The claim and its correction, each with a receipt.",
         f"/steps/{found.second.step_id}/context"),
        ("What did the heartbeat find?", "/reports"),
    )  # fmt: skip
    return "\n".join(f"  {question}\n    {endpoints.http}{path}" for question, path in questions)


def _questions(found: Golden, *, is_scripted: bool) -> Iterator[tuple[str, str, str]]:
    at_that = "when its patch was wrong" if is_scripted else "at its third call"
    approval = "" if found.approval_id is None else f"/{found.approval_id}"
    yield from (
        (f"What did the model know {at_that}, and what not?",
         f"{CONVENTIONS} was left out: the budget was too small",
         f"/steps/{found.bad}/context?decision=exclude"),
        ("What changed between the plan and that patch?", "", f"/diff/{found.plan}/{found.bad}"),
        ("Who approved what, and what was sent back?", "two drafts, one note, one approval",
         f"/approvals{approval}"),
        ("Would the model say it again?", "the same bytes were sent, the answer was the same",
         f"/replays/{found.exact['replay_id']}"),
        ("And with room for the convention?", _differs(found.mutated),
         f"/replays/{found.mutated['replay_id']}"),
        ("What does the next task know?", "a convention, with the approval it came of",
         _memory(found)),
        ("Did it help?", "the second run's first patch was right",
         f"/diff/{found.first.run_id}/{found.second.run_id}"),
        ("What was said, word for word?", "", f"/transcripts/{found.first.transcript}"),
        ("Was this record altered?", "", "/events"),
    )  # fmt: skip


def _memory(found: Golden) -> str:
    """Return the address of what the second run knew; of all there is where it knew nothing."""
    record = f"/{found.second.memory[0]}" if found.second.memory else ""
    return f"/memory{record}?project={PROJECT}"


def _differs(replay: dict[str, Any]) -> str:
    is_other = not replay["comparison"]["output"]["is_empty"]
    return "the patch is the right one" if is_other else "the answer stayed the same"
