"""Makers of model calls as several instrumentations report them, and of what a store counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.collector.ingesting import TRACE, Ingesting, span, traces

CLIENT = "hansard"  # the scope of the recorded client
TOKENS = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20}
Scoped = tuple[str, Span]  # a span behind the scope of its instrumentation


def call(
    number: int,
    parent: int = 0,
    *,
    scope: str,
    start_s: float,
    duration_s: float = 1,
    trace_id: bytes = TRACE,
    model: str = "gpt-4o-mini",
    response_id: str | None = None,
    attributes: Mapping[str, Any] = TOKENS,
) -> Scoped:
    """Return a model call as one instrumentation reports it."""
    all_of_it = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model, **attributes}
    if response_id is not None:
        all_of_it["gen_ai.response.id"] = response_id
    if scope == CLIENT:
        all_of_it["hansard.schema_version"] = 1
    return scope, span(
        number, parent, trace_id=trace_id, start_s=start_s, duration_s=duration_s,
        attributes=all_of_it,
    )  # fmt: skip


def send(ingesting: Ingesting, spans: Sequence[Scoped], *, service: str = "svc") -> None:
    """Send each span in a request of its own."""
    for scope, one in spans:
        ingesting.send(traces([one], scope=scope, service=service))


def counted(ingesting: Ingesting, trace_id: bytes | None = None) -> tuple[int, int | None]:
    """Return model calls and input tokens, of one run or of all together."""
    sql = "SELECT sum(model_calls), sum(tokens_input) FROM run WHERE trace_id = ifnull(?, trace_id)"
    found: tuple[int, int | None] = ingesting.one(sql, trace_id)
    return found
