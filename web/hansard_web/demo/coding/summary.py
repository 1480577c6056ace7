"""What a sceptic asks, each with the page that answers it."""

from __future__ import annotations

from typing import Any

from hansard_web.demo.coding.candidates import CONVENTIONS
from hansard_web.demo.coding.golden import Golden
from hansard_web.demo.coding.tools import PROJECT
from hansard_web.presence import Doors


def summary(doors: Doors, found: Golden) -> str:
    """Return the end of the demo's story, a question and a link each."""
    said = _differs(found.mutated)
    questions = (
        ("What did the model know when its patch was wrong, and what not?",
         f"{CONVENTIONS} was left out: the budget was too small",
         f"/steps/{found.bad}?tab=context"),
        ("What changed between the plan and that patch?", "", f"/diff/{found.plan}/{found.bad}"),
        ("Who approved what, and what was sent back?", "two drafts, one note, one approval",
         f"/approvals/{found.approval_id}"),
        ("Would the model say it again?", "the same bytes were sent, the answer was the same",
         f"/replay/{found.bad}"),
        ("And with room for the convention?", said, f"/diff/{found.bad}/{_step(found.mutated)}"),
        ("What does the next task know?", "a convention, with the approval it came of",
         _memory(found)),
        ("Did it help?", "the second run's first patch was right",
         f"/diff/{found.first.run_id}/{found.second.run_id}"),
        ("What was said, word for word?", "", f"/transcripts/{found.first.transcript}"),
        ("Was this record altered?", "", "/events"),
    )  # fmt: skip
    lines = []
    for question, answer, path in questions:
        lines += [f"  {question}" + (f" {answer[0].upper()}{answer[1:]}." if answer else "")]
        lines += [f"    {doors.http}{path}"]
    return "\n".join(lines)


def _memory(found: Golden) -> str:
    """Return the address of what the second run knew; of all there is where it knew nothing."""
    record = f"/{found.second.memory[0]}" if found.second.memory else ""
    return f"/memory{record}?project={PROJECT}"


def _step(replay: dict[str, Any]) -> str:
    return str(replay["step_ids"][0])


def _differs(replay: dict[str, Any]) -> str:
    is_other = not replay["comparison"]["output"]["is_empty"]
    return "the patch is the right one" if is_other else "the answer stayed the same"
