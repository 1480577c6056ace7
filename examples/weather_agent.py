"""A small agent, instrumented with the stock OpenTelemetry SDK. Nothing here knows Hansard.

    pip install opentelemetry-sdk opentelemetry-exporter-otlp
    export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318
    python examples/weather_agent.py Lisbon

The "model" is a function, so that no key is needed; its span is what a real call would send.
"""

from __future__ import annotations

import json
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

tracer = trace.get_tracer("examples.weather")

MODEL = "gpt-4o-mini"
WEATHER = {"Lisbon": "sunny, 24 degrees", "Oslo": "snow, -3 degrees"}


def answer(question: str, city: str) -> str:
    """Ask the model, run the tool it wants, ask again."""
    with tracer.start_as_current_span(
        "invoke_agent weather",
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather"},
    ):
        messages = [say("user", question)]
        messages.append(call_model(messages, city))
        messages.append(call_tool(messages[-1]["parts"][0]))
        return str(call_model(messages, city)["parts"][0]["content"])


def call_model(messages: list[dict], city: str) -> dict:
    """Answer from what the messages hold, and report it as a chat span."""
    with tracer.start_as_current_span(
        f"chat {MODEL}",
        kind=trace.SpanKind.CLIENT,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": MODEL,
            "gen_ai.input.messages": json.dumps(messages),
        },
    ) as span:
        if messages[-1]["role"] == "tool":
            reply = say("assistant", f"In {city} it is {messages[-1]['parts'][0]['response']}.")
        else:
            wish = {"id": "call_1", "name": "get_weather", "arguments": {"city": city}}
            reply = {"role": "assistant", "parts": [{"type": "tool_call", **wish}]}
        span.set_attribute("gen_ai.output.messages", json.dumps([reply]))
        span.set_attribute("gen_ai.usage.input_tokens", len(json.dumps(messages)) // 4)
        span.set_attribute("gen_ai.usage.output_tokens", len(json.dumps(reply)) // 4)
    return reply


def call_tool(call: dict) -> dict:
    """Look the weather up, and report it as a tool span."""
    with tracer.start_as_current_span(
        "execute_tool get_weather",
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": call["id"],
            "gen_ai.tool.call.arguments": json.dumps(call["arguments"]),
        },
    ) as span:
        found = WEATHER.get(call["arguments"]["city"], "unknown")
        span.set_attribute("gen_ai.tool.call.result", found)
    answered = {"type": "tool_call_response", "id": call["id"], "response": found}
    return {"role": "tool", "parts": [answered]}


def say(role: str, text: str) -> dict:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


if __name__ == "__main__":
    city = sys.argv[1] if len(sys.argv) > 1 else "Lisbon"
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    sys.stdout.write(answer(f"What is the weather in {city}?", city) + "\n")
    provider.shutdown()  # sends what is still queued
