"""Whether messages of one error have one signature, on labelled pairs; how long a look takes.

`tests/fixtures/heartbeat/README.md` says how the pairs were made. What is told apart wrongly splits
a pattern; what is taken for one wrongly joins two causes: the second is worse.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from bench.figures import Figure, at_least, below
from hansard_store.detection.rules import RULES, DetectionRule
from hansard_store.detection.scan import scan
from hansard_store.detection.signatures import signature_of

PAIRS: Final = (
    Path(__file__).parents[2] / "tests" / "fixtures" / "heartbeat" / "error_messages.jsonl"
)
Half = Literal["worked on", "held out"]
HALVES: Final[tuple[Half, ...]] = ("worked on", "held out")
_ERRORS: Final = 10_000


@dataclass(frozen=True, slots=True)
class OfPairs:
    """How pairs were told apart."""

    same: int  # pairs of one error
    joined: int  # of these, with one signature
    other: int  # pairs of two errors
    mistaken: int  # of these, with one signature
    wrong: tuple[str, ...]  # the messages that were told wrongly

    @property
    def recall(self) -> float:
        return self.joined / max(self.same, 1)

    @property
    def precision(self) -> float:
        return self.joined / max(self.joined + self.mistaken, 1)


def of_pairs(half: Half) -> OfPairs:
    """Compare the signatures of every pair of a half."""
    same = joined = other = mistaken = 0
    wrong = []
    for pair in _pairs(half):
        is_one = signature_of(pair["a"]) == signature_of(pair["b"])
        is_same = pair["label"] == "same"
        same, other = same + is_same, other + (not is_same)
        joined, mistaken = joined + (is_same and is_one), mistaken + (not is_same and is_one)
        if is_one != is_same:
            wrong.append(f"{pair['label']}: {pair['a']}  |  {pair['b']}")
    return OfPairs(same, joined, other, mistaken, tuple(wrong))


def run() -> list[Figure]:
    """Print precision and recall of signatures, the numbers of each rule, the time of a look."""
    found: list[Figure] = []
    for half in HALVES:
        told = of_pairs(half)
        found.append(
            at_least(f"pairs {half}: errors joined rightly", 100 * told.precision, "%", bar=97,
                     note=f"{told.mistaken} of {told.other} pairs of two errors were joined")
        )  # fmt: skip
        found.append(
            at_least(f"pairs {half}: pairs of one error joined", 100 * told.recall, "%", bar=80,
                     note=f"{told.joined} of {told.same}; see its README for the first look")
        )  # fmt: skip
    found.append(below("a look at 10,000 errors, all rules", _look_s(), "s", bar=3))
    return [*found, *map(_of_rule, RULES)]


def _of_rule(rule: DetectionRule) -> Figure:
    return Figure(f"rule {rule.name}", rule.threshold, rule.unit.strip() or "times",
                  note=f"{rule.level}: {rule.applied}")  # fmt: skip


def _look_s() -> float:
    from tests.store.task_maker import task_maker

    with tempfile.TemporaryDirectory() as name, task_maker(Path(name) / "data") as maker:
        with maker.store.batch():
            for number in range(_ERRORS):
                maker.fail(
                    f"cannot read /tmp/{number}.txt: {number % 40} of {number} bytes",
                    tool=f"tool {number % 25}",
                    run=f"run {number % 500}",
                )
        begun = time.perf_counter()
        scan(maker.store.db, now_ns=maker.now_ns)
        return time.perf_counter() - begun


def _pairs(half: Half) -> Iterator[Any]:
    with PAIRS.open(encoding="utf-8") as lines:
        for line in lines:
            pair = json.loads(line)
            if pair["half"] == half:
                yield pair
