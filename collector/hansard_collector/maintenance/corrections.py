"""Linking corrections to the records that they correct, by nearness in meaning.

A link needs a minimum similarity and a margin to the second nearest. What is less sure waits for a
person; what is near nothing is not linked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from hansard_collector.maintenance.contradictions import batches, words_of
from hansard_collector.maintenance.result import Act, Corrections
from hansard_collector.maintenance.settings import LinkThresholds, MaintenanceSettings
from hansard_compiler.errors import HansardError
from hansard_compiler.models.memory import TRUST_GAP
from hansard_compiler.relevance import Embedder, Vector
from hansard_store.memory.maintenance.reviewed_supersessions import NewSupersession
from hansard_store.memory.maintenance.service import MaintenanceService
from hansard_store.memory.maintenance.vectors import NearMemory, nearest
from hansard_store.memory.records import Memory

_AT_ONCE: Final = 256
_ENOUGH: Final = 1e-9
_NAMES: Final = re.compile(r"\w*[A-Z0-9][\w-]*")
_OTHER_NAME: Final = "the correction names something that the record does not"
_LESS_TRUSTED: Final = "the correction is less trusted by more than 0.3"


@dataclass(frozen=True, slots=True)
class _Choice:
    """The nearest record, and why a link to it is doubtful; "" where it is not."""

    number: int
    similarity: float
    rationale: str
    doubt: str


@dataclass(slots=True)
class CorrectionLinking:
    """One run of linking."""

    service: MaintenanceService
    embedder: Embedder
    settings: MaintenanceSettings
    is_dry: bool = False
    most_tasks: int = 0
    _done: Corrections = field(init=False)
    _vectors: dict[int, Vector] = field(default_factory=dict)
    _standing: dict[int, int] = field(default_factory=dict)  # what may be corrected, by its time
    _owner: tuple[str, ...] = ()  # the namespace of both

    def run(self) -> Corrections:
        """Link what is without a link. Raises StoreError; an embedder that fails ends the part."""
        most = self.settings.most_corrections
        corrections = self.service.unlinked_corrections(self.embedder.name, most=most + 1)
        left = max(len(corrections) - most, 0)
        done = self._done = Corrections(self.embedder.name, left=left)
        corrections = corrections[:most]
        for at, one in enumerate(sorted(corrections, key=_by_place)):
            try:
                is_done = self._link(one)
            except HansardError:
                done.failed = len(corrections) - at
                break
            if is_done and not self.is_dry:
                self.service.set_compared([one.id], self.embedder.name)
        done.corrections = len(corrections) + done.left
        return done

    def _link(self, correction: Memory) -> bool:
        """Link one; False where the next run has to look at it again."""
        owner = _by_place(correction)[:-1]
        if owner != self._owner:
            self._vectors, self._owner = {}, owner
            self._standing = self.service.correctable(correction)
        # What was written later cannot be what it corrects.
        fresh_ns = correction.freshness_ns
        numbers = [number for number, at_ns in self._standing.items() if at_ns <= fresh_ns]
        choice = None
        if numbers:
            vectors = self._vectors_of(correction, numbers)
            vector = vectors[correction.id]
            near = nearest(vector, {number: vectors[number] for number in numbers})
            choice = choose(near, self.settings.thresholds_of(self.embedder.name))
        if choice is None:
            self._done.unlinked += 1
            return True
        older = self.service.records([choice.number])[choice.number]
        doubt = choice.doubt or _other_name(correction, older)
        if correction.confidence < older.confidence - TRUST_GAP - _ENOUGH:
            doubt = _LESS_TRUSTED
        why = "; ".join(filter(None, (choice.rationale, doubt)))
        link = NewSupersession(
            older.id, correction.id, "correction", why, self.embedder.name, choice.similarity
        )
        return (
            self._propose(link, older, correction)
            if doubt
            else self._supersede(link, older, correction)
        )

    def _supersede(self, link: NewSupersession, older: Memory, correction: Memory) -> bool:
        if not self.is_dry and not self.service.supersede(link):
            self._done.left += 1
            return False
        self._standing.pop(older.id, None)
        self._done.applied.append(Act(link, older, correction))
        return True

    def _propose(self, link: NewSupersession, older: Memory, correction: Memory) -> bool:
        if len(self._done.proposed) >= self.most_tasks:
            self._done.left += 1
            return False
        task_id = None
        if not self.is_dry:
            made = self.service.propose(link)
            task_id = None if made.task is None else made.task.task_id
        self._done.proposed.append(Act(link, older, correction, task_id))
        return True

    def _vectors_of(self, correction: Memory, numbers: Sequence[int]) -> dict[int, Vector]:
        """Return the vectors of these records and of the correction: stored, or made and stored."""
        needed = [one for one in (*numbers, correction.id) if one not in self._vectors]
        self._vectors |= self.service.vectors(needed, self.embedder.name)
        missing = [one for one in needed if one not in self._vectors]
        for part in batches(missing, _AT_ONCE):
            records = self.service.records(part)
            texts = [self.service.clean(words_of(records[number])) for number in part]
            made = dict(zip(part, self.embedder(texts), strict=True))
            self._done.embedded += len(part)
            if not self.is_dry:
                self.service.add_vectors(made, self.embedder.name)
            self._vectors |= made
        return self._vectors


def choose(near: Sequence[NearMemory], thresholds: LinkThresholds) -> _Choice | None:
    """Return the record that a correction is about, sure or doubtful; None where none is near."""
    if not near or near[0].similarity < thresholds.doubtful:
        return None
    best = near[0]
    margin = round(best.similarity - (near[1].similarity if len(near) > 1 else 0.0), 6)
    why = f"similarity {best.similarity:.2f}, {margin:.2f} more than the second"
    if best.similarity < thresholds.certain:
        return _Choice(best.number, best.similarity, why, f"below {thresholds.certain:.2f}")
    if margin < thresholds.margin:
        return _Choice(best.number, best.similarity, why, f"margin below {thresholds.margin:.2f}")
    return _Choice(best.number, best.similarity, why, "")


def _other_name(correction: Memory, older: Memory) -> str:
    """Return why two records are about different things of one kind; "" where nothing shows it.

    Vectors do not tell `worker 4` from `worker 1`: names and numbers in the subject do.
    """
    words = {word.casefold() for word in _NAMES.findall(words_of(older))}
    names = [word for word in _NAMES.findall(correction.subject) if word.casefold() not in words]
    return _OTHER_NAME if names else ""


def _by_place(one: Memory) -> tuple[str, ...]:
    return one.project, one.user, one.agent, repr(sorted(one.scope.items())), f"{one.id:020}"
