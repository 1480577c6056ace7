"""What an evaluation costs over a day of many agents: 100,000 spans and 10,000 memories.

Each run is a root, tool calls, half of them of a shell, and model calls with answers of some 900
characters, of which every third claims something. Measured as a command in a process of its own.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from bench import processes
from bench.figures import Figure, below
from hansard_collector.embedded import open_embedded
from hansard_compiler.memory_models import Namespace, WriteMemory
from hansard_compiler.retention import RetentionMode
from hansard_store.database import DataFolder
from hansard_store.memory_book import MemoryBook

_RUNS: Final = 2_000
_SPANS: Final = 50  # of a run
_MEMORIES: Final = 10_000
_SECOND: Final = 10**9
_FIRST_S, _SECOND_S, _MOST_MIB = 30, 2, 300
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


def run(*, runs: int = _RUNS, memories: int = _MEMORIES) -> list[Figure]:
    """Fill a store, evaluate it twice, and measure both."""
    with processes.folder() as data:
        fill(data, runs=runs, memories=memories)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        first_s, told = evaluated(data)
        peak = max(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, before) / 1024
        second_s, again = evaluated(data)
    note = f"{told['runs']:,} runs, {told['texts']:,} texts, {told['new']}"
    return [
        below(f"evaluation of {runs * _SPANS:,} spans, {memories:,} memories", first_s, "s",
              bar=_FIRST_S, note=note),
        below("its memory", peak, "MiB", bar=_MOST_MIB),
        below("again, with nothing new", second_s, "s", bar=_SECOND_S,
              note=f"{again['runs']} runs read, {again['seen_again']} contradictions counted"),
    ]  # fmt: skip


def evaluated(data: Path) -> tuple[float, dict[str, Any]]:
    """Evaluate a store by the command; return the seconds and what it printed."""
    begun = time.perf_counter()
    command = [*processes.HANSARD, "evaluate", "--json", "--data", str(data)]
    done = subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begun, json.loads(done.stdout)


def fill(data: Path, *, runs: int, memories: int) -> None:
    """Fill a store with runs of the last hours and memory of the last day."""
    chance = random.Random(3)
    ingest = open_embedded(data, retention=RetentionMode.REDACTED_PAYLOADS, sender="bench")
    try:
        for number in range(runs):
            ingest.export("traces", _run(number, chance).SerializeToString())
    finally:
        ingest.close()
    book = MemoryBook(DataFolder(data))
    for one in _records(memories, chance):
        book.write(one)
    book.close()


def _run(number: int, chance: random.Random) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    started = time.time_ns() - chance.randrange(2, 20 * 3_600) * _SECOND
    trace = (number + 1).to_bytes(16, "big")
    for at in range(_SPANS):
        made = scope.spans.add()
        made.trace_id, made.span_id = trace, (number * 100 + at + 1).to_bytes(8, "big")
        made.start_time_unix_nano = started + at * _SECOND
        made.end_time_unix_nano = started + at * _SECOND + _SECOND // 2
        if at == 0:
            made.name, attributes = "invoke_agent", {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": f"agent-{number % 7}",
            }  # fmt: skip
            made.end_time_unix_nano = started + _SPANS * _SECOND
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
