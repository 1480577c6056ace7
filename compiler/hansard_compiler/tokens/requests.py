"""How many tokens a whole request takes: texts, tool definitions, and the framing around them.

Providers bill more than the texts: each message has its frame, each tool its schema, and some add
a prompt of their own. `count_request` adds what is known of it per provider, from published counts
(`python -m bench tokens` compares); where nothing is known it takes OpenAI's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hansard_compiler.calls import (
    Json,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
)
from hansard_compiler.canonical import canonical_json
from hansard_compiler.tokens.estimators import TokenEstimator, estimator_for

IMAGE_TOKENS = 1_600  # the size is not known offline; Anthropic's largest, near OpenAI's "high"
FILE_TOKENS = 3_000  # a page of PDF, by Anthropic's documentation; their number is unknown


@dataclass(frozen=True, slots=True)
class Framing:
    """What a provider adds around texts, in tokens."""

    request: int = 3
    message: int = 3
    name: int = 1
    tool_call: int = 8
    tools: int = 12  # once, when there are any
    tools_forced: int = 12  # instead of `tools` when the model must call one
    tool: int = 7
    properties: int = 3
    property: int = 3
    enum: int = -3
    enum_value: int = 3


# OpenAI: "How to count tokens with tiktoken" (OpenAI cookbook), checked there against the API.
_OPENAI = Framing()
_OPENAI_OLD = Framing(tool=10)
# Anthropic: the prompt that comes with tools is published (346 tokens, 313 when a call is forced);
# the rest follows from the counts in its documentation of `count_tokens`.
_ANTHROPIC = Framing(request=1, message=2, tools=346, tools_forced=313)


def framing_for(provider: str, model: str) -> Framing:
    """Return what a provider adds around texts for a model."""
    name = model.lower()
    if provider == "anthropic" or "claude" in name:
        return _ANTHROPIC
    is_old = name.startswith("gpt-3.5") or name == "gpt-4" or name.startswith("gpt-4-")
    return _OPENAI_OLD if is_old else _OPENAI


@dataclass(frozen=True, slots=True)
class RequestTokens:
    """An estimate of one request; `total` is what should be billed as input."""

    messages: int
    tools: int
    framing: int
    estimator: str

    @property
    def total(self) -> int:
        return self.messages + self.tools + self.framing


@dataclass(frozen=True, slots=True)
class RequestCounter:
    """Counts texts, messages, tools and whole requests for one model."""

    estimator: TokenEstimator
    framing: Framing

    @property
    def name(self) -> str:
        return self.estimator.name

    def count_text(self, text: str) -> int:
        return self.estimator.count(text)

    def count_message(self, message: Message) -> int:
        """Return a message's tokens with its frame."""
        return self._content(message) + self._frame(message)

    def count_tool(self, tool: Mapping[str, Any]) -> int:
        """Return the tokens of one tool's definition.

        A provider's built-in tool counts as the JSON it is: what the provider puts in its place
        is not known.
        """
        described = tool.get("function") if isinstance(tool.get("function"), Mapping) else tool
        assert described is not None
        if not isinstance(described.get("name"), str):
            return self.framing.tool + self.count_text(canonical_json(dict(tool)))
        parameters = described.get("parameters") or described.get("input_schema") or {}
        line = f"{described['name']}:{_sentence(described.get('description'))}"
        return self.framing.tool + self.count_text(line) + self._schema(parameters)

    def count_request(
        self, messages: Sequence[Message], tools: Sequence[Json] = (), *, is_forced: bool = False
    ) -> RequestTokens:
        """Return the estimate of a request; `is_forced` where the model must call a tool."""
        once = (self.framing.tools_forced if is_forced else self.framing.tools) if tools else 0
        return RequestTokens(
            messages=sum(map(self._content, messages)),
            tools=sum(map(self.count_tool, tools)),
            framing=self.framing.request + once + sum(map(self._frame, messages)),
            estimator=self.name,
        )

    def _frame(self, message: Message) -> int:
        calls = sum(1 for part in message.parts if isinstance(part, ToolCallPart))
        named = self.framing.name + self.count_text(message.name) if message.name else 0
        role = self.count_text(message.role)
        return self.framing.message + role + named + calls * self.framing.tool_call

    def _content(self, message: Message) -> int:
        return sum(self._part(part) for part in message.parts)

    def _part(self, part: Part) -> int:
        if isinstance(part, TextPart | ReasoningPart):
            return self.count_text(part.text)
        if isinstance(part, MediaPart):
            is_image = (part.media_type or "image/").startswith("image/")
            return IMAGE_TOKENS if is_image else FILE_TOKENS
        if isinstance(part, ToolCallPart):
            return self.count_text(part.name) + self.count_text(_as_text(part.arguments))
        return self.count_text(
            _as_text(part.value if isinstance(part, OtherPart) else part.content)
        )

    def _schema(self, schema: Any) -> int:
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        if not isinstance(properties, Mapping) or not properties:
            return 0
        return self.framing.properties + sum(
            self._property(name, value) for name, value in properties.items()
        )

    def _property(self, name: str, schema: Any) -> int:
        if not isinstance(schema, Mapping):
            return self.framing.property + self.count_text(name)
        line = f"{name}:{schema.get('type', '')}:{_sentence(schema.get('description'))}"
        total = self.framing.property + self.count_text(line) + self._schema(schema)
        if isinstance(schema.get("items"), Mapping):
            total += self._schema(schema["items"])
        if isinstance(schema.get("enum"), Sequence):
            values = [self.count_text(str(value)) for value in schema["enum"]]
            total += self.framing.enum + sum(self.framing.enum_value + count for count in values)
        return total


def _sentence(text: Any) -> str:
    return text.removesuffix(".") if isinstance(text, str) else ""


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


@lru_cache(maxsize=256)
def counter_for(provider: str, model: str) -> RequestCounter:
    """Return the counter of a model: the same object for the same names."""
    return RequestCounter(estimator_for(provider, model), framing_for(provider, model))
