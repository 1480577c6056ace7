"""An example for each route of the JSON API; without one, a route gets what its schema needs."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

RUN: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
STEP: Final = f"{RUN}-00f067aa0ba902b7"
LONG_ID: Final = "0af7651916cd43dd8448eb211c80319c"

# What stands for a parameter of a path.
PATHS: Final = {
    "run_id": RUN,
    "step_id": STEP,
    "left": STEP,
    "right": f"{RUN}-b7ad6b7169203331",
    "ref": f"sha256:{'9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'}",
    "number": "1",
    "conversation_id": "support-42",
    "log_id": f"conv_{LONG_ID}",
    "branch_id": f"br_{LONG_ID}",
    "annotation_id": LONG_ID,
    "task_id": LONG_ID,
    "key": "agent",
    "name": "REPORT-20261125T224606Z",
    "user_id": "ana@example.com",
}
OTHER_PATHS: Final = {  # where the name alone does not say which
    "/v1/diff/runs/{left}/{right}": {"left": RUN, "right": LONG_ID},
    "/v1/diff/saved/{left}/{right}": {"left": RUN, "right": LONG_ID},
    "/v1/transcripts/{conversation_id}/stats": {"conversation_id": f"conv_{LONG_ID}"},
}

QUERIES: Final = {
    "/v1/runs": "status=error&since=2025-01-01T00:00:00Z",
    "/v1/search": "q=refund",
    "/v1/sql": "q=SELECT+name,status+FROM+runs",
    "/v1/usage": "by=model",
    "/v1/overview": "since=7d&by=agent",
    "/v1/latency": "by=tool",
    "/v1/receipts": "source=docs/orders.md&reason=over_budget",
    "/v1/memory": "project=shop",
    "/v1/approvals": "status=awaiting",
    "/v1/tasks": "state=open&level=action",
    "/v1/annotations": "kind=score&name=correctness",
    "/v1/annotations/export": "tag=golden&score=correctness%3E%3D0.8",
    "/v1/runs/{run_id}/export": "format=otlp-json",
    "/v1/transcripts/{log_id}/cost": "provider=openai&model=gpt-4o&window_tokens=128000",
}

_TOOL: Final = {"name": "refund", "effect": "write", "arguments": {"order": 7}}
_MESSAGES: Final = [{"role": "user", "content": "Refund order 7, please."}]
_ASKED: Final = [{"role": "user", "parts": [{"type": "text", "text": "Refund order 7, please."}]}]

BODIES: Final[dict[str, Json]] = {
    "POST /v1/errors/{error_id}/decide": {"decision": "close", "note": "Fixed in 1.4."},
    "POST /v1/runs/start": {"agent_name": "clerk", "user_goal": "Refund order 7"},
    "POST /v1/runs/{run_id}/steps": {"name": "answer", "inputs": _MESSAGES},
    "POST /v1/runs/{run_id}/end": {"output": "Refunded."},
    "POST /v1/tools/call": {
        "run_id": RUN, "name": "find_order", "call_id": "c1", "arguments": {"id": 7},
    },
    "POST /v1/tools/result": {"run_id": RUN, "call_id": "c1", "result": {"total": 12}},
    "POST /v1/compile": {
        "run_id": RUN, "step_id": STEP, "provider": "scripted", "model": "scripted-1",
        "token_budget": 2000, "response_reserve": 200,
    },
    "POST /v1/model/call": {
        "run_id": RUN, "provider": "scripted", "model": "scripted-1", "messages": _ASKED,
        "script": {"hansard_script": 1, "otherwise": {"say": "Refunded."}},
    },
    "POST /v1/policy/check": {"context": {"agent": "clerk"}, "tool": _TOOL},
    "POST /v1/policy/explain": {
        "context": {"agent": "support"}, "item": {"id": "k", "sensitivity": "secret"},
    },
    "PUT /v1/policy/rules": {"rule_sets": ["shipped:support-agent"], "version": 0},
    "POST /v1/approvals": {
        "tool": "refund", "arguments": {"order": 7, "total": 12}, "agent": "clerk",
        "description": "Refund order 7",
    },
    "POST /v1/approvals/{approval_id}/approve": {"by": "kim"},
    "POST /v1/approvals/{approval_id}/reject": {"by": "kim", "reason": "not this order"},
    "POST /v1/approvals/{approval_id}/revise": {"by": "kim", "note": "only half of it"},
    "POST /v1/approvals/{approval_id}/repropose": {"arguments": {"order": 7, "total": 6}},
    "POST /v1/approvals/{approval_id}/claim": {"arguments": {"order": 7, "total": 6}},
    "POST /v1/approvals/{approval_id}/result": {"claim_id": LONG_ID, "ok": True},
    "POST /v1/approvals/{approval_id}/settle": {
        "by": "kim", "outcome": "did_not_run", "note": "the outbox is empty",
    },
    "POST /v1/approvals/{approval_id}/undo": {"by": "kim"},
    "POST /v1/events": {"type": "tool.called", "tool": "find_order", "agent": "clerk"},
    "POST /v1/memory/write": {
        "writer": "app", "memory_type": "fact", "subject": "order 7", "attribute": "state",
        "content": "It was refunded.", "namespace": {"project": "shop"},
    },
    "POST /v1/memory/read": {"namespace": {"project": "shop"}, "text": "refund"},
    "POST /v1/memory/invalidate": {"memory_id": LONG_ID, "reason": "it was not", "by": "kim"},
    "POST /v1/memory/invalidate/approved": {
        "memory_id": LONG_ID, "reason": "it was not", "approval_id": LONG_ID, "claim_id": LONG_ID,
    },
    "POST /v1/memory/accept": {"memory_id": LONG_ID, "by": "kim"},
    "POST /v1/memory/unsupersede": {"memory_id": LONG_ID, "reason": "both hold", "by": "kim"},
    "POST /v1/memory/purge": {"memory_id": LONG_ID, "reason": "asked to", "by": "kim"},
    "POST /v1/tasks/{task_id}/decide": {
        "decision": "approve", "note": "the fixture is missing", "by": "kim",
    },
    "POST /v1/annotations": {
        "step_id": STEP, "kind": "score", "name": "correctness",
        "score": {"value": 0.4, "label": "fail"}, "explanation": "the total is of another order",
        "expected": "Order 7 was refunded: EUR 12.", "by": "kim",
    },
    "POST /v1/annotations/{annotation_id}/withdraw": {"reason": "of another run", "by": "kim"},
    "POST /v1/scores": {
        "step_id": STEP, "name": "relevance", "score": {"value": 0.8}, "source": "llm",
        "by": "judge-3",
    },
    "POST /v1/transcripts": {"conversation": "support-42"},
    "POST /v1/transcripts/{log_id}": {
        "messages": [{"message": {"role": "user", "content": "Refund order 7, please."}}],
    },
    "POST /v1/transcripts/{log_id}/fold": {"summary": "Order 7 was refunded."},
    "POST /v1/transcripts/{log_id}/redactions": {"position": 0, "reason": "a card number"},
    "POST /v1/transcripts/{log_id}/check": {"summary": "Order 7 was refunded."},
    "POST /v1/transcripts/{log_id}/branches": {"name": "researcher"},
    "POST /v1/transcripts/{branch_id}/end": {"status": "done"},
    "POST /v1/replay": {
        "step_id": STEP, "mutations": [{"op": "remove_item", "item_id": "orders"}], "wait_s": 20,
    },
    "POST /v1/replay/preview": {"step_id": STEP},
}  # fmt: skip
