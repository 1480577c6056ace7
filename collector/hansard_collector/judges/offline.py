"""The offline classifier: deterministic rules for each task, the same on every machine.

| task | rule |
|---|---|
| topic | the share of a label's words that a text has (`WordOverlap`) |
| contradiction | the conflicts that a compile finds between two statements |
| irreversible | the rules on commands of the adapter package |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, cast

from hansard_collector.judges.errors import JudgeMissing
from hansard_compiler.classifier import (
    AGREES,
    CONTRADICTS,
    UNRELATED,
    ClassifierQuestion,
    ClassifierVerdict,
    WordOverlap,
)
from hansard_compiler.words import terms

if TYPE_CHECKING:
    from hansard_compiler.compile.items import CandidateItem

NAME: Final = "offline/1"
_COMMANDS: Final = "hansard.adapters.commands"
_FEW_WORDS: Final = 5
_CORRECTS: Final = re.compile(r"\s*(?:correction|corrected|actually|update)\b[:,]?", re.IGNORECASE)
# Scores: what is certain and what is doubtful lie apart, and in each the share of common words.
_CERTAIN: Final = (0.85, 0.15)
_DOUBTFUL: Final = (0.4, 0.3)
_SAME_PCT: Final = 60  # of the words of two statements: with fewer they say different things


@dataclass(frozen=True, slots=True)
class OfflineClassifier:
    """Dispatches a question to the rules of its task."""

    name: str = NAME
    _topics: WordOverlap = field(default_factory=WordOverlap)

    def __call__(self, question: ClassifierQuestion) -> ClassifierVerdict:
        """Return the verdict of the task's rules. Raises JudgeMissing where there are none."""
        if question.task == "topic":
            return self._topics(question)
        if question.task == "contradiction":
            return _among(contradiction_of(question), question.labels)
        return _among(_command_rules()(question.text), question.labels)


def contradiction_of(question: ClassifierQuestion) -> ClassifierVerdict:
    """Return whether two statements contradict each other, by what both state.

    The score is 0.85 or more for a certain contradiction, 0.4 to 0.7 for one that is doubtful
    (a subject that may have several values, other times). Without one: the share of common words
    for `agrees`, and what is left of it for `unrelated`.
    """
    from hansard_compiler.conflicts import contradictions, revision

    items = [_item(question.text, question.subject, 0), _item(question.other, question.subject, 1)]
    texts = {item.id: _statement(item, question.subject) for item in items}
    shared = _shared(question.text, question.other)
    found = contradictions(items, texts)
    revised = revision(question.text, question.other) if question.subject else None
    if found and (found[0].is_certain or revised is None):
        return _contradicts(found[0].how, shared, is_certain=found[0].is_certain)
    if revised is not None:
        return _contradicts(revised.how, shared, is_certain=revised.is_certain)
    if 100 * shared >= _SAME_PCT:
        return ClassifierVerdict(
            AGREES, round(shared, 3), "the same words, and no value that differs"
        )
    return ClassifierVerdict(
        UNRELATED, round(1 - shared, 3), "few common words, and no value that differs"
    )


def _contradicts(rule: str, shared: float, *, is_certain: bool) -> ClassifierVerdict:
    least, more = _CERTAIN if is_certain else _DOUBTFUL
    how = {"negation": "one denies the other", "number": "another number of the same"}
    reason = how.get(rule, "another value of the same")
    sure = "certain" if is_certain else "doubtful: both may hold"
    return ClassifierVerdict(CONTRADICTS, round(least + more * shared, 3), f"{reason} ({sure})")


def _shared(a: str, b: str) -> float:
    """Return the share of the smaller statement's words that the other has too."""
    words = [frozenset(terms(one)) for one in (a, b)]
    least = min(map(len, words))
    return len(words[0] & words[1]) / least if least else 0.0


def _statement(item: CandidateItem, subject: str) -> str:
    """Return the text of a statement; of a few words, that they hold of its subject."""
    if not subject or len(item.text.split()) >= _FEW_WORDS:
        return item.text
    return f"{subject} is {item.text}"


def _item(text: str, subject: str, position: int) -> CandidateItem:
    """Return a statement as a candidate of a compile: the second is the newer."""
    from hansard_compiler.compile.items import MICRO, CandidateItem

    return CandidateItem(
        id=str(position),
        kind="memory",
        position=position,
        content=text,
        text=_CORRECTS.sub("", text, count=1) if position else text,
        source=None,
        created_us=position,
        fresh_us=position,
        expires_us=None,
        trust=MICRO // 2,
        importance=MICRO // 2,
        sensitivity="internal",
        scope={},
        dependencies=(),
        token_estimate=None,
        stable_hash="",
        tags=frozenset({"correction"} if position and _CORRECTS.match(text) else ()),
        metadata={"subject": subject} if subject else {},
    )


def _among(verdict: ClassifierVerdict, labels: Sequence[str]) -> ClassifierVerdict:
    """Return a verdict that names one of the labels; without its label none fits."""
    if verdict.label is None or verdict.label in labels:
        return verdict
    return ClassifierVerdict(None, 0.0, verdict.reason)


def _command_rules() -> Callable[[str], ClassifierVerdict]:
    """Return the rules on commands; they are data of an adapter package, loaded on first use."""
    try:
        is_there = find_spec(_COMMANDS) is not None
    except ModuleNotFoundError:  # of a package above it
        is_there = False
    if not is_there:
        raise JudgeMissing(f"the rules on commands are missing: {_COMMANDS} is not installed")
    return cast("Callable[[str], ClassifierVerdict]", import_module(_COMMANDS).classify_command)
