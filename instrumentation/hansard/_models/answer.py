"""The response of a model, and what is recorded of the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hansard_compiler.calls import Json, Message, Tokens, ToolCallPart, message_json

if TYPE_CHECKING:
    from hansard_compiler.providers.transport.exchange import ProviderResponse
    from hansard_compiler.providers.transport.failures import CallFailed


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """What is recorded of a call; empty texts if nothing is."""

    step_id: str = ""
    request_ref: str = ""
    response_ref: str = ""
    recipe_ref: str = ""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One response. `raw` holds the call, the response as JSON and the exact bytes."""

    __module__ = "hansard"  # where programs find it

    raw: ProviderResponse
    continuation: Message  # the answer as the message to go on with, signed blocks unchanged
    recorded: RecordedAnswer = RecordedAnswer()

    @property
    def text(self) -> str:
        """The text of the response."""
        return "\n".join(message.text for message in self.raw.call.output if message.text)

    @property
    def tool_calls(self) -> list[ToolCallPart]:
        """The tool calls that the model requests."""
        parts = (part for message in self.raw.call.output for part in message.parts)
        return [part for part in parts if isinstance(part, ToolCallPart)]

    @property
    def message(self) -> Json:
        """The response as an input of the next compile."""
        return message_json(self.continuation)

    @property
    def finish_reason(self) -> str | None:
        """`stop`, `length`, `tool_call`, `content_filter` or `other`; None if it is unknown.

        OpenAI's Responses say only why an answer is incomplete: see `tool_calls` for open calls.
        """
        return self.raw.call.finish_reason

    @property
    def tokens(self) -> Tokens:
        """The billed tokens; None if the provider did not report them."""
        return self.raw.call.tokens

    @property
    def estimated_input_tokens(self) -> int | None:
        """The offline estimate from before the call."""
        estimate = self.raw.metadata.get("estimated_input_tokens")
        return estimate if isinstance(estimate, int) else None

    @property
    def shortfall(self) -> CallFailed | None:
        """The failure of an incomplete response: cut at the limit, or filtered."""
        return self.raw.shortfall
