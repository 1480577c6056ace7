"""Makers for compile tests: items, requests, ports, all real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.models import CompilationRequest, parse
from hansard_compiler.compile.ports import Ports
from hansard_compiler.redaction.redactor import Redactor

NOW = "2026-03-04T12:00:00Z"
KEY = b"a key for tests, and nothing else"


@dataclass(frozen=True, slots=True)
class Quarter:
    """A token for every four characters: easy to foresee in a test."""

    name: str = "quarter/1"

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4


def item(item_id: str, kind: str = "retrieval_doc", content: Any = None, **more: Any) -> Any:
    """Return the fields of a context item that came from a file."""
    return {
        "id": item_id,
        "kind": kind,
        "content": f"text of {item_id}" if content is None else content,
        "source_ref": {"source_type": "file", "uri": f"docs/{item_id}.md"},
        "created_at": NOW,
        **more,
    }


def request(items: Sequence[Any] = (), *, budget: int = 10_000, **more: Any) -> CompilationRequest:
    """Return a checked request."""
    return parse(CompilationRequest, request_data(items, budget=budget, **more))


def request_data(items: Sequence[Any] = (), *, budget: int = 10_000, **more: Any) -> Any:
    return {
        "request_id": "request-1",
        "run_id": "run-1",
        "step_id": "step-1",
        "provider": "local",
        "model": "test",
        "now": NOW,
        "token_budget": budget,
        "context_items": list(items),
        **more,
    }


def ports(**more: Any) -> Ports:
    """Return ports with a counter that is easy to foresee."""
    return Ports(**{"counter": Quarter(), "redactor": REDACTOR, **more})


REDACTOR = Redactor(KEY)


def compiled(items: Sequence[Any] = (), *, budget: int = 10_000, **more: Any) -> CompileResult:
    """Compile some items."""
    return compile_context(request(items, budget=budget, **more), ports())


def reasons(result: CompileResult) -> dict[str, str]:
    """Return the reason code of every item."""
    return {receipt.item_id: receipt.reason.value for receipt in result.receipts}
