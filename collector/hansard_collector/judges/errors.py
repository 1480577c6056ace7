"""What a classifier, an embedder or an extractor can meet.

JudgeError
├── JudgeTimeout     it gave no answer in time
├── JudgeMissing     it is switched off, or lacks a package, a key or an address: skip the step
└── InvalidJudgement     a model's answer is not what was requested; nothing is guessed from it
"""

from __future__ import annotations

from hansard_compiler.errors import HansardError


class JudgeError(HansardError):
    """No judgement."""

    code = "judge_failed"


class JudgeMissing(JudgeError):
    """There is none for this; the message has the reason and the remedy."""

    code = "judge_missing"


class JudgeTimeout(JudgeError):
    """There was no response within the time that the caller permits."""

    code = "judge_timeout"


class InvalidJudgement(JudgeError):
    """A response in another form than was requested, or about something else."""

    code = "invalid_judgement"

    def __init__(self, judge: str, what: str) -> None:
        super().__init__(f"the answer of {judge!r} cannot be used: {what}")
        self.judge = judge
