"""A model that answers from a file: deterministic, offline, without a key. For demos and tests.

```json
{"hansard_script": 1, "model": "scripted-1",
 "answers": [{"when": {"last_user_contains": "weather"},
              "call": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]},
             {"when": {"last_result_of": "get_weather"}, "say": "It rains in Oslo."}],
 "otherwise": {"say": "I have no line for this."}}
```

The first answer whose `when` holds is returned; `docs/providers.md` lists the conditions. Ids are
hashes of the request, tokens are counted by the offline estimator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hansard_compiler.calls import (
    Call,
    Json,
    Message,
    ToolCallPart,
    ToolResultPart,
    message_from_json,
    message_json,
)
from hansard_compiler.canonical import canonical_json, stable_hash
from hansard_compiler.errors import ConfigError
from hansard_compiler.providers.base import OnEvent, RenderInput
from hansard_compiler.providers.formats.fields import neutral_tool, result_text, tokens_from
from hansard_compiler.providers.formats.sse import event_bytes
from hansard_compiler.providers.transport import failures
from hansard_compiler.providers.transport.exchange import (
    Attempt,
    Exchange,
    note_exchange,
    note_sending,
)
from hansard_compiler.providers.transport.failures import CallFailed
from hansard_compiler.tokens.requests import counter_for

PROVIDER = "scripted"
_ANSWER_KEYS = {"when", "say", "think", "call", "finish", "tokens", "fail", "note"}
_FAILURES = {
    kind.code: kind
    for kind in vars(failures).values()
    if isinstance(kind, type) and issubclass(kind, CallFailed)
}
_USAGE = {
    "input": "usage.input",
    "output": "usage.output",
    "cache_read": "usage.cache_read",
    "cache_write": "usage.cache_write",
    "reasoning": "usage.reasoning",
}


class ScriptError(ConfigError):
    """A script that cannot be used as it is."""

    code = "invalid_script"


@dataclass(frozen=True, slots=True)
class Script:
    """The lines of a scripted model."""

    model: str
    answers: tuple[Json, ...]
    otherwise: Json

    def answer_to(self, request: Mapping[str, Any]) -> Json:
        """Return the first answer whose conditions all hold for a request."""
        for response in self.answers:
            when = response.get("when", {}).items()
            if all(_CONDITIONS[key](one, request, _messages(request)) for key, one in when):
                return response
        return self.otherwise


def read_script(data: bytes) -> Script:
    """Read a script from a file's bytes. Raises ScriptError with the place in it."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ScriptError(f"the script is not JSON: {error}") from None
    if not isinstance(value, Mapping) or value.get("hansard_script") != 1:
        raise ScriptError('a script is a mapping that begins with "hansard_script": 1')
    answers = value.get("answers", [])
    if not isinstance(answers, list):
        raise ScriptError("answers: expected a list")
    otherwise = value.get("otherwise", {"fail": "bad_request"})
    named = [*((f"answers[{i}]", one) for i, one in enumerate(answers)), ("otherwise", otherwise)]
    for where, response in named:
        _check(response, where)
    return Script(str(value.get("model", "scripted-1")), tuple(answers), otherwise)


def _check(response: Any, where: str) -> None:
    if not isinstance(response, Mapping) or not set(response) <= _ANSWER_KEYS:
        raise ScriptError(f"{where}: expected a mapping of {sorted(_ANSWER_KEYS)}")
    when = response.get("when", {})
    if not isinstance(when, Mapping) or not set(when) <= _CONDITIONS.keys():
        raise ScriptError(f"{where}.when: expected a mapping of {sorted(_CONDITIONS)}")
    if "fail" in response and response["fail"] not in _FAILURES:
        raise ScriptError(f"{where}.fail: expected one of {sorted(_FAILURES)}")
    calls = response.get("call", [])
    if not isinstance(calls, list) or not all(
        isinstance(call, Mapping) and isinstance(call.get("name"), str) for call in calls
    ):
        raise ScriptError(f"{where}.call: expected a list of calls with a name")


@dataclass(frozen=True, slots=True)
class ScriptedFormat:
    """The scripted model's own wire form: the normal form as JSON."""

    provider: str = PROVIDER
    path: str = "/scripted"

    def render(self, call: RenderInput) -> Json:
        system = [{"role": "system", "parts": [{"type": "text", "text": t}]} for t in call.system]
        body: Json = {
            "model": call.model,
            "messages": [*system, *(message_json(message) for message in call.messages)],
        }
        if call.tools:
            body["tools"] = list(call.tools)
        if call.stream:
            body["stream"] = True
        return {**body, **call.extra}

    def problems(self, rendered: Mapping[str, Any]) -> list[str]:
        return _problems(_messages(rendered))

    def parse(self, response: Mapping[str, Any], request: Mapping[str, Any]) -> Call:
        tokens, sources = tokens_from(response, _USAGE)
        return Call(
            operation="chat",
            provider=self.provider,
            request_model=request.get("model"),
            response_model=response.get("model"),
            stream=bool(request.get("stream")),
            output=tuple(message_from_json(one) for one in response.get("output", ())),
            finish_reason=response.get("finish_reason"),
            finish_reason_raw=response.get("finish_reason"),
            tokens=tokens,
            response_id=response.get("id"),
            sources=sources,
        )

    def join_stream(self, events: Sequence[Json]) -> Json | None:
        ends = [event["response"] for event in events if event.get("type") == "end"]
        return ends[-1] if ends else None

    def count_request(self, rendered: Mapping[str, Any]) -> tuple[str, Json] | None:
        return None

    def continuation(self, response: Mapping[str, Any]) -> Message:
        return message_from_json(response["output"][0])

    def notes(self, request: RenderInput) -> list[str]:
        return []


