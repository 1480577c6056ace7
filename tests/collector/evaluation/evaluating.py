"""A store with runs of agents and memory, evaluated for real."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.evaluation.engine import Evaluated, Evaluation
from hansard_collector.evaluation.settings import EvaluationRules, load_rules
from hansard_compiler.calls import Json
from hansard_compiler.models.memory import EndMemory
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.evaluation.verdicts import VerdictFilter, VerdictRow, list_verdicts
from hansard_store.memory.service import MemoryService
from tests.collector.ingesting import Ingesting, span, traces

SECOND = 10**9
START = 1_780_000_000 * SECOND


class Evaluating:
    """Sends runs, writes memory and evaluates, at times that the test gives in seconds."""

    def __init__(self, path: Path, *, retention: str = "redacted_payloads") -> None:
        self.ingesting = Ingesting(path, retention=retention)
        self.folder = self.ingesting.folder
        self.mode = RetentionMode(retention)
        self.now_ns = START
        self.book = MemoryService(self.folder, clock=lambda: self.now_ns)
        self.rules: EvaluationRules = load_rules()

    def close(self) -> None:
        self.book.close()
        self.ingesting.close()

    def run(
        self, trace: int, *steps: Span, at_s: int = 0, agent: str = "coder", talk: str | None = None
    ) -> str:
        """Send a run of an agent with these steps, each a second after the one before."""
        trace_id = trace.to_bytes(16, "big")
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent,
        }  # fmt: skip
        if talk is not None:
            attributes["gen_ai.conversation.id"] = talk
        root = span(999, name=f"invoke_agent {agent}", attributes=attributes)
        first = START + at_s * SECOND
        root.start_time_unix_nano = first
        root.end_time_unix_nano = first + (len(steps) + 1) * SECOND
        for number, one in enumerate(steps, start=1):
            one.parent_span_id = root.span_id
            one.start_time_unix_nano = first + number * SECOND
            if one.end_time_unix_nano:
                one.end_time_unix_nano = one.start_time_unix_nano + SECOND // 2
        for one in (root, *steps):
            one.trace_id = trace_id
        self.ingesting.send(traces((root, *steps)))
        return trace_id.hex()

    def remember(self, content: Any, *, subject: str, at_s: int = 0, **more: Any) -> Json:
        """Write a durable record of the project."""
        self.now_ns = START + at_s * SECOND
        told = {
            "writer": "app", "memory_type": "fact", "subject": subject,
            "namespace": {"project": "shop"}, "content": content, **more,
        }  # fmt: skip
        return self.book.write_json(told)["memory"]  # type: ignore[no-any-return]

    def read(self, **asked: Any) -> list[Json]:
        """Return what a read of the project answers."""
        told = {"namespace": {"project": "shop"}, **asked}
        return self.book.read_json(told)["items"]  # type: ignore[no-any-return]

    def purge(self, memory_id: str) -> None:
        """Remove a record's content."""
        self.book.purge(EndMemory(memory_id=memory_id, reason="it must go", by="kim"))

    def evaluate(self, *, at_s: int = 3_600, window_s: int = 86_400, **options: Any) -> Evaluated:
        """Evaluate the day before a time."""
        self.now_ns = START + at_s * SECOND
        evaluation = Evaluation(self.folder, self.rules, self.mode)
        since_ns = self.now_ns - window_s * SECOND
        return evaluation.run(now_ns=self.now_ns, since_ns=since_ns, **options)

    def verdicts(self, **wanted: Any) -> list[VerdictRow]:
        """Return stored verdicts in the order of what was said."""
        found = list_verdicts(self.ingesting.db, VerdictFilter(**wanted), limit=200).items
        return sorted(found, key=lambda one: one.claimed_ns)


def tool(
    name: str,
    number: int,
    *,
    arguments: Any = None,
    result: Any = "ok",
    error: str | None = None,
    is_open: bool = False,
) -> Span:
    """Return the span of a tool call."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = json.dumps(arguments)
    if result is not None:
        text = result if isinstance(result, str) else json.dumps(result)
        attributes["gen_ai.tool.call.result"] = text
    made = span(number, name=f"execute_tool {name}", attributes=attributes)
    if error is not None:
        made.status.code = 2  # type: ignore[assignment]  # enum by number
        made.status.message = error
    if is_open:
        made.end_time_unix_nano = 0
    return made


def says(text: str, number: int, *, calls: Sequence[Json] = ()) -> Span:
    """Return the span of a model call that answers with a text."""
    parts = [{"type": "text", "content": text}] if text else []
    message = {"role": "assistant", "parts": [*parts, *calls], "finish_reason": "stop"}
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "scripted",
        "gen_ai.output.messages": json.dumps([message]),
    }
    return span(number, name="chat scripted", attributes=attributes)
