"""What the demo's programs report: the stock OpenTelemetry SDK and the GenAI conventions.

Nothing here knows Hansard. The exporter and its address come from OpenTelemetry's own environment
names, as in any program that is instrumented already.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

SpanContextManager: TypeAlias = AbstractContextManager[Span]

_tracer = trace.get_tracer("demo.agents")


@contextmanager
def exporting() -> Iterator[None]:
    """Export spans while the block lasts; all of them are sent when it ends."""
    provider = TracerProvider()  # the service's name comes from OTEL_SERVICE_NAME
    provider.add_span_processor(BatchSpanProcessor(_exporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()


def _exporter() -> SpanExporter:
    if os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return Grpc()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

    return Http()


def agent_span(
    name: str, *, conversation_id: str | None, user_id: str | None, is_new_run: bool
) -> SpanContextManager:
    """Report an agent's work: a trace of its own, or a part of the one that called it."""
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        "gen_ai.conversation.id": conversation_id,
        "user.id": user_id,
    }
    context = trace.set_span_in_context(trace.INVALID_SPAN) if is_new_run else None
    return _tracer.start_as_current_span(
        f"invoke_agent {name}", context=context, attributes=_present(attributes)
    )


def model_span(
    request: Mapping[str, Any], *, provider: str, conversation_id: str | None
) -> SpanContextManager:
    """Report a model call with the whole request; `report_completion` adds the answer."""
    system = [m for m in request["messages"] if m["role"] == "system"]
    others = [m for m in request["messages"] if m["role"] != "system"]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": request["model"],
        "gen_ai.request.temperature": request["temperature"],
        "gen_ai.conversation.id": conversation_id,
        "gen_ai.system_instructions": to_json([_text(m["content"]) for m in system]),
        "gen_ai.input.messages": to_json([_message(m) for m in others]),
        "gen_ai.tool.definitions": to_json(
            [{"type": "function", **tool["function"]} for tool in request["tools"]]
        ),
    }
    return _tracer.start_as_current_span(
        f"chat {request['model']}", kind=SpanKind.CLIENT, attributes=_present(attributes)
    )


def report_completion(
    span: Span, id: str, model: str, message: Mapping[str, Any], tokens: Mapping[str, int]
) -> None:
    """Add a model's answer and its usage to the span of the call."""
    span.set_attributes(
        {
            "gen_ai.response.id": id,
            "gen_ai.response.model": model,
            "gen_ai.response.finish_reasons": ["tool_calls" if "tool_calls" in message else "stop"],
            "gen_ai.output.messages": to_json([_message(message)]),
            "gen_ai.usage.input_tokens": tokens["input"],
            "gen_ai.usage.output_tokens": tokens["output"],
            "gen_ai.usage.cache_read.input_tokens": tokens["cache_read"],
        }
    )


def tool_span(name: str, *, description: str, call_id: str, arguments: str) -> SpanContextManager:
    """Report a tool call; an error in the block is recorded and raised again."""
    return _tracer.start_as_current_span(
        f"execute_tool {name}",
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.description": description,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.call.arguments": arguments,
        },
    )


def client_span(name: str, attributes: Mapping[str, str]) -> SpanContextManager:
    """Report a request to another system, such as a search or a query of a database."""
    return _tracer.start_as_current_span(name, kind=SpanKind.CLIENT, attributes=attributes)


def report_error(span: Span, error: Exception) -> None:
    """Mark a span as failed and keep the exception on it."""
    span.set_attribute("error.type", type(error).__qualname__)
    span.record_exception(error)
    span.set_status(Status(StatusCode.ERROR, str(error)))


def trace_id_of(span: Span) -> str:
    """Return the trace's id as Hansard and every other viewer writes it."""
    return trace.format_trace_id(span.get_span_context().trace_id)


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of the chat API in the shape of the GenAI conventions."""
    if message["role"] == "tool":
        part = {
            "type": "tool_call_response",
            "id": message["tool_call_id"],
            "response": message["content"],
        }
        return {"role": "tool", "parts": [part]}
    parts = [_text(message["content"])] if message["content"] else []
    parts += [
        {
            "type": "tool_call",
            "id": call["id"],
            "name": call["function"]["name"],
            "arguments": json.loads(call["function"]["arguments"]),
        }
        for call in message.get("tool_calls", ())
    ]
    return {"role": message["role"], "parts": parts}


def _text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def to_json(value: object) -> str:
    """Return a value as attributes hold it."""
    return json.dumps(value, ensure_ascii=False)


def _present(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if value is not None}
