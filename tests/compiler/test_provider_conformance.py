"""The check that any adapter can run, on ours and on formats that break each promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hansard_compiler.calls import Call, Json, Tokens
from hansard_compiler.providers.base import RenderInput, WireFormat
from hansard_compiler.providers.conformance import PROMISES, breaches
from hansard_compiler.providers.formats.anthropic_messages import AnthropicMessages
from hansard_compiler.providers.formats.openai_chat import OpenAIChat
from hansard_compiler.providers.formats.openai_responses import OpenAIResponses
from tests.compiler.render_inputs import FORMATS


@pytest.mark.covers("PA-02")
@pytest.mark.parametrize(
    "form",
    [
        *FORMATS,
        OpenAIResponses(explicit_cache=True),
        AnthropicMessages(extended_thinking=True, cache_ttl="1h"),
        OpenAIChat(provider="vllm", max_tokens_field="max_completion_tokens"),
    ],
    ids=lambda one: f"{one}"[:60],
)
def test_every_format_keeps_its_promises(form: WireFormat) -> None:
    assert breaches(form) == []


class Forgetful(OpenAIChat):
    """Loses everything but the first message, and counts what it was not told."""

    def render(self, given: RenderInput) -> Json:
        body = super().render(given)
        body["messages"] = body["messages"][:1]
        body["stream"] = False
        if "tools" in body:
            body["tools"] = [{**tool, "seen": True} for tool in body["tools"]]
        return body

    def parse(self, response: Mapping[str, Any], request: Mapping[str, Any]) -> Call:
        return Call(tokens=Tokens(input=0))

    def problems(self, rendered: Mapping[str, Any]) -> list[str]:
        return []

    def notes(self, given: RenderInput) -> list[str]:
        raise RuntimeError("no notes")


def test_each_promise_that_is_broken_is_named() -> None:
    told = breaches(Forgetful())

    assert {
        "texts, tools and the model all reach the request",
        "built-in tools pass through unchanged",
        "a call without its result, or a result without its call, is found",
        "what a response does not say is unknown, not zero",
        "`stream` is set when asked for, and only then",
        "reasoning is sent or listed as omitted: raised RuntimeError: no notes",
    } <= set(told)
    assert len(PROMISES) == 11