def _problems(messages: Sequence[Message]) -> list[str]:
    """One result for every call, after it."""
    called: set[str | None] = set()
    answered: set[str | None] = set()
    problems = []
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, ToolCallPart):
            called.add(part.id)
        elif isinstance(part, ToolResultPart):
            if part.id not in called or part.id in answered:
                problems.append(f"a result for {part.id!r}, which waits for none")
            answered.add(part.id)
    problems.extend(
        f"tool call {one!r} has no result" for one in sorted(map(str, called - answered))
    )
    return problems


class ScriptedWire:
    """Answers from a script in place of a network."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def post(
        self, path: str, body: bytes, *, stream: bool, on_event: OnEvent | None = None
    ) -> Exchange:
        """Answer a request; a line with `fail` raises that failure."""
        note_sending(path, body)
        request = json.loads(body)
        line = self._script.answer_to(request)
        if "fail" in line:
            attempt = Attempt(request=body, status=500, response=canonical_json(line).encode())
            exchange = Exchange(PROVIDER, path, body, stream, (attempt,))
            note_exchange(exchange)
            message = str(line.get("note", f"the script says {line['fail']}"))
            raise _FAILURES[line["fail"]](message, exchange=exchange)
        response = _response(self._script.model, line, request)
        if not stream:
            return _exchange(path, body, json.dumps(response, ensure_ascii=False).encode())
        events = [*_deltas(line), {"type": "end", "response": response}]
        sent: list[Json] = []
        try:
            for event in events:
                sent.append(event)
                if on_event is not None:
                    on_event(event)
        finally:  # also when the caller leaves the stream
            exchange = _exchange(path, body, b"".join(map(event_bytes, sent)), is_stream=True)
        return exchange

    def close(self) -> None:
        """There is nothing to close."""


def _exchange(path: str, body: bytes, response: bytes, *, is_stream: bool = False) -> Exchange:
    first = 0.0 if is_stream else None
    attempt = Attempt(request=body, status=200, response=response, first_chunk_ms=first)
    exchange = Exchange(PROVIDER, path, body, is_stream, (attempt,))
    note_exchange(exchange)
    return exchange


def _deltas(line: Json) -> list[Json]:
    words = str(line.get("say", "")).split(" ")
    return [
        {"type": "text", "text": word if index == 0 else f" {word}"}
        for index, word in enumerate(words)
        if word or index
    ]


def _response(model: str, line: Json, request: Mapping[str, Any]) -> Json:
    identity = stable_hash(request).hex()[:24]
    parts: list[Json] = []
    if "think" in line:
        parts.append({"type": "reasoning", "text": str(line["think"])})
    if "say" in line:
        parts.append({"type": "text", "text": str(line["say"])})
    for index, call in enumerate(line.get("call", ())):
        made = {"name": call["name"], "arguments": call.get("arguments", {})}
        parts.append({"type": "tool_call", "id": f"call_{identity}_{index}", **made})
    output = {"role": "assistant", "parts": parts}
    finish = line.get("finish") or ("tool_call" if line.get("call") else "stop")
    return {
        "id": f"scripted_{identity}",
        "model": model,
        "output": [output],
        "finish_reason": finish,
        "usage": {**_usage(request, output), **line.get("tokens", {})},
    }


def _usage(request: Mapping[str, Any], output: Json) -> Json:
    counter = counter_for(PROVIDER, str(request.get("model")))
    counted = counter.count_request(_messages(request), request.get("tools") or ())
    return {"input": counted.total, "output": counter.count_message(message_from_json(output))}


# --- conditions -------------------------------------------------------------------------------


def _messages(request: Mapping[str, Any]) -> list[Message]:
    return [message_from_json(message) for message in request.get("messages", ())]


def _has(text: str, expected: Any) -> bool:
    return str(expected).lower() in text.lower()


def _tool_names(request: Mapping[str, Any]) -> list[str]:
    tools = (neutral_tool(tool) for tool in request.get("tools") or ())
    return [tool.name for tool in tools if tool is not None]


def _last_user(messages: Sequence[Message]) -> str:
    texts = [message.text for message in messages if message.role == "user"]
    return texts[-1] if texts else ""


def _last_result(messages: Sequence[Message]) -> tuple[str | None, str]:
    """Return the name of the tool whose result ends the conversation, and the result's text."""
    parts = messages[-1].parts if messages else ()
    results = [part for part in parts if isinstance(part, ToolResultPart)]
    if not results:
        return None, ""
    last = results[-1]
    calls = (
        part for message in messages for part in message.parts if isinstance(part, ToolCallPart)
    )
    names = [call.name for call in calls if call.id == last.id]
    return last.name or (names[-1] if names else None), result_text(last.content)


# Each holds what a script expects against a request, and the messages in it.
_CONDITIONS: Mapping[str, Callable[[Any, Mapping[str, Any], Sequence[Message]], bool]] = {
    "last_user_contains": lambda one, _, said: _has(_last_user(said), one),
    "last_user_is": lambda one, _, said: bool(_last_user(said) == one),
    "any_contains": lambda one, request, _: _has(canonical_json(request.get("messages", [])), one),
    "last_result_of": lambda one, _, said: bool(_last_result(said)[0] == one),
    "last_result_contains": lambda one, _, said: _has(_last_result(said)[1], one),
    "answers_so_far": lambda one, _, said: bool(sum(m.role == "assistant" for m in said) == one),
    "has_tool": lambda one, request, _: one in _tool_names(request),
    "model": lambda one, request, _: bool(request.get("model") == one),
}
