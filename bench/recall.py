"""How well context is chosen: recall at a budget, and contradictions found, on labelled fixtures.

`tests/fixtures/relevance/` holds two domains, about 30 items each, with what is relevant to each
question, and pairs of statements that do or do not contradict each other. Labels were made by hand
before anything was measured; several are meant to be out of reach of words alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.figures import Figure, at_least
from hansard_compiler.compile import CompileResult, compile_context
from hansard_compiler.items import MICRO
from hansard_compiler.ports import Ports, Relevance
from hansard_compiler.redaction import Redactor
from hansard_compiler.relevance import Bm25
from hansard_compiler.tokens import estimator_for

_FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures" / "relevance"
_NOW = "2026-03-04T12:00:00Z"
_DOMAINS = ("coding", "support")
_REDACTOR = Redactor(b"bench")
_THIRD, _FIFTH = 3, 5  # of all tokens
# Relevance alone: what is measured is finding, not trust or age.
_WEIGHTS = {"freshness": 0, "trust": 0, "importance": 0, "dependency": 0}


def run() -> list[Figure]:
    """Print recall of BM25 beside plain word overlap, and what conflict detection finds."""
    figures: list[Figure] = []
    for domain in _DOMAINS:
        for share, name in ((_THIRD, "a third"), (_FIFTH, "a fifth")):
            bm25, overlap = (recall(domain, one, share=share) for one in (Bm25(), word_overlap))
            note = f"at {name} of all tokens; word overlap {100 * overlap:.0f} %"
            figures.append(
                at_least(f"recall, {domain}", 100 * bm25, "%", bar=100 * overlap, note=note)
            )
    found = conflict_counts()
    return [
        *figures,
        at_least("conflicts: precision", 100 * found.precision, "%", bar=90, note=str(found)),
        at_least("conflicts: recall", 100 * found.recall, "%", bar=70),
    ]


def recall(domain: str, relevance: Relevance, *, share: int = _THIRD) -> float:
    """Return the share of relevant items that go in, over all questions of a domain."""
    data = _read(domain)
    wanted = found = 0
    for query in data["queries"]:
        result = _compile(data["items"], query["asked"], relevance, share=share)
        chosen = {receipt.item_id for receipt in result.receipts if receipt.section}
        wanted += len(query["relevant"])
        found += len(chosen.intersection(query["relevant"]))
    return found / wanted


def word_overlap(query: str, texts: Sequence[str]) -> Sequence[int]:
    """Rate by the share of the query's words that a text holds: what BM25 has to beat."""
    wanted = set(query.lower().split())
    return [MICRO * len(wanted.intersection(text.lower().split())) // len(wanted) for text in texts]


def _compile(
    items: Sequence[Any], asked: str, relevance: Relevance, *, share: int
) -> CompileResult:
    counter = estimator_for("local", "bench")
    # One kind for all: budget classes would choose by kind, and that is not what is measured.
    candidates = [_item(one["id"], "retrieval_doc", one["content"], one["title"]) for one in items]
    question = _item("asked", "user_msg", asked, "user")
    total = sum(counter.count(one["content"]) + 12 for one in items)
    request = {
        "request_id": "recall",
        "run_id": "recall",
        "step_id": "recall",
        "provider": "local",
        "model": "bench",
        "now": _NOW,
        "token_budget": total // share + counter.count(asked) + 4,
        "context_items": [*candidates, question],
        "compile_config": {
            "weights": _WEIGHTS,
            "detect_conflicts": False,
            "compression": {"enabled": False},
        },
    }
    return compile_context(request, Ports(counter, _REDACTOR, relevance=relevance))


def _item(item_id: str, kind: str, content: str, title: str) -> Any:
    return {
        "id": item_id,
        "kind": kind,
        "content": content,
        "source_ref": {"source_type": "other", "title": title},
        "created_at": _NOW,
    }


class Counts:
    """How often a contradiction was seen, where there was one and where there was none."""

    def __init__(self) -> None:
        self.right = self.wrong = self.missed = 0
        self.mistakes: list[str] = []

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)

    def __str__(self) -> str:
        return f"{self.right} found, {self.missed} missed, {self.wrong} wrongly seen"


def conflict_counts() -> Counts:
    """Compile every labelled pair and see whether one of it is held to be contradicted."""
    counts = Counts()
    for pair in _read("conflicts")["pairs"]:
        seen = _is_contradicted(pair["a"], pair["b"])
        if seen and pair["contradict"]:
            counts.right += 1
        elif seen != pair["contradict"]:
            counts.wrong += seen
            counts.missed += not seen
            counts.mistakes.append(f"{pair['a']} / {pair['b']}")
    return counts


def _is_contradicted(a: str, b: str) -> bool:
    items = [_item("a", "memory", a, "note"), _item("b", "memory", b, "note")]
    request = {
        "request_id": "conflict",
        "run_id": "conflict",
        "step_id": "conflict",
        "provider": "local",
        "model": "bench",
        "now": _NOW,
        "token_budget": 10_000,
        "context_items": items,
    }
    result = compile_context(request, Ports(estimator_for("local", "bench"), _REDACTOR))
    return any(one.reason in ("conflict_lost", "superseded") for one in result.receipts)


def _read(name: str) -> Any:
    return json.loads((_FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
