"""Traces as senders export them, put through the real pipeline: what the run page is tested on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.requests import Encoding, IngestRequest, RequestSender, Signal

SECOND = 1_000_000_000
SENDER = RequestSender("127.0.0.1:1", "test", "http")


def any_value(value: object) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[any_value(one) for one in value]))
    return AnyValue(string_value=str(value))


def pairs(attributes: Mapping[str, object]) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


class Trace:
    """One trace, built span by span; times are seconds after its start, an hour ago."""

    def __init__(
        self, trace_id: str, *, service: str = "mender", began_s_ago: float = 3600
    ) -> None:
        self.trace_id = trace_id
        self.start_ns = time.time_ns() - round(began_s_ago * SECOND)
        self.request = ExportTraceServiceRequest()
        resource = self.request.resource_spans.add()
        resource.resource.attributes.extend(pairs({"service.name": service}))
        self.scope: ScopeSpans = resource.scope_spans.add()

    def step(self, number: int) -> str:
        """Return the step id of a span."""
        return f"{self.trace_id}-{number:016x}"

    def span(
        self,
        number: int,
        parent: int | None,
        name: str,
        start_s: float = 0,
        duration_s: float | None = 1,
        *,
        failed: str | None = None,
        links: Sequence[tuple[str, int]] = (),
        **attributes: object,
    ) -> Span:
        """Add a span. Attribute names use `__` for the dot; `failed` adds an exception event."""
        span: Span = self.scope.spans.add()
        span.trace_id = bytes.fromhex(self.trace_id)
        span.span_id = number.to_bytes(8, "big")
        if parent is not None:
            span.parent_span_id = parent.to_bytes(8, "big")
        span.name = name
        span.start_time_unix_nano = self.start_ns + round(start_s * SECOND)
        if duration_s is not None:
            span.end_time_unix_nano = span.start_time_unix_nano + round(duration_s * SECOND)
        span.attributes.extend(
            pairs({key.replace("__", "."): value for key, value in attributes.items()})
        )
        if failed is not None:
            span.status.code = span.status.STATUS_CODE_ERROR
            span.status.message = failed
            event = span.events.add()
            event.name = "exception"
            event.time_unix_nano = span.end_time_unix_nano
            event.attributes.extend(
                pairs({"exception.type": "ValueError", "exception.message": failed})
            )
        for trace_id, to in links:
            link = span.links.add()
            link.trace_id, link.span_id = bytes.fromhex(trace_id), to.to_bytes(8, "big")
        return span

    def agent(
        self, number: int, parent: int | None = None, name: str = "mender", **more: Any
    ) -> Span:
        return self.span(
            number,
            parent,
            f"invoke_agent {name}",
            gen_ai__operation__name="invoke_agent",
            gen_ai__agent__name=name,
            **more,
        )

    def chat(
        self,
        number: int,
        parent: int | None,
        messages: Sequence[Mapping[str, Any]],
        answer: Mapping[str, Any] | None,
        start_s: float = 0,
        *,
        tokens: tuple[int, int] | None = (100, 10),
        model: str = "gpt-4o-mini",
        tools: Sequence[str] = (),
        **more: Any,
    ) -> Span:
        """Add a model call with its messages, in the form of the newest GenAI conventions."""
        attributes: dict[str, object] = {
            "gen_ai__operation__name": "chat",
            "gen_ai__provider__name": "openai",
            "gen_ai__request__model": model,
            "gen_ai__input__messages": json.dumps(list(messages)),
        }
        if answer is not None:
            attributes["gen_ai__output__messages"] = json.dumps([answer])
        if tokens is not None:
            attributes["gen_ai__usage__input_tokens"] = tokens[0]
            attributes["gen_ai__usage__output_tokens"] = tokens[1]
        if tools:
            definitions = [{"type": "function", "name": name, "parameters": {}} for name in tools]
            attributes["gen_ai__tool__definitions"] = json.dumps(definitions)
        return self.span(number, parent, f"chat {model}", start_s, **{**attributes, **more})

    def tool(
        self,
        number: int,
        parent: int | None,
        name: str,
        call_id: str,
        start_s: float = 0,
        duration_s: float | None = 0.05,
        *,
        result: object = None,
        **more: Any,
    ) -> Span:
        told: dict[str, Any] = {} if result is None else {"gen_ai__tool__call__result": result}
        return self.span(
            number,
            parent,
            f"execute_tool {name}",
            start_s,
            duration_s,
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name=name,
            gen_ai__tool__call__id=call_id,
            **told,
            **more,
        )

    def send(self, pipeline: Pipeline) -> Trace:
        """Export everything added so far and wait for the commit."""
        submit(pipeline, Signal.TRACES, self.request.SerializeToString())
        del self.scope.spans[:]
        return self

    def log(self, pipeline: Pipeline, number: int, text: str, *, at_s: float = 0) -> None:
        """Export a log record of one of the spans."""
        request = ExportLogsServiceRequest()
        record = request.resource_logs.add().scope_logs.add().log_records.add()
        record.time_unix_nano = self.start_ns + round(at_s * SECOND)
        record.trace_id = bytes.fromhex(self.trace_id)
        record.span_id = number.to_bytes(8, "big")
        record.severity_number = record.severity_number = 13
        record.body.string_value = text
        submit(pipeline, Signal.LOGS, request.SerializeToString())


def submit(pipeline: Pipeline, signal: Signal, body: bytes) -> None:
    request = IngestRequest(signal, Encoding.PROTOBUF, body, SENDER, time.time_ns())
    result = pipeline.submit(request).result(timeout=240)
    assert result.rejected == 0, result.message


def said(role: str, text: str) -> dict[str, Any]:
    """A message that is a text."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def asks(name: str, call_id: str, arguments: Mapping[str, Any], text: str = "") -> dict[str, Any]:
    """An assistant's message that asks for a tool."""
    call = {"type": "tool_call", "id": call_id, "name": name, "arguments": dict(arguments)}
    words = [{"type": "text", "content": text}] if text else []
    return {"role": "assistant", "parts": [*words, call], "finish_reason": "tool_call"}


