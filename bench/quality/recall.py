"""How well context is chosen: recall at a budget, and answers found, on labelled fixtures.

`tests/fixtures/relevance/` holds two domains, about 30 items each, with what is relevant to each
question. Labels were made by hand before anything was measured; several are meant to be out of
reach of words alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.figures import Figure, at_least
from bench.quality import paraphrases
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.items import MICRO
from hansard_compiler.compile.ports import Ports, RelevancePort
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.relevance import Bm25, Pieces
from hansard_compiler.tokens.estimators import estimator_for

_FIXTURES = Path(__file__).parent.parent.parent / "tests" / "fixtures" / "relevance"
_NOW = "2026-03-04T12:00:00Z"
_DOMAINS = ("coding", "support")
_REDACTOR = Redactor(b"bench")
_THIRD, _FIFTH = 3, 5  # of all tokens
# Relevance alone: what is measured is finding, not trust or age.
_WEIGHTS = {"freshness": 0, "trust": 0, "importance": 0, "dependency": 0}


def run() -> list[Figure]:
    """Print recall of the default scorer beside 0.1's and plain word overlap; then paraphrases."""
    figures: list[Figure] = []
    for domain in _DOMAINS:
        for share, name in ((_THIRD, "a third"), (_FIFTH, "a fifth")):
            found, bm25, overlap = (
                recall(domain, one, share=share) for one in (Pieces(), Bm25(), word_overlap)
            )
            note = (
                f"at {name} of all tokens; bm25/1 {100 * bm25:.0f} %, "
                f"word overlap {100 * overlap:.0f} %"
            )
            what = f"recall, {domain}"
            figures.append(at_least(what, 100 * found, "%", bar=100 * overlap, note=note))
    return [*figures, *paraphrases.run()]


def recall(domain: str, relevance: RelevancePort, *, share: int = _THIRD) -> float:
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
    items: Sequence[Any], asked: str, relevance: RelevancePort, *, share: int
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


def _read(name: str) -> Any:
    return json.loads((_FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
