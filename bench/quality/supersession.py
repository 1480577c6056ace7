"""Contradictions in memory and links of corrections, by maintenance, on labelled sets.

`tests/fixtures/heartbeat/` says how they were made. A set is one store and one run: each pair is in
a namespace of its own, each group of records with its corrections in another. Thresholds were
chosen on the even ids (`worked on`); nobody looked at single results of the odd ones (`held out`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from bench.figures import Figure, at_least, below
from hansard_collector.judges import Judges
from hansard_collector.judges.embedders import HashedPieces, WordVectors
from hansard_collector.judges.offline import OfflineClassifier
from hansard_collector.maintenance import Maintainer, MaintenanceResult, MaintenanceSettings
from hansard_compiler.classifier import Classifier
from hansard_compiler.compile.models import parse
from hansard_compiler.models.memory import WriteMemory
from hansard_compiler.relevance import Embedder
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.memory.maintenance.service import MaintenanceService
from hansard_store.memory.service import MemoryService

FIXTURES: Final = Path(__file__).parent.parent.parent / "tests" / "fixtures" / "heartbeat"
Half = Literal["worked on", "held out"]
HALVES: Final[tuple[Half, ...]] = ("worked on", "held out")
_NOW: Final = 1_780_000_000 * 10**9
_SECOND: Final = 10**9
_SETTINGS: Final = replace(MaintenanceSettings(), most_tasks=100_000, most_corrections=100_000)
_MOST_WRONG_PCT: Final = 1.0


@dataclass(frozen=True, slots=True)
class OfPairs:
    """What became of labelled pairs."""

    contradictions: int
    others: int
    reached: int  # contradictions that the full-text filter let through
    right: int  # contradictions whose older record was superseded
    wrong: int  # other pairs of which one was superseded
    asked: int  # contradictions that became tasks for review
    wrongly_asked: int  # other pairs that did
    missed: Sequence[Any]
    mistaken: Sequence[Any]  # pairs that were wrongly superseded, or wrongly asked about

    @property
    def precision_pct(self) -> float:
        return 100 * self.right / max(1, self.right + self.wrong)

    @property
    def recall_pct(self) -> float:
        return 100 * self.right / max(1, self.contradictions)

    @property
    def wrong_pct(self) -> float:
        return 100 * self.wrong / max(1, self.others)


@dataclass(frozen=True, slots=True)
class OfCorrections:
    """What became of labelled corrections."""

    with_match: int
    without: int
    right: int  # linked to the record that they correct
    wrong: int  # linked to another one, or although they correct none
    asked_right: int  # tasks for review that propose the right record
    asked_wrong: int
    details: Sequence[Any]

    @property
    def precision_pct(self) -> float:
        return 100 * self.right / max(1, self.right + self.wrong)

    @property
    def recall_pct(self) -> float:
        return 100 * self.right / max(1, self.with_match)


def of_pairs(half: Half, classifier: Classifier | None = None) -> OfPairs:
    """Run maintenance over the pairs of a half, and count what became of them."""
    pairs = list(of_half("contradictions.jsonl", half))
    with tempfile.TemporaryDirectory() as path:
        folder, clock = _store(Path(path)), _Clock()
        with closing(MemoryService(folder, clock=clock)) as book:
            for side in ("older", "newer"):
                for pair in pairs:
                    _write(book, clock, f"pair {pair['id']}", pair["subject"], pair[side])
        judges = Judges(classifier or OfflineClassifier(), None)
        with closing(MaintenanceService(folder, clock=clock)) as maintaining:
            found = maintaining.candidates("nobody")
            numbers = [number for pair in found.pairs for number in pair]
            reached = {one.project for one in maintaining.records(numbers).values()}
            result = Maintainer(maintaining, judges, _SETTINGS).run()
    applied = {act.older.project: act for act in result.applied}
    asked = {act.older.project for act in result.proposed}
    true = [one for one in pairs if one["label"] == "contradiction"]
    others = [one for one in pairs if one["label"] != "contradiction"]
    return OfPairs(
        contradictions=len(true),
        others=len(others),
        reached=sum(_place(one) in reached for one in true),
        right=sum(_place(one) in applied for one in true),
        wrong=sum(_place(one) in applied for one in others),
        asked=sum(_place(one) in asked for one in true),
        wrongly_asked=sum(_place(one) in asked for one in others),
        missed=[one for one in true if _place(one) not in applied],
        mistaken=[one for one in others if _place(one) in {*applied, *asked}],
    )


def of_corrections(half: Half, embedder: Embedder) -> OfCorrections:
    """Link the corrections of a half, and count which were linked to what they correct."""
    groups = list(of_half("corrections.jsonl", half))
    with tempfile.TemporaryDirectory() as path:
        folder, clock = _store(Path(path)), _Clock()
        wanted: dict[str, str | None] = {}
        with closing(MemoryService(folder, clock=clock)) as book:
            for group in groups:
                _write_group(book, clock, group, wanted)
        with closing(MaintenanceService(folder, clock=clock)) as maintaining:
            result = Maintainer(maintaining, Judges(None, embedder), _SETTINGS).run()
    return _counted(result, wanted)


def _write_group(
    book: MemoryService, clock: _Clock, group: Mapping[str, Any], wanted: dict[str, str | None]
) -> None:
    """Write the records of a group, then its corrections; note which record each corrects."""
    place, ids = f"group {group['id']}", []
    for subject, text in group["records"]:
        ids.append(_write(book, clock, place, subject, text))
    for at, one in enumerate(group["corrections"]):
        made = _write(
            book, clock, place, one["subject"], one["text"], memory_type="correction",
            attribute=f"correction {at}", tags=["correction"],
        )  # fmt: skip
        wanted[made] = None if one["of"] is None else ids[one["of"]]


def _counted(result: MaintenanceResult, wanted: Mapping[str, str | None]) -> OfCorrections:
    applied = {act.newer.memory_id: act for act in result.applied}
    asked = {act.newer.memory_id: act for act in result.proposed}
    rights = {made for made, act in applied.items() if wanted[made] == act.older.memory_id}
    asked_right = {made for made, act in asked.items() if wanted[made] == act.older.memory_id}
    details = [
        (made in rights, made in asked, act.link.score, act.link.rationale,
         str(act.newer.content), str(act.older.content))
        for made, act in (*applied.items(), *asked.items())
    ]  # fmt: skip
    with_match = sum(one is not None for one in wanted.values())
    return OfCorrections(
        with_match=with_match,
        without=len(wanted) - with_match,
        right=len(rights),
        wrong=len(applied) - len(rights),
        asked_right=len(asked_right),
        asked_wrong=len(asked) - len(asked_right),
        details=details,
    )


def figures() -> Iterator[Figure]:
    """Yield precision and recall of both operations, for both halves."""
    for half in HALVES:
        pairs = of_pairs(half)
        yield Figure(f"contradictions {half}: precision", pairs.precision_pct, "%",
                     note=f"{pairs.right} of {pairs.right + pairs.wrong} are right")  # fmt: skip
        yield Figure(f"contradictions {half}: recall", pairs.recall_pct, "%",
                     note=f"{pairs.right} of {pairs.contradictions}; {pairs.asked} more are tasks; "
                     f"the full-text filter let {pairs.reached} through")  # fmt: skip
        yield below(f"contradictions {half}: wrongly superseded", pairs.wrong_pct, "%",
                    bar=_MOST_WRONG_PCT, note=f"{pairs.wrong} of {pairs.others} pairs that agree; "
                    f"{pairs.wrongly_asked} became tasks")  # fmt: skip
        for embedder in (HashedPieces(), WordVectors()):
            yield from _of_embedder(half, embedder)


def _of_embedder(half: Half, embedder: Embedder) -> Iterator[Figure]:
    links = of_corrections(half, embedder)
    name = f"corrections {half}, {embedder.name}"
    yield at_least(f"{name}: precision", links.precision_pct, "%", bar=95,
                   note=f"{links.right} of {links.right + links.wrong} links are right; "
                   f"{links.without} corrections have no true match")  # fmt: skip
    yield Figure(f"{name}: recall", links.recall_pct, "%",
                 note=f"{links.right} of {links.with_match}; tasks propose {links.asked_right} "
                 f"more rightly, {links.asked_wrong} wrongly")  # fmt: skip


def of_half(name: str, half: Half) -> Iterator[Any]:
    """Yield the labelled records of a half: worked on are the even ids, held out the odd ones."""
    with (FIXTURES / name).open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if (record["id"] % 2 == 0) == (half == "worked on"):
                yield record


@dataclass(slots=True)
class _Clock:
    """A clock that goes on by a second with each reading."""

    now_ns: int = _NOW

    def __call__(self) -> int:
        self.now_ns += _SECOND
        return self.now_ns


def _store(path: Path) -> DataFolder:
    folder = DataFolder(path)
    open_for_ingest(folder).close()
    return folder


def _place(pair: Mapping[str, Any]) -> str:
    return f"pair {pair['id']}"


def _write(
    book: MemoryService, clock: _Clock, project: str, subject: str, text: str, **more: Any
) -> str:
    told = {
        "writer": "app",
        "memory_type": "fact",
        "subject": subject,
        "content": text,
        "namespace": {"project": project},
        **more,
    }
    clock()
    return book.write(parse(WriteMemory, told)).memory.memory_id
