"""Compiling 1,000 and 10,000 items: how long, and how the time grows.

Processor time: a compile waits for nothing, so what else the machine does is no part of it. What
was there before is frozen, as the server does it, or Python would walk over all of it every time.
"""

from __future__ import annotations

import gc
import random
import time
from itertools import accumulate
from statistics import median
from typing import Any

from bench.figures import Figure, below
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.inputs import request_from
from hansard_compiler.compile.ports import Ports
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.tokens.estimators import estimator_for
from hansard_compiler.words import WORD

_NOW = "2026-03-04T12:00:00Z"
_CALLS = 5
_ASKED = "Why is the invoice total off by a cent after a refund, and where is it rounded?"
_WORDS = WORD.findall(
    """total invoice rounding decimal payment ledger customer refund currency module import test
    assert value error retry timeout queue worker request response header token session user
    config option default branch deploy release version schema table index column query cache
    memory policy approval review patch function class method return argument quantize half even"""
)
_KINDS = ("retrieval_doc", "retrieval_doc", "file", "file", "memory", "tool_result", "summary",
          "assistant_msg", "artifact", "user_msg")  # fmt: skip


def run() -> list[Figure]:
    """Compile with a budget for a tenth of the items; medians of five."""
    small, large = _compiling(1_000), _compiling(10_000)
    growth = large.seconds / small.seconds
    return [
        below("compile 1,000 items", small.seconds * 1000, "ms", bar=50, note=small.note),
        below("compile 10,000 items", large.seconds * 1000, "ms", bar=600, note=large.note),
        below("10,000 against 1,000", growth, "times", bar=13, note="10 would be linear"),
        Figure("the same, tokens counted", _counted(1_000) * 1000, "ms", note="1,000 items"),
        Figure("checking 1,000 items as JSON", _checking(1_000) * 1000, "ms"),
        Figure("receipts of 1,000 as JSON", _writing(small.result) * 1000, "ms"),
        Figure("receipts of 1,000 as columns", _columns(small.result) * 1000, "ms"),
    ]


def compile_of(number: int, *, share: int = 10) -> CompileResult:
    """Return a compile of that many items, with a budget for one token in `share`."""
    given = _request(number)
    given["token_budget"] = given["token_budget"] * 10 // share
    return compile_context(request_from(given), _ports())


class _Compiling:
    def __init__(self, seconds: float, result: CompileResult, size: float) -> None:
        self.seconds = seconds
        self.result = result
        chosen = len(result.state.live)
        self.note = f"{chosen} chosen, {size:,.0f} bytes an item, tokens known"


def _compiling(number: int) -> _Compiling:
    request = request_from(_request(number))
    seconds = _median(lambda: compile_context(request, _ports()))
    size = sum(len(item["content"]) for item in _items(number)) / number
    return _Compiling(seconds, compile_context(request, _ports()), size)


def _counted(number: int) -> float:
    """Compile without token estimates, as for items never seen before."""
    given = _request(number)
    for item in given["context_items"]:
        item["token_estimate"] = None
    request = request_from(given)
    return _median(lambda: compile_context(request, _ports()))


def _checking(number: int) -> float:
    given = _request(number)
    return _median(lambda: request_from(given))


def _writing(result: CompileResult) -> float:
    return _median(lambda: result.context().model_dump_json())


def _columns(result: CompileResult) -> float:
    return _median(lambda: result.columns())


def _median(call: Any) -> float:
    def once() -> float:
        began = time.process_time()
        call()
        return time.process_time() - began

    gc.collect()
    gc.freeze()
    try:
        return median(once() for _ in range(_CALLS))
    finally:
        gc.unfreeze()


def _ports() -> Ports:
    return Ports(counter=estimator_for("openai", "gpt-5"), redactor=_REDACTOR)


_REDACTOR = Redactor(b"bench")


def _request(number: int) -> dict[str, Any]:
    items = _items(number)
    return {
        "request_id": "bench",
        "run_id": "bench",
        "step_id": "bench",
        "provider": "openai",
        "model": "gpt-5",
        "now": _NOW,
        "task_summary": "Round the invoice totals half even; the rounding test fails.",
        "token_budget": sum(item["token_estimate"] for item in items) // 10,
        "context_items": items,
    }


def _items(number: int) -> list[dict[str, Any]]:
    """Return items of 100 to 1,000 bytes: prose and code, some of it twice, some of it chained."""
    draw = random.Random(number)
    items: list[dict[str, Any]] = []
    for at in range(number):
        kind = draw.choice(_KINDS) if at < number - 1 else "user_msg"
        text = _text(draw) if at % 50 or not items else items[-1]["content"]
        text = text if at < number - 1 else _ASKED
        items.append(
            {
                "id": f"item-{at}",
                "kind": kind,
                "content": text,
                "source_ref": {"source_type": "file", "uri": f"src/{kind}/{at}.md"},
                "created_at": _NOW if text is _ASKED else _earlier(draw),
                "trust_score": draw.randint(0, 10) / 10,
                "importance_score": draw.randint(0, 10) / 10,
                "token_estimate": len(text) // 4,
                "dependencies": [f"item-{draw.randrange(at)}"] if at % 7 == 3 else [],
            }
        )
    return items


def _earlier(draw: random.Random) -> str:
    return f"2026-03-{draw.randint(1, 3):02d}T{draw.randint(0, 23):02d}:00:00Z"


def _text(draw: random.Random) -> str:
    """Return 2 to 15 lines of words as frequent as in prose (Zipf)."""
    lines = []
    for _ in range(draw.randint(2, 15)):
        words = draw.choices(_VOCABULARY, cum_weights=_FREQUENCIES, k=draw.randint(5, 14))
        end = draw.choice((".", ".", ";", f" {draw.random():.2f}."))
        lines.append(" ".join(words).capitalize() + end)
    return "\n".join(lines)


def _vocabulary(size: int) -> list[str]:
    draw = random.Random(size)
    syllables = [a + b for a in "bcdfglmnprstv" for b in ("a", "e", "i", "o", "u", "er", "an")]
    made = {"".join(draw.choices(syllables, k=draw.randint(2, 4))) for _ in range(size)}
    words = [*_WORDS, *sorted(made)]
    draw.shuffle(words)
    return words


_VOCABULARY = _vocabulary(5_000)
_FREQUENCIES = list(accumulate(1 / (rank + 10) for rank in range(len(_VOCABULARY))))
