"""Token counts of whole requests that providers published beside the requests.

OpenAI: the cookbook's notebook on counting tokens, whose cells print the API's own
`prompt_tokens`. Anthropic: the examples on its page about `count_tokens`; their outputs are older
than its newest tokenizer, so they are held against models before Opus 4.7. Facts, not code: the
requests are given here in the normal form.
"""

from __future__ import annotations

from dataclasses import dataclass

from hansard_compiler.calls import Json, Message, ReasoningPart, TextPart


@dataclass(frozen=True, slots=True)
class PublishedCount:
    """One request and what its provider says it takes."""

    what: str
    provider: str
    model: str
    messages: tuple[Message, ...]
    tokens: int
    tools: tuple[Json, ...] = ()


def _said(role: str, text: str, name: str | None = None) -> Message:
    return Message(role, (TextPart(text),), name)


_JARGON = (
    _said(
        "system",
        "You are a helpful, pattern-following assistant that translates corporate jargon into "
        "plain English.",
    ),
    _said("system", "New synergies will help drive top-line growth.", "example_user"),
    _said("system", "Things working well together will increase revenue.", "example_assistant"),
    _said(
        "system",
        "Let's circle back when we have more bandwidth to touch base on opportunities for "
        "increased leverage.",
        "example_user",
    ),
    _said(
        "system",
        "Let's talk later when we're less busy about how to do better.",
        "example_assistant",
    ),
    _said(
        "user",
        "This late pivot means we don't have time to boil the ocean for the client deliverable.",
    ),
)
_WEATHER = (
    _said("system", "You are a helpful assistant that can answer to questions about the weather."),
    _said("user", "What's the weather like in San Francisco?"),
)
_LOCATION = {"type": "string", "description": "The city and state, e.g. San Francisco, CA"}
_UNIT = {
    "type": "string",
    "description": "The unit of temperature to return",
    "enum": ["celsius", "fahrenheit"],
}


def _weather_tool(name: str, **properties: Json) -> Json:
    return {
        "type": "function",
        "name": name,
        "description": "Get the current weather in a given location",
        "parameters": {"type": "object", "properties": properties, "required": ["location"]},
    }


_OPENAI_TOOL = _weather_tool("get_current_weather", location=_LOCATION, unit=_UNIT)
_CLAUDE = "claude-opus-4-20250514"
_PRIMES = (
    _said("user", "Are there an infinite number of prime numbers such that n mod 4 == 3?"),
    Message(
        "assistant",
        (
            ReasoningPart(
                "This is a nice number theory question. Let's think about it step by step..."
            ),
            TextPart("Yes, there are infinitely many prime numbers p such that p mod 4 = 3..."),
        ),
    ),
    _said("user", "Can you write a formal proof?"),
)

PUBLISHED = (
    PublishedCount("messages with names", "openai", "gpt-4", _JARGON, 129),
    PublishedCount("messages with names", "openai", "gpt-4o", _JARGON, 124),
    PublishedCount("messages and a tool", "openai", "gpt-4", _WEATHER, 105, (_OPENAI_TOOL,)),
    PublishedCount("messages and a tool", "openai", "gpt-4o", _WEATHER, 101, (_OPENAI_TOOL,)),
    PublishedCount(
        "system and a message",
        "anthropic",
        _CLAUDE,
        (_said("system", "You are a scientist"), _said("user", "Hello, Claude")),
        14,
    ),
    PublishedCount(
        "a message and a tool",
        "anthropic",
        _CLAUDE,
        _WEATHER[1:],
        403,
        (_weather_tool("get_weather", location=_LOCATION),),
    ),
    PublishedCount("a conversation with thinking", "anthropic", _CLAUDE, _PRIMES, 88),
)
