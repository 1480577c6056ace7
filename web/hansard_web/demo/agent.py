"""A small agent: a loop of model calls and tools. It is the program that is being watched."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from hansard_web.demo import telemetry

_MOST_TURNS = 8
_CHARACTERS_PER_TOKEN = 4
_MESSAGE_OVERHEAD_TOKENS = 4


class ModelError(Exception):
    """The model refused a request."""


# A model that answers from a file: no key, no network.


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model does when a user text holds `when` and so many tools have answered since."""

    when: str
    after_tools: int
    text: str = ""
    tool_calls: Sequence[Mapping[str, Any]] = ()
    delay_ms: int = 0
    fail_status: int = 0  # an HTTP error instead of an answer


def load_script() -> list[Reply]:
    """Return the replies of script.json, in order; the first that fits is sent."""
    source = files("hansard_web.demo").joinpath("script.json").read_text(encoding="utf-8")
    return [Reply(**entry) for entry in json.loads(source)]


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer of the model, its message as chat APIs write one."""

    id: str
    message: dict[str, Any]
    tokens: Mapping[str, int]  # input, output, cache_read


@dataclass
class ScriptedModel:
    """Chooses replies and counts tokens.

    Stateless but for its prompt cache, which works as the real ones do: what an earlier request
    began with is read from the cache, message by message, up to the first one that differs.
    """

    script: Sequence[Reply] = field(default_factory=load_script)
    _cache: set[bytes] = field(default_factory=set)

    def complete(self, request: Mapping[str, Any]) -> Completion:
        """Answer a request; raises ModelError."""
        reply = self._find_reply(request["messages"])
        if reply is None:
            raise ModelError("HTTP 400: the script has no reply to this")
        time.sleep(reply.delay_ms / 1000)  # a model thinks; the waterfall should show it
        if reply.fail_status:
            raise ModelError(f"HTTP {reply.fail_status}: {reply.text}")
        identity = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:20]
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.tool_calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{identity}{number}",
                    "type": "function",
                    "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
                }
                for number, call in enumerate(reply.tool_calls)
            ]
        tokens = {
            "input": _count_tokens(request["messages"]),
            "output": _count_tokens([message]),
            "cache_read": self._count_cached(request["model"], request["messages"]),
        }
        return Completion(f"chatcmpl-{identity}", message, tokens)

    def _find_reply(self, messages: Sequence[Mapping[str, Any]]) -> Reply | None:
        """Return the reply to the last user message, given what tools have answered since."""
        last = max(i for i, message in enumerate(messages) if message["role"] == "user")
        answered = sum(message["role"] == "tool" for message in messages[last:])
        prompt = messages[last]["content"]
        fitting = (r for r in self.script if r.when in prompt and r.after_tools == answered)
        return next(fitting, None)

    def _count_cached(self, model: str, messages: Sequence[Mapping[str, Any]]) -> int:
        """Return how many input tokens an earlier request had sent, and remember these."""
        cached, is_hit = 0, True
        digest = hashlib.sha256(model.encode())
        for message in messages:
            digest.update(json.dumps(message, sort_keys=True).encode())
            key = digest.digest()
            is_hit = is_hit and key in self._cache
            cached += _count_tokens([message]) if is_hit else 0
            self._cache.add(key)
        return cached


def _count_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return about how many tokens messages have: four characters each."""
    characters = sum(len(json.dumps(message, ensure_ascii=False)) for message in messages)
    return characters // _CHARACTERS_PER_TOKEN + _MESSAGE_OVERHEAD_TOKENS * len(messages)


@dataclass(frozen=True, slots=True)
class DemoTool:
    """A function that a model may call, with the schema that it is sent."""

    name: str
    description: str
    parameters: Mapping[str, str]  # name -> what it is; all are strings
    run: Callable[[Mapping[str, str], DemoReport], str]

    def definition(self) -> dict[str, Any]:
        """Return the tool as the chat API wants it declared."""
        properties = {
            name: {"type": "string", "description": text} for name, text in self.parameters.items()
        }
        schema = {"type": "object", "properties": properties, "required": list(self.parameters)}
        described = {"name": self.name, "description": self.description, "parameters": schema}
        return {"type": "function", "function": described}


@dataclass(slots=True)
class DemoReport:
    """What one run did, counted by the program itself: the demo compares it with the store."""

    run_id: str
    agent: str
    conversation_id: str | None
    status: str = "ok"
    model_calls: int = 0
    tool_calls: int = 0
    tokens: dict[str, int] = field(
        default_factory=lambda: {"input": 0, "output": 0, "cache_read": 0}
    )


@dataclass(frozen=True, slots=True)
class DemoAgent:
    """Instructions, a model and tools."""

    name: str
    instructions: str
    model: str
    provider: str
    scripted: ScriptedModel
    tools: Sequence[DemoTool] = ()

    def answer(
        self,
        history: list[dict[str, Any]],
        *,
        conversation_id: str | None = None,
        user_id: str | None = None,
    ) -> DemoReport:
        """Run until the model has answered, and append the messages to the history.

        A failing model ends the run with the status error; nothing is raised.
        """
        with telemetry.agent_span(
            self.name, conversation_id=conversation_id, user_id=user_id, is_new_run=True
        ) as span:
            report = DemoReport(telemetry.trace_id_of(span), self.name, conversation_id)
            try:
                self._loop(history, report)
            except ModelError as error:
                telemetry.report_error(span, error)
                report.status = "error"
        return report

    def answer_within(self, question: str, report: DemoReport) -> str:
        """Answer another agent, inside its run."""
        history = [{"role": "user", "content": question}]
        with telemetry.agent_span(self.name, conversation_id=None, user_id=None, is_new_run=False):
            return self._loop(history, report)

    def _loop(self, history: list[dict[str, Any]], report: DemoReport) -> str:
        for _ in range(_MOST_TURNS):
            message = self._call_model(history, report)
            history.append(message)
            calls = message.get("tool_calls", ())
            if not calls:
                return str(message["content"])
            history.extend(self._call_tool(call, report) for call in calls)
        raise ModelError(f"no answer after {_MOST_TURNS} model calls")

    def _call_model(
        self, history: Sequence[Mapping[str, Any]], report: DemoReport
    ) -> dict[str, Any]:
        system = {"role": "system", "content": self.instructions}
        request = {
            "model": self.model,
            "temperature": 0.2,
            "messages": [system, *history],
            "tools": [tool.definition() for tool in self.tools],
        }
        report.model_calls += 1
        with telemetry.model_span(
            request, provider=self.provider, conversation_id=report.conversation_id
        ) as span:
            try:
                completion = self.scripted.complete(request)
            except ModelError as error:
                telemetry.report_error(span, error)
                raise
            telemetry.report_completion(
                span, completion.id, self.model, completion.message, completion.tokens
            )
        for name, count in completion.tokens.items():
            report.tokens[name] += count
        return completion.message

    def _call_tool(self, call: Mapping[str, Any], report: DemoReport) -> dict[str, Any]:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        tool = next(tool for tool in self.tools if tool.name == name)
        report.tool_calls += 1
        with telemetry.tool_span(
            name, description=tool.description, call_id=call["id"], arguments=arguments
        ) as span:
            try:
                result = tool.run(json.loads(arguments), report)
            except TimeoutError as error:
                # The model sees it, and may try again: a failed tool does not end the run.
                telemetry.report_error(span, error)
                result = json.dumps({"error": str(error)})
            else:
                span.set_attribute("gen_ai.tool.call.result", result)
        return {"role": "tool", "tool_call_id": call["id"], "content": result}
