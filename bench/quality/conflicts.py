"""Contradictions found, and agreeing items dropped, on labelled pairs and lists.

`tests/fixtures/conflicts/` says how they were made; `other` is the second set. Every pair and every
list is one compile with all the room it needs, so that nothing but a contradiction drops an item.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal

from bench.figures import Figure, at_least, below
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.ports import Ports
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.tokens.estimators import estimator_for

FIXTURES: Final = Path(__file__).parent.parent.parent / "tests" / "fixtures"
Half = Literal["worked on", "held out"]
HALVES: Final[tuple[Half, ...]] = ("worked on", "held out")
Data = Literal["", "other "]
DATA: Final[tuple[Data, ...]] = ("", "other ")
KINDS: Final = ("memory", "retrieval_doc")
_NOW: Final = "2026-03-04T12:00:00Z"
_DROPPED: Final = frozenset({"conflict_lost", "superseded"})
_MOST_WRONG_PCT, _PRECISION_PCT = 0.5, 97


@dataclass(frozen=True, slots=True)
class OfPairs:
    """What became of labelled pairs."""

    right: int  # contradictions of which one side was dropped
    marked: int  # contradictions that were kept and marked
    contradictions: int
    wrong: int  # other pairs of which one side was dropped
    wrongly_marked: int
    others: int

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.contradictions)


@dataclass(frozen=True, slots=True)
class OfLists:
    """What became of labelled lists."""

    lists: int
    items: int
    wrong: int  # items dropped that contradict nothing, or not what they point to
    marked: int  # items kept and marked
    right: int
    contradictions: int


def run() -> list[Figure]:
    """Print what is found, what is missed and what is dropped wrongly, with its counts."""
    figures: list[Figure] = []
    for data, half in product(DATA, HALVES):
        pairs = of_pairs(half, data)
        found = pairs.right + pairs.wrong
        figures += [
            at_least(f"{data}pairs {half}: precision", 100 * pairs.precision, "%",
                     bar=_PRECISION_PCT,
                     note=f"{pairs.right} of {found} pairs settled are contradictions"),
            Figure(f"{data}pairs {half}: recall", 100 * pairs.recall, "%",
                   note=f"{pairs.right} of {pairs.contradictions}; {pairs.marked} more are marked; "
                   f"{pairs.wrongly_marked} of {pairs.others} others are marked"),
        ]  # fmt: skip
        for kind in KINDS:
            lists = of_lists(half, kind, data)
            note = f"{lists.wrong} of {lists.items:,} items of {lists.lists} lists, as {kind}"
            share = 100 * lists.wrong / lists.items
            what = f"{data}lists {half}: wrongly dropped"
            figures.append(below(what, share, "%", bar=_MOST_WRONG_PCT, note=note))
        figures.append(
            Figure(f"{data}lists {half}: recall", 100 * lists.right / lists.contradictions, "%",
                   note=f"{lists.right} of {lists.contradictions}; {lists.marked} items are marked")
        )  # fmt: skip
    return figures


def of_pairs(half: Half, data: Data = "") -> OfPairs:
    """Compile every pair of a half and count what became of it."""
    counts = dict.fromkeys(("right", "marked", "wrong", "wrongly_marked", "contradictions"), 0)
    others = 0
    for pair in of_half(_path(data, "pairs"), half):
        items = [_item(side, pair[side], pair.get(f"{side}_meta")) for side in ("a", "b")]
        result = compiled(items)
        is_contradiction = pair["label"] == "contradiction"
        counts["contradictions"] += is_contradiction
        others += not is_contradiction
        if dropped(result):
            counts["right" if is_contradiction else "wrong"] += 1
        elif marked(result):
            counts["marked" if is_contradiction else "wrongly_marked"] += 1
    return OfPairs(**counts, others=others)


def of_lists(half: Half, kind: str, data: Data = "") -> OfLists:
    """Compile every list of a half, its items as of one kind, and count what became of them."""
    lists = items = wrong = found_marked = right = contradictions = 0
    for one in of_half(_path(data, "lists"), half):
        result = compiled([_item(str(at), text, kind=kind) for at, text in enumerate(one["items"])])
        known = {frozenset(map(str, pair)) for pair in one["contradictions"]}
        lost = dropped(result)
        hits = {frozenset(pair) for pair in lost.items()} & known
        lists, items = lists + 1, items + len(one["items"])
        right, wrong = right + len(hits), wrong + len(lost) - len(hits)
        found_marked, contradictions = (
            found_marked + len(marked(result)),
            contradictions + len(known),
        )
    return OfLists(lists, items, wrong, found_marked, right, contradictions)


def compiled(items: Sequence[Any]) -> CompileResult:
    """Compile items with all the room they need."""
    request = {
        "request_id": "conflicts",
        "run_id": "conflicts",
        "step_id": "conflicts",
        "provider": "local",
        "model": "bench",
        "now": _NOW,
        "token_budget": 10_000_000,
        "context_items": items,
    }
    return compile_context(request, Ports(estimator_for("local", "bench"), Redactor(b"bench")))


def dropped(result: CompileResult) -> dict[str, str | None]:
    """Return the items that lost to another one, with that one."""
    return {one.item_id: one.related_item_id for one in result.receipts if one.reason in _DROPPED}


def marked(result: CompileResult) -> set[str]:
    """Return the items that are kept and whose receipts say that another may contradict them."""
    return {one.item_id for one in result.receipts if "possible_conflict" in (one.note or "")}


def of_half(name: str, half: Half) -> Iterator[Any]:
    """Yield the labelled records of a half: worked on are the even ids, held out the odd ones."""
    with (FIXTURES / name).open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if (record["id"] % 2 == 0) == (half == "worked on"):
                yield record


def _path(data: Data, name: str) -> str:
    return f"conflicts/{data.replace(' ', '_')}{name}.jsonl"


def _item(
    item_id: str, text: str, meta: Mapping[str, Any] | None = None, *, kind: str = "memory"
) -> Any:
    return {
        "id": item_id,
        "kind": kind,
        "content": text,
        "source_ref": {"source_type": "other", "title": "note"},
        "created_at": _NOW,
        "metadata": dict(meta or {}),
    }
