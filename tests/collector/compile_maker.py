"""Compile spans as a program sends them: a real compile, told through the stock OTel SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hansard_compiler.canonical import canonical_bytes
from hansard_compiler.compile.engine import CompileResult
from hansard_compiler.compile.passes.layout import STABLE, VOLATILE
from tests.collector.ingesting import Ingesting, logs
from tests.collector.payload_maker import record, ref_of
from tests.compiler.compiling import compiled, item

ASKED = item("ask", "user_msg", "Why is the total off by a cent?",
             source_ref={"source_type": "user"})  # fmt: skip


def candidates(number: int, *, words: int = 30) -> list[Any]:
    """Return some files, of which only the first fit a small budget, and a question."""
    made = [
        item(
            f"file-{at}",
            "file",
            f"line {at} of money " * words,
            source_ref={"source_type": "file", "uri": f"src/money_{at}.py"},
            importance_score=round(1 - at / max(number, 1), 3),
        )
        for at in range(number)
    ]
    return [*made, ASKED]


def compiled_files(number: int = 12, *, budget: int = 800, **more: Any) -> CompileResult:
    """Compile files of which some do not fit."""
    return compiled(candidates(number), budget=budget, **more)


@dataclass
class Told:
    """A compile, and all that a program sends of it."""

    result: CompileResult
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def request_bytes(self) -> bytes:
        return canonical_bytes(self.result.request.model_dump(mode="json"))

    @property
    def result_bytes(self) -> bytes:
        return canonical_bytes(self.result.context().model_dump(mode="json"))

    def attributes(self) -> dict[str, Any]:
        result, allocation = self.result, self.result.token_allocation
        return {
            "hansard.schema_version": "1",
            "hansard.compilation.id": result.id,
            "hansard.compilation.hash": result.compile_hash,
            "hansard.compilation.stable_prefix_hash": result.section(STABLE).hash,
            "hansard.compilation.volatile_suffix_hash": result.section(VOLATILE).hash,
            "hansard.compilation.budget.tokens": allocation["budget"],
            "hansard.compilation.budget.reserve": allocation["reserve"],
            "hansard.compilation.budget.used": allocation["used"],
            "hansard.compilation.provider": result.request.provider,
            "hansard.compilation.model": result.request.model,
            "hansard.compilation.counter": allocation["counter"],
            "hansard.compilation.request_ref": ref_of(self.request_bytes),
            "hansard.compilation.result_ref": ref_of(self.result_bytes),
            **result.columns(),
            **self.extra,
        }

    def payloads(self) -> list[bytes]:
        """Return request, result and every content that receipts refer to."""
        return [self.request_bytes, self.result_bytes, *self.result.payloads().values()]


@dataclass(frozen=True)
class Sent:
    """What a program sent: a step, a compile below it, the call that used it."""

    request: ExportTraceServiceRequest
    run_id: str
    step_id: str  # of the compile
    parent_id: str
    call_id: str


def spans_of(*attributes: Mapping[str, Any], agent: str = "mender") -> Sent:
    """Return one run with a step and, below it, a compile span for each of these attributes."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("a.program")
    ids: dict[str, str] = {}
    with tracer.start_as_current_span(
        f"invoke_agent {agent}", attributes={"gen_ai.operation.name": "invoke_agent"}
    ) as root:
        for columns in attributes:
            with tracer.start_as_current_span("hansard.compile") as span:
                span.set_attributes(dict(columns))
            ids["compile"] = _step_id(span)
        call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"}
        named = attributes[-1].get("hansard.compilation.id") if attributes else None
        with tracer.start_as_current_span("chat gpt-4o-mini", attributes=call) as span:
            if named is not None:
                span.set_attribute("hansard.compilation.id", named)
        ids["call"] = _step_id(span)
    found = encode_spans(exporter.get_finished_spans())
    request = ExportTraceServiceRequest.FromString(found.SerializeToString())
    return Sent(request, f"{root.get_span_context().trace_id:032x}", ids.get("compile", ""),
                _step_id(root), ids["call"])  # fmt: skip


def _step_id(span: Any) -> str:
    context = span.get_span_context()
    return f"{context.trace_id:032x}-{context.span_id:016x}"


def tell(ingesting: Ingesting, told: Told, *, payloads: bool = True, agent: str = "mender") -> Sent:
    """Send a compile as the SDK does: payloads first, then spans."""
    if payloads:
        send_payloads(ingesting, told.payloads())
    sent = spans_of(told.attributes(), agent=agent)
    ingesting.send(sent.request)
    return sent


def send_payloads(ingesting: Ingesting, payloads: Sequence[bytes]) -> None:
    ingesting.send(logs([record(data) for data in payloads]))
