"""A small agent: a loop of model calls and tools. It is the program that is being watched."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hansard_web.demo import telemetry

_MOST_TURNS = 8


class ModelError(Exception):
    """The model's server refused a request."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call, with the schema that it is sent."""

    name: str
    description: str
    parameters: Mapping[str, str]  # name -> what it is; all are strings
    run: Callable[[Mapping[str, str], Report], str]

    def definition(self) -> dict[str, Any]:
        """Return the tool as the chat API wants it declared."""
        properties = {
            name: {"type": "string", "description": text} for name, text in self.parameters.items()
        }
        schema = {"type": "object", "properties": properties, "required": list(self.parameters)}
        described = {"name": self.name, "description": self.description, "parameters": schema}
        return {"type": "function", "function": described}


@dataclass(slots=True)
class Report:
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

    def add(self, usage: Mapping[str, Any]) -> None:
        """Add the usage of one model call."""
        self.tokens["input"] += usage["prompt_tokens"]
        self.tokens["output"] += usage["completion_tokens"]
        self.tokens["cache_read"] += usage["prompt_tokens_details"]["cached_tokens"]


@dataclass(frozen=True, slots=True)
class Agent:
    """Instructions, a model and tools."""

    name: str
    instructions: str
    model: str
    provider: str
    model_url: str
    tools: Sequence[Tool] = ()

    def answer(
        self,
        history: list[dict[str, Any]],
        *,
        conversation_id: str | None = None,
        user_id: str | None = None,
    ) -> Report:
        """Run until the model has answered, and append the messages to the history.

        A failing model ends the run with the status error; nothing is raised.
        """
        with telemetry.agent_span(
            self.name, conversation_id=conversation_id, user_id=user_id, is_new_run=True
        ) as span:
            report = Report(telemetry.trace_id_of(span), self.name, conversation_id)
            try:
                self._loop(history, report)
            except ModelError as error:
                telemetry.report_error(span, error)
                report.status = "error"
        return report

    def answer_within(self, question: str, report: Report) -> str:
        """Answer another agent, inside its run."""
        history = [{"role": "user", "content": question}]
        with telemetry.agent_span(self.name, conversation_id=None, user_id=None, is_new_run=False):
            return self._loop(history, report)

    def _loop(self, history: list[dict[str, Any]], report: Report) -> str:
        for _ in range(_MOST_TURNS):
            message = self._call_model(history, report)
            history.append(message)
            calls = message.get("tool_calls", ())
            if not calls:
                return str(message["content"])
            history.extend(self._call_tool(call, report) for call in calls)
        raise ModelError(f"no answer after {_MOST_TURNS} model calls")

    def _call_model(self, history: Sequence[Mapping[str, Any]], report: Report) -> dict[str, Any]:
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
                completion = _post(f"{self.model_url}/chat/completions", request)
            except ModelError as error:
                telemetry.report_error(span, error)
                raise
            telemetry.report_completion(span, completion)
        report.add(completion["usage"])
        message: dict[str, Any] = completion["choices"][0]["message"]
        return message

    def _call_tool(self, call: Mapping[str, Any], report: Report) -> dict[str, Any]:
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
                telemetry.report_result(span, result)
        return {"role": "tool", "tool_call_id": call["id"], "content": result}


def _post(url: str, body: Mapping[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), headers={"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            reply: dict[str, Any] = json.load(response)
            return reply
    except urllib.error.HTTPError as error:
        message = json.load(error)["error"]["message"]
        raise ModelError(f"HTTP {error.code}: {message}") from None
