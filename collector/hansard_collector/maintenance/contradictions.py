"""The second stage of contradiction detection: a classifier judges what the first one found.

What is certain is superseded, the older record by the newer; what is doubtful waits for a person:
a low score, a newer record that is much less trusted, or several records that all contradict one
another, which may be a list.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hansard_collector.maintenance.result import Act, Contradictions
from hansard_collector.maintenance.settings import MaintenanceSettings
from hansard_compiler.classifier import (
    AGREES,
    CONTRADICTS,
    UNRELATED,
    Classifier,
    ClassifierQuestion,
    ClassifierVerdict,
)
from hansard_compiler.conflicts.sentences import VERBS
from hansard_compiler.errors import HansardError
from hansard_compiler.models.memory import TRUST_GAP
from hansard_compiler.words import terms
from hansard_store.memory.maintenance.candidate_pairs import Pair
from hansard_store.memory.maintenance.reviewed_supersessions import NewSupersession
from hansard_store.memory.maintenance.service import JudgedPair, MaintenanceService
from hansard_store.memory.records import Memory

_FEW_WORDS: Final = 5  # fewer are a value, and no sentence


def statement_of(one: Memory) -> str:
    """Return a record as one statement: a bare value with what it is the value of."""
    text = _text(one.content)
    words = text.split()
    if len(words) >= _FEW_WORDS or not words or not one.subject:
        return text
    if words[0].casefold() in VERBS:
        return f"{one.subject} {text}"
    if _says_of_what(text, one.subject):
        return text
    if one.attribute:
        return f"the {one.attribute} of {one.subject} is {text}"
    return f"{one.subject} is {text}"


def _says_of_what(text: str, subject: str) -> bool:
    """Return whether a short text is more than a value: it names its subject, or has a verb."""
    words, about = set(terms(text)), set(terms(subject))
    has_verb = any(word.casefold() in VERBS for word in text.split())
    return bool(words & about) or has_verb or ":" in text or "=" in text


def words_of(one: Memory) -> str:
    """Return the words by which a record is near others: subject, attribute and content."""
    text = _text(one.content)
    folded = text.casefold()
    about = [part for part in (one.subject, one.attribute) if part.casefold() not in folded]
    return ". ".join((*about, text))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping) and "value" in content:
        value = content["value"]
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(content, ensure_ascii=False)


def are_apart(subject: str, other: str) -> bool:
    """Return whether two subjects are of two things: each has a word that the other lacks.

    `customer 17` and `customer 23` are, `staging` and `the staging database` are not.
    """
    mine, its = (frozenset(re.findall(r"\w+", one.casefold())) for one in (subject, other))
    return bool(mine - its) and bool(its - mine)


LABELS: Final = (CONTRADICTS, AGREES, UNRELATED)
_MOST_FAILURES: Final = 3  # in a row: then the classifier is down
_AT_ONCE: Final = 200
_LESS_TRUSTED: Final = "the newer record is less trusted by more than 0.3"
_SEVERAL: Final = "more than two records contradict each other: they may be a list"
_SAME_TIME: Final = 1e-9


@dataclass(frozen=True, slots=True)
class _Found:
    """A pair that contradicts each other, as it was judged."""

    judged: JudgedPair
    older: Memory
    newer: Memory

    @property
    def link(self) -> NewSupersession:
        verdict = self.judged.verdict
        why = verdict.reason or "the classifier says that both cannot hold"
        return NewSupersession(
            self.older.id, self.newer.id, "contradiction", why, self.judged.classifier,
            round(verdict.score, 3),
        )  # fmt: skip


@dataclass(slots=True)
class ContradictionSearch:
    """One run of contradiction detection."""

    service: MaintenanceService
    classifier: Classifier
    settings: MaintenanceSettings
    is_dry: bool = False
    most_tasks: int = 0
    _done: Contradictions = field(init=False)
    _open: set[Pair] = field(default_factory=set)  # pairs that the next run has to look at

    def run(self) -> Contradictions:
        """Find, judge and settle. Raises StoreError; a classifier that fails is counted."""
        name = self.classifier.name
        done = self._done = Contradictions(name)
        self._open_waiting()
        entries = self.service.new_entries(name)
        if not entries:
            return done
        pre = self.service.candidates(name)
        done.entries, done.new, done.pairs = pre.entries, pre.new, len(pre.pairs)
        done.prefilter_ms = pre.took_ms
        unjudged = self.service.unjudged(name, pre.pairs)
        self._open = set(unjudged[self.settings.most_calls :])
        found = self._judge(unjudged[: self.settings.most_calls])
        self._settle(found)
        if not self.is_dry:
            waiting = {number for pair in self._open for number in pair}
            self.service.set_compared([one for one in entries if one not in waiting], name)
        done.left, done.found = len(self._open), len(found)
        return done

    # ---- judging

    def _judge(self, pairs: Sequence[Pair]) -> list[_Found]:
        found: list[_Found] = []
        in_a_row = 0
        for at in range(0, len(pairs), _AT_ONCE):
            part = pairs[at : at + _AT_ONCE]
            records = self.service.records([number for pair in part for number in pair])
            nothing: list[JudgedPair] = []
            for pair in part:
                if in_a_row == _MOST_FAILURES or not records.keys() >= set(pair):
                    self._open.add(pair)
                    continue
                older, newer = in_order(records, pair)
                verdict = self._verdict(older, newer)
                in_a_row = in_a_row + 1 if verdict is None else 0
                if verdict is None:
                    self._open.add(pair)
                    continue
                judged = JudgedPair(pair, self.classifier.name, verdict)
                if verdict.label == CONTRADICTS and verdict.score >= self.settings.doubtful:
                    found.append(_Found(judged, older, newer))
                else:
                    nothing.append(judged)
            if not self.is_dry:
                self.service.note_verdicts(nothing)
        return found

    def _verdict(self, older: Memory, newer: Memory) -> ClassifierVerdict | None:
        """Ask the classifier; None where it fails, or returns an unknown label."""
        if are_apart(older.subject, newer.subject):
            return ClassifierVerdict(UNRELATED, 1.0, "their subjects are not the same")
        is_same = older.subject.casefold() == newer.subject.casefold()
        question = ClassifierQuestion(
            "contradiction",
            self.service.clean(statement_of(older)),
            LABELS,
            other=self.service.clean(statement_of(newer)),
            subject=self.service.clean(older.subject) if is_same else "",
        )
        self._done.calls += 1
        try:
            verdict = self.classifier(question)
        except HansardError:
            self._done.failed += 1
            return None
        if verdict.label not in (None, *LABELS) or not 0 <= verdict.score <= 1:
            self._done.failed += 1
            return None
        return verdict

    # ---- settling

    def _settle(self, found: Sequence[_Found]) -> None:
        certain = [one for one in found if one.judged.verdict.score >= self.settings.certain]
        often = Counter(number for one in certain for number in one.judged.pair)
        # The oldest first, so that of three the last one stands.
        for one in sorted(found, key=lambda one: (one.newer.freshness_ns, one.newer.id)):
            doubt = self._doubt(one, often)
            if doubt is None:
                self._supersede(one)
            else:
                self._propose(one, doubt)

    def _doubt(self, one: _Found, often: Mapping[int, int]) -> str | None:
        """Return why a person is to decide: "" the classifier doubts, None nothing does."""
        if one.judged.verdict.score < self.settings.certain:
            return ""
        if one.newer.confidence < one.older.confidence - TRUST_GAP - _SAME_TIME:
            return _LESS_TRUSTED
        return _SEVERAL if any(often[number] > 1 for number in one.judged.pair) else None

    def _open_waiting(self) -> None:
        """Open tasks for what earlier runs left, as far as this run may."""
        if self.is_dry:
            return
        name = self.classifier.name
        for waiting in self.service.waiting(name, most=self.most_tasks):
            records = self.service.records(waiting.pair)
            judged = JudgedPair(
                waiting.pair, name, ClassifierVerdict(CONTRADICTS, waiting.score, waiting.reason)
            )
            if any(records[number].state != "current" for number in waiting.pair):
                self.service.note_verdicts([judged])  # settled meanwhile
                continue
            self._propose(_Found(judged, *in_order(records, waiting.pair)), "")

    def _supersede(self, one: _Found) -> None:
        if not self.is_dry and not self.service.supersede(one.link, one.judged):
            self._done.changed += 1
            self._open.add(one.judged.pair)
            return
        self._done.applied.append(Act(one.link, one.older, one.newer))

    def _propose(self, one: _Found, doubt: str) -> None:
        link = one.link
        why = "; ".join(filter(None, (link.rationale, doubt)))
        link = replace(link, rationale=why)
        if len(self._done.proposed) >= self.most_tasks:
            self._done.waiting += 1
            if not self.is_dry:
                self.service.note_verdicts([one.judged], "waiting", reason=why)
            return
        task_id = None
        if not self.is_dry:
            made = self.service.propose(link, one.judged)
            task_id = None if made.task is None else made.task.task_id
        self._done.proposed.append(Act(link, one.older, one.newer, task_id))


def in_order(records: Mapping[int, Memory], pair: Pair) -> tuple[Memory, Memory]:
    """Return the older and the newer of two records: by the time as of which they hold."""
    a, b = (records[number] for number in pair)
    return (a, b) if (a.freshness_ns, a.id) <= (b.freshness_ns, b.id) else (b, a)


def batches(numbers: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    """Yield parts of a list."""
    for at in range(0, len(numbers), most):
        yield numbers[at : at + most]
