"""Comparing: 5,000 steps against 5,000, two compiles of 1,000 items, texts of 20 MB.

Processor time, medians of three. The hard inputs are those that make simple methods quadratic.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench.compile import compile_of
from bench.figures import Figure, below
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import Encoding, IngestRequest, RequestSender, Signal
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.models import CompilationRequest
from hansard_compiler.diff import (
    StepMark,
    align_steps,
    compile_diff,
    explain,
    side_of_result,
    text_diff,
)
from hansard_compiler.redaction.redactor import Redactor
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.steps.queries import get_tree
from hansard_web.diff.runs import compare_runs

_STEPS = 5_000
_CALLS = 3
_LIKELY = "one in 20 differs"
_SENDER = RequestSender("127.0.0.1:4000", "bench/1.0", "grpc")
_NAMES = ("chat", "read_file", "run_tests", "apply_patch", "search_code")


def run() -> list[Figure]:
    """Lay runs, compiles and texts side by side."""
    hard = max((_aligning(*sides), name) for name, sides in _hard().items())
    left, right = (compile_of(1_000, share=share) for share in (10, 8))
    one, other = side_of_result(left), side_of_result(right)
    ports = left.state.ports

    def again(request: CompilationRequest) -> CompileResult:
        return compile_context(request, ports)

    diff = compile_diff(one, other)
    flips = sum(item.is_flip for item in diff.items)
    explained = _median(lambda: explain(diff, one, other, compile_again=again, most_compiles=12))
    text = " ".join(str(random.Random(1).randrange(10**6)) for _ in range(100)) * 29_000
    changed = text[: len(text) // 2] + " a word " + text[len(text) // 2 :]
    return [
        below("5,000 against 5,000 steps", _aligning(*_likely()), "s", bar=1, note=_LIKELY),
        below("the same, the hardest input", hard[0], "s", bar=1, note=hard[1]),
        below("two stored runs of 5,000 steps", _reading(), "s", bar=1, note="read as well"),
        Figure("two compiles of 1,000 items", _median(lambda: compile_diff(one, other)), "s"),
        Figure(
            "the cause of each flip", explained, "s", note=f"{flips} flips, 12 compiles at most"
        ),
        Figure("two texts of 20 MB", _median(lambda: text_diff(text, changed)), "s"),
    ]


def _median(call: Callable[[], object]) -> float:
    def once() -> float:
        began = time.process_time()
        call()
        return time.process_time() - began

    return median(once() for _ in range(_CALLS))


def _aligning(left: list[StepMark], right: list[StepMark]) -> float:
    return _median(lambda: align_steps(left, right))


def _likely() -> tuple[list[StepMark], list[StepMark]]:
    """Two runs of one agent: few names, most contents equal, some steps more and some less."""
    draw = random.Random(3)
    left = [_mark(draw.choice(_NAMES), str(draw.randrange(2_000))) for _ in range(_STEPS)]
    right = []
    for mark in left:
        luck = draw.random()
        if luck < 0.02:
            continue
        if luck < 0.04:
            right.append(_mark(draw.choice(_NAMES), "new"))
        right.append(mark._replace(content="other") if luck > 0.99 else mark)
    return left, right


def _hard() -> dict[str, tuple[list[StepMark], list[StepMark]]]:
    draw = random.Random(5)
    names = [str(number) for number in range(_STEPS)]
    shuffled = draw.sample(names, _STEPS)
    pairs = {
        "one name everywhere": (["x"] * _STEPS, ["x"] * (_STEPS - 1)),
        "reversed": (names, names[::-1]),
        "one in front": (names, ["new", *names]),
        "shuffled": (names, shuffled),
        "two names at random": (
            [draw.choice("ab") for _ in names],
            [draw.choice("ab") for _ in names],
        ),
        "a hundred names at random": (
            [str(draw.randrange(100)) for _ in names],
            [str(draw.randrange(100)) for _ in names],
        ),
        "3,000 names at random": (
            [str(draw.randrange(3_000)) for _ in names],
            [str(draw.randrange(3_000)) for _ in names],
        ),
        "nothing shared": (names, [f"other {name}" for name in names]),
    }
    return {
        name: ([_mark(one, "a") for one in left], [_mark(one, "b") for one in right])
        for name, (left, right) in pairs.items()
    }


def _mark(name: str, content: str) -> StepMark:
    return StepMark("tool", name, content)


def _reading() -> float:
    with tempfile.TemporaryDirectory() as path:
        folder = DataFolder(Path(path))
        runs = [number.to_bytes(16, "big") for number in (1, 2)]
        folder.create()
        pipeline = Pipeline(folder, RetentionPolicy("full_payloads", Redactor(folder.key())))
        pipeline.start()
        for run in runs:
            asked = IngestRequest(
                Signal.TRACES, Encoding.PROTOBUF, _export(run), _SENDER, time.time_ns()
            )
            pipeline.submit(asked).result(120)
        pipeline.close()
        connection = open_reader(folder)
        try:
            return _median(
                lambda: compare_runs(
                    connection, runs[0].hex(), runs[1].hex(), trees=get_tree, now_ns=time.time_ns()
                )
            )
        finally:
            connection.close()


def _export(trace_id: bytes) -> bytes:
    """Return a run of 5,000 tool steps; one in twenty answers differently in each run."""
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    draw = random.Random(7)
    other = random.Random(trace_id)
    for number in range(1, _STEPS + 1):
        span = spans.add()
        span.trace_id, span.span_id = trace_id, number.to_bytes(8, "big")
        if number > 1:
            span.parent_span_id = (1).to_bytes(8, "big")
        span.name = draw.choice(_NAMES)
        span.start_time_unix_nano = 1_780_000_000 * 10**9 + number * 1_000_000
        span.end_time_unix_nano = span.start_time_unix_nano + 500_000
        said = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": span.name,
            "gen_ai.tool.call.arguments": f'{{"number": {draw.randrange(1_000)}}}',
            "gen_ai.tool.call.result": "another" if other.random() < 0.05 else "the same",
        }
        for key, value in said.items():
            attribute = span.attributes.add()
            attribute.key, attribute.value.string_value = key, value
    return bytes(request.SerializeToString())
