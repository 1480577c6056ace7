"""The normal form of a step as bodies of the API (DESIGN §7)."""

from __future__ import annotations

from hansard_collector.derivation.stored_span import StepReading
from hansard_collector.dialects.engine.item_views import EventView, LogView
from hansard_compiler.calls import Call, CallError, Message, Tool, message_json
from hansard_web.api.values import Body, ns_text, plain, time_text

_MAX_NS = 1 << 63


def call_body(call: Call) -> Body:
    """Return a model call in the shape of DESIGN §7."""
    tokens, cost = call.tokens, call.cost
    return {
        "operation": call.operation,
        "provider": call.provider,
        "request_model": call.request_model,
        "response_model": call.response_model,
        "response_id": call.response_id,
        "stream": call.stream,
        "input": [message_body(message) for message in call.input],
        "input_is_delta": call.input_is_delta,
        "output": [message_body(message) for message in call.output],
        "tools": plain(call.tools),
        "parameters": plain(call.parameters),
        "finish_reason": call.finish_reason,
        "finish_reason_raw": call.finish_reason_raw,
        "tokens": {
            "input": tokens.input,
            "output": tokens.output,
            "cache_read": tokens.cache_read,
            "cache_write": tokens.cache_write,
            "cache_write_5m": tokens.cache_write_5m,
            "cache_write_1h": tokens.cache_write_1h,
            "reasoning": tokens.reasoning,
        },
        "cost": None
        if cost is None
        else {
            "usd": plain(cost.usd),
            "source": cost.source,
            "lines": [{"item": item, "usd": plain(usd)} for item, usd in cost.lines],
            "reported_usd": plain(cost.reported_usd),
        },
        "error": None if call.error is None else _error(call.error),
        "time_to_first_token_ms": plain(call.time_to_first_token_ms),
        "sources": dict(call.sources),
    }


def message_body(message: Message) -> Body:
    body: Body = plain(message_json(message))
    return {**body, "hash": message.hash.hex()}


def tool_body(tool: Tool) -> Body:
    return {
        "name": tool.name,
        "call_id": tool.call_id,
        "type": tool.type,
        "description": tool.description,
        "arguments": plain(tool.arguments),
        "result": plain(tool.result),
    }


def error_body(reading: StepReading, status: str) -> Body | None:
    """Return what went wrong: as the dialect tells it, else the message of the status."""
    error = reading.normal.error or (reading.normal.call and reading.normal.call.error)
    if error:
        return _error(error)
    if status != "error":
        return None
    message = reading.stored.message.status.message or None
    return {"type": None, "message": message, "http_status": None}


def _error(error: CallError) -> Body:
    return {"type": error.type, "message": error.message, "http_status": error.http_status}


def event_body(event: EventView) -> Body:
    """Return a span event."""
    return {
        "name": event.name,
        "time": _time(event.time_ns),
        "time_ns": ns_text(event.time_ns),
        "attributes": plain(event.attributes),
    }


def log_body(log: LogView) -> Body:
    """Return a log record that carries the step's ids."""
    return {
        "event_name": log.event_name or None,
        "time": _time(log.time_ns),
        "time_ns": ns_text(log.time_ns),
        "severity_number": log.severity_number,
        "severity_text": log.severity_text or None,
        "body": plain(log.body),
        "attributes": plain(log.attributes),
        "scope": log.scope_name,
        "resource": plain(log.resource),
    }


def _time(ns: int) -> str | None:
    # 0 is unknown; numbers no calendar holds are told as numbers only.
    return time_text(ns) if 0 < ns < _MAX_NS else None
