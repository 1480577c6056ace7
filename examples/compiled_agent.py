"""An agent whose context is compiled: what the model gets to see, and why, for every candidate.

    hansard serve &
    python examples/compiled_agent.py

No key is needed: the model answers from a script. Swap `adapter_for("scripted", …)` for
`adapter_for("anthropic")` or `adapter_for("openai")`, and `MODEL` for one of theirs.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hansard
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.scripted import read_script

MODEL = "scripted-1"
SCRIPT = {
    "hansard_script": 1,
    "model": MODEL,
    "answers": [
        {"when": {"answers_so_far": 0}, "call": [{"name": "find_order", "arguments": {"id": 7}}]},
        {"when": {"last_result_of": "find_order"}, "say": "Order 7 is in the post."},
    ],
}
RULES = [
    {
        "id": "desk.no-payroll",
        "name": "No payroll",
        "description": "the desk does not see what people earn",
        "effect": "deny",
        "applies_to": {"action": "see", "agent": "desk"},
        "conditions": {"item.tags": {"contains": "payroll"}},
        "metadata": {"version": "1"},
    }
]
TOOLS = [
    {
        "name": "find_order",
        "description": "Look an order up.",
        "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}},
    }
]
MEMORY = [
    {
        "id": "memory:tone",
        "memory_type": "preference",
        "subject": "tone",
        "content": "Answers are one sentence long.",
        "confidence": 0.9,
    }
]


def from_file(path: Path, **more: Any) -> dict[str, Any]:
    """A file as a candidate: where it is from, when it was written, what is in it."""
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return {
        "id": path.name,
        "kind": "file",
        "content": path.read_text(encoding="utf-8"),
        "source_ref": {"source_type": "file", "uri": str(path)},
        "created_at": written,
        **more,
    }


def candidates(folder: Path) -> list[Any]:
    """Everything that might help: most of it will not be sent."""
    instructions = {
        "id": "instructions",
        "kind": "system",
        "content": "You work at the desk. Look orders up before you answer.",
        "source_ref": {"source_type": "app_state"},
    }
    return [
        instructions,
        from_file(folder / "orders.md"),
        from_file(folder / "almanac.md"),
        from_file(folder / "payroll.md", tags=["payroll"]),
    ]


@hansard.tool
def find_order(id: int) -> str:
    """Look an order up."""
    return {7: "in the post"}.get(id, "unknown")


def answer(question: str, folder: Path) -> str:
    """Compile, ask, run the tools that the model asks for, and again until it says something."""
    adapter = adapter_for("scripted", AdapterSettings(script=read_script(_bytes(SCRIPT))))
    conversation: list[Any] = [{"role": "user", "content": question}]
    previous: hansard.CompiledStep | None = None
    with hansard.start_run("desk", "support", question) as run:
        while True:
            with run.step("turn"):
                previous = compiled = run.compile_step(
                    [*candidates(folder), *conversation],
                    model=MODEL,
                    provider=adapter,
                    token_budget=900,
                    response_reserve=200,
                    tools=TOOLS,
                    memory=MEMORY,
                    policy=RULES,
                    task_summary=question,
                    previous=previous,
                )
                said = run.call_model(compiled)
            if not said.tool_calls:
                _tell(compiled)
                run.end(output=said.text)
                return said.text
            conversation.append(said.message)
            for call in said.tool_calls:
                found = find_order(**call.arguments)
                conversation.append({"role": "tool", "tool_call_id": call.id, "content": found})


def _tell(compiled: hansard.CompiledStep) -> None:
    for name in ("orders.md", "almanac.md", "payroll.md", "memory:tone"):
        why = compiled.why(name)
        sys.stdout.write(f"{name}: {why.receipt.decision}, {why.receipt.reason_code}\n")


def _bytes(script: dict[str, Any]) -> bytes:
    return json.dumps(script).encode()


if __name__ == "__main__":
    hansard.init(service_name="desk")
    sys.stdout.write(answer("Where is order 7?", Path(__file__).parent / "desk") + "\n")
