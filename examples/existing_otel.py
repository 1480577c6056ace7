"""A program that has OpenTelemetry already, with a provider, a processor and a back end of its own.

Nothing but the endpoint: its own exporter sends to Hansard, which knows nothing of it.

    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 python examples/existing_otel.py

With the SDK: `hansard.init()` keeps the provider and adds to it. What went to the old back end
still does (here: one line a span on standard error); Hansard gets the same spans, and its own.

    python examples/existing_otel.py --hansard
"""

from __future__ import annotations

import json
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
)

import hansard

tracer = trace.get_tracer("examples.library")

STOCK = {"lamp": 3, "chair": 0}


@hansard.tool
def count_stock(item: str) -> int:
    """Count what is left. Without `hansard.init()` the decorator does nothing."""
    with tracer.start_as_current_span("SELECT stock", attributes={"db.system.name": "sqlite"}):
        return STOCK[item]


def answer(item: str) -> str:
    """Answer one question, reported as the GenAI conventions say."""
    with tracer.start_as_current_span(
        "invoke_agent stock",
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "stock"},
    ) as span:
        said = f"There are {count_stock(item)} left of: {item}."
        reply = {"role": "assistant", "parts": [{"type": "text", "content": said}]}
        span.set_attribute("gen_ai.output.messages", json.dumps([reply]))
        return said


def set_up_opentelemetry(*, own_back_end: bool) -> TracerProvider:
    """Set up as such programs do; Hansard is not mentioned here."""
    provider = TracerProvider(resource=Resource.create({"service.name": "stock"}))
    if own_back_end:
        printer = ConsoleSpanExporter(out=sys.stderr, formatter=lambda span: f"{span.name}\n")
        provider.add_span_processor(SimpleSpanProcessor(printer))
    else:
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


if __name__ == "__main__":
    with_hansard = "--hansard" in sys.argv
    provider = set_up_opentelemetry(own_back_end=with_hansard)
    if with_hansard:
        hansard.init()
    sys.stdout.write(answer("lamp") + "\n")
    provider.shutdown()  # sends what is still queued, Hansard's part too
