"""A store of a day of many agents, whose runs and memories claim things of their tools.

Each run is a root, tool calls, half of them of a shell, and model calls with answers of some 900
characters, of which every third claims something.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from hansard_collector.pipeline.embedded import open_embedded
from hansard_compiler.models.memory import Namespace, WriteMemory
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_store.memory.service import MemoryService

SPANS_OF_RUN: Final = 50
_SECOND: Final = 10**9
_CLAIMS: Final = (
    "All tests pass.", "I committed the change.", "The build succeeds.", "The deploy succeeded.",
    "Two tests still fail.", "I sent the email.", "The search tool is healthy.", "Lint is clean.",
)  # fmt: skip
_COMMANDS: Final = ("pytest -q", "git commit -am x", "make", "ls src", "cat a.py", "ruff check .")
_TOOLS: Final = ("search", "read_file", "send_email", "deploy", "run_tests")
_FACTS: Final = (
    "The search tool is healthy.", "send_email works.", "All tests pass.", "Money is Decimal.",
    "The deploy succeeded.", "Kim prefers short answers.", "CI runs Python 3.12.",
)  # fmt: skip


def fill(data: Path, *, runs: int, memories: int) -> None:
    """Fill a store with runs of the last hours and memory of the last day."""
    chance = random.Random(3)
    ingest = open_embedded(data, retention=RetentionMode.REDACTED_PAYLOADS, sender="bench")
    try:
        for number in range(runs):
            ingest.export("traces", _run(number, chance).SerializeToString())
    finally:
        ingest.close()
    book = MemoryService(DataFolder(data))
    for one in _records(memories, chance):
        book.write(one)
    book.close()


def _run(number: int, chance: random.Random) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    started = time.time_ns() - chance.randrange(2, 20 * 3_600) * _SECOND
    trace = (number + 1).to_bytes(16, "big")
    for at in range(SPANS_OF_RUN):
        made = scope.spans.add()
        made.trace_id, made.span_id = trace, (number * 100 + at + 1).to_bytes(8, "big")
        made.start_time_unix_nano = started + at * _SECOND
        made.end_time_unix_nano = started + at * _SECOND + _SECOND // 2
        if at == 0:
            made.name, attributes = "invoke_agent", {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": f"agent-{number % 7}",
            }  # fmt: skip
            made.end_time_unix_nano = started + SPANS_OF_RUN * _SECOND
        else:
            made.parent_span_id = (number * 100 + 1).to_bytes(8, "big")
            made.name, attributes = _step(at, chance)
            if chance.random() < 0.03:
                made.status.code = 2
                made.status.message = "connection refused"
        for key, value in attributes.items():
            made.attributes.append(KeyValue(key=key, value=AnyValue(string_value=value)))
    return request


def _step(at: int, chance: random.Random) -> tuple[str, dict[str, str]]:
    if at % 2:
        is_shell = chance.random() < 0.5
        tool = "bash" if is_shell else chance.choice(_TOOLS)
        arguments = {"command": chance.choice(_COMMANDS)} if is_shell else {"q": "light list"}
        result = {"stdout": "done", "exit_code": int(chance.random() < 0.2)} if is_shell else "ok"
        return f"execute_tool {tool}", {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.arguments": json.dumps(arguments),
            "gen_ai.tool.call.result": json.dumps(result),
        }
    words = " ".join(chance.choices(_VOCABULARY, k=120))
    claim = chance.choice(_CLAIMS) if chance.random() < 0.33 else ""
    text = f"I looked at {words[:450]}. {claim} Then {words[450:]}."
    message = {"role": "assistant", "parts": [{"type": "text", "content": text}]}
    return "chat scripted", {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "scripted",
        "gen_ai.output.messages": json.dumps([message]),
    }


def _records(count: int, chance: random.Random) -> Iterator[WriteMemory]:
    for number in range(count):
        yield WriteMemory(
            writer="app",
            memory_type="fact",
            subject=f"subject {number}",
            content=f"{chance.choice(_FACTS)} {' '.join(chance.choices(_VOCABULARY, k=12))}.",
            namespace=Namespace(project="bench", agent=f"agent-{number % 7}"),
        )


_VOCABULARY: Final = [
    f"{a}{b}" for a in ("mar", "sol", "ten", "vor", "lin", "pas", "tor") for b in
    ("ka", "ring", "ted", "sing", "le", "pass", "fail", "build", "ed", "mo", "ster", "test")
]  # fmt: skip
