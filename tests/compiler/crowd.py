"""A large request with some of everything, drawn from one seed: the same on every day and machine.

Only `Random.random` is used: of all its methods it alone promises the same numbers in every Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from tests.compiler.compiling import request_data

_T = TypeVar("_T")

_KINDS = ("retrieval_doc", "file", "memory", "summary", "artifact", "constraint", "other", "plan",
          "handoff", "policy", "code_diff", "user_msg", "assistant_msg")  # fmt: skip
_WORDS = """the invoice total is rounded half even when a refund comes late and not before review
    timeout of billing worker moved to queue deploy never runs on friday token header cache was
    disabled for currency module Währung 合計端数 toCents retry_limit port 8080 30 seconds 4.5% 2024
    actually no longer uses legacy ledger customer approval needed without exception""".split()  # noqa: SIM905
_ENDS = (".", ".", "!", ";", "\n", " =")
_SENSITIVITIES = ("internal", "internal", "internal", "public", "restricted", "secret")
_TAGS = ("pinned", "correction", "soft", "profile", "changed", "blocking")
_SECRET = "AKIA" + "QXZ7PLMW2K4TBN3V"  # put together here, so that no scanner takes it for a key


def crowd(number: int = 700) -> Any:
    """Return the data of a request that every pass has something to do with."""
    draw = Random(20_260_304)
    items = [_item(draw, at) for at in range(number)]
    for at in range(9, number, 40):  # said twice, and known by another id
        items[at]["kind"], items[at]["content"] = items[at - 3]["kind"], items[at - 3]["content"]
    return request_data(
        [*items, *_exchanges(draw), _last(number)],
        budget=28_000,
        response_reserve=500,
        task_summary="Round the invoice totals half even after a refund; find the timeout.",
        tool_specs=[{"name": name, "input_schema": {"type": "object"}} for name in ("grep", "run")],
        memory_records=[_memory(draw, at) for at in range(40)],
        policy_rules=_RULES,
        compile_config={
            "scope": {"team": "billing"},
            "previous_selected": [f"item-{at}" for at in range(0, number, 5)],
            "pinned": ["item-17", "item-211"],
            "min_score": 0.3,
            "clearance": "secret",
            "cycles": "together",
        },
    )


def _item(draw: Random, at: int) -> dict[str, Any]:
    kind = _one(draw, _KINDS)
    text = _text(draw)
    made: dict[str, Any] = {
        "id": f"item-{at}",
        "kind": kind,
        "content": {"parts": [{"type": "text", "text": text}]} if at % 11 == 5 else text,
        "source_ref": {"source_type": "file", "uri": f"src/{kind}/{at}.md"},
        "created_at": _time(draw),
        "trust_score": _below(draw, 11) / 10,
        "importance_score": _below(draw, 11) / 10,
        "sensitivity": _one(draw, _SENSITIVITIES),
        "dependencies": [f"item-{_below(draw, at)}"] if at % 7 == 3 else [],
        "tags": [_one(draw, _TAGS)] if at % 6 == 1 else ["soft"],
        "ttl_seconds": 3_600 * (1 + _below(draw, 400)) if at % 9 == 4 else None,
        "scope": {"team": _one(draw, ("billing", "search", "*"))} if at % 13 == 6 else {},
        "token_estimate": len(text) // 4 if at % 2 else None,
        "metadata": {"risk": 0.5} if at % 17 == 2 else {},
    }
    if kind == "memory" and at % 3 == 0:
        made["content"] = {"subject": f"port {at % 4}", "attribute": "number", "value": at % 5}
    if at == 60:
        made["dependencies"] = ["item-61", "item-unknown"]
    if at == 61:
        made["dependencies"] = ["item-60"]
    return made


def _exchanges(draw: Random) -> list[dict[str, Any]]:
    """Return calls with their results, and reasoning in front of some."""
    found: list[dict[str, Any]] = []
    for at in range(12):
        created = f"2026-03-04T0{at % 10}:30:00Z"
        call = {"type": "tool_call", "id": f"call-{at}", "name": "grep", "arguments": {"n": at}}
        result = {"type": "tool_result", "id": f"call-{at}", "content": _text(draw)}
        thought = {"type": "reasoning", "text": "looking"}
        if at % 3 == 0:
            found.append(_message(f"thought-{at}", "assistant_msg", thought, created))
        found.append(_message(f"call-{at}", "assistant_msg", call, created))
        found.append(_message(f"result-{at}", "tool_result", result, created))
    return found


def _message(item_id: str, kind: str, part: dict[str, Any], created: str) -> dict[str, Any]:
    return {
        "id": item_id,
        "kind": kind,
        "content": {"parts": [part]},
        "source_ref": {"source_type": "app_state"},
        "created_at": created,
    }


def _last(number: int) -> dict[str, Any]:
    return {
        "id": "asked",
        "kind": "user_msg",
        "content": "Why is the invoice total off by a cent, and who disabled the cache?",
        "source_ref": {"source_type": "user", "title": f"question {number}"},
        "created_at": "2026-03-04T11:59:59Z",
    }


def _memory(draw: Random, at: int) -> dict[str, Any]:
    states = ("superseded", "invalidated", "review")
    return {
        "id": f"memory-{at}",
        "memory_type": "fact",
        "subject": f"subject {at % 6}",
        "content": _text(draw, most=2),
        "confidence": _below(draw, 11) / 10,
        "metadata": {"memory_state": states[at % 3]} if at % 10 == 7 else {},
    }


_RULES = [
    {"id": "no-secrets", "name": "no secrets", "effect": "deny",
     "conditions": {"item.sensitivity": "secret", "item.kind": "file"}},
    {"id": "ask-first", "name": "ask first", "effect": "require_approval",
     "conditions": {"item.kind": "code_diff"}},
    {"id": "mask-plans", "name": "mask plans", "effect": "redact",
     "conditions": {"item.kind": "plan"}},
]  # fmt: skip


def _text(draw: Random, *, most: int = 12) -> str:
    said: list[str] = []
    for _ in range(1 + _below(draw, most)):
        said.extend(_one(draw, _WORDS) for _ in range(3 + _below(draw, 12)))
        said[-1] += _one(draw, _ENDS)
    if _below(draw, 25) == 0:
        said.append(_SECRET)
    return " ".join(said)


def _time(draw: Random) -> str:
    return f"2026-03-0{1 + _below(draw, 3)}T{_below(draw, 24):02d}:{_below(draw, 60):02d}:00Z"


def _below(draw: Random, most: int) -> int:
    return int(draw.random() * most)


def _one(draw: Random, given: Sequence[_T]) -> _T:
    return given[_below(draw, len(given))]