def returns(call_id: str, result: object) -> dict[str, Any]:
    """A tool's message."""
    return {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": call_id, "result": result}],
    }


def tool_loop(trace_id: str = "a" * 32, *, clock: bool = False) -> Trace:
    """An agent that asks for a file twice, fails once, and answers.

    With `clock`, its system prompt carries the time and so changes with each call.
    """
    rules = "You are mender, a careful engineer. " * 60

    def system(turn: int) -> dict[str, Any]:
        return said("system", rules + (f"It is 13:58:0{turn}." if clock else ""))

    trace = Trace(trace_id)
    trace.agent(1, duration_s=12, gen_ai__conversation__id="c-1")
    history = [said("user", "Make the failing test pass.")]
    first = asks("read_file", "call_1", {"path": "money.py"}, "I will **look** first.")
    trace.chat(2, 1, [system(1), *history], first, 0.1, tokens=(1600, 20), tools=["read_file"])
    trace.tool(3, 1, "read_file", "call_1", 1.2, result="def round_half_up(value): ...")
    history += [first, returns("call_1", "def round_half_up(value): ...")]
    second = asks("apply_patch", "call_2", {"hunks": 2})
    trace.chat(4, 1, [system(2), *history], second, 2, tokens=(1700, 30), tools=["read_file"])
    trace.tool(5, 1, "apply_patch", "call_2", 3.2, failed="hunk 2 of 2 does not apply")
    history += [second, returns("call_2", "hunk 2 of 2 does not apply")]
    final = said("assistant", "It rounds half up now.")
    trace.chat(6, 1, [system(3), *history], final, 4, tokens=(1800, 40), tools=["read_file"])
    return trace
