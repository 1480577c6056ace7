"""The rows that are derived from one span: what the collector's normalisation makes of it."""

from __future__ import annotations

from dataclasses import dataclass

from hansard_compiler.calls import Message


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of one call; None is unknown, never zero."""

    tokens_input: int | None = None
    tokens_output: int | None = None
    tokens_cache_read: int | None = None
    tokens_cache_write: int | None = None
    tokens_reasoning: int | None = None
    cost_usd_nano: int | None = None

    def values(self) -> tuple[int | None, ...]:
        """Return the six numbers in the order of the columns."""
        return (
            self.tokens_input,
            self.tokens_output,
            self.tokens_cache_read,
            self.tokens_cache_write,
            self.tokens_reasoning,
            self.cost_usd_nano,
        )

    @property
    def has_tokens(self) -> bool:
        return self.tokens_input is not None or self.tokens_output is not None


@dataclass(frozen=True, slots=True)
class CallProjection:
    """The columns of a model call, and its messages."""

    usage: Usage
    is_candidate: bool  # reports usage, output or an error: it can be counted
    operation: str | None
    provider: str | None
    request_model: str | None
    response_model: str | None
    response_id: str | None
    finish_reason: str | None
    input: tuple[Message, ...]
    output: tuple[Message, ...]
    input_is_delta: bool
    cost_source: str | None
    first_token_ms: float | None


@dataclass(frozen=True, slots=True)
class ToolProjection:
    """A tool call that a model asked for or a span ran."""

    call_id: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class TextProjection:
    """A text to be found by search that is no message."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class SpanProjection:
    """Everything derived from one span."""

    role: str
    dialect: str
    label: str | None = None
    flags: int = 0
    agent_name: str | None = None
    tool_name: str | None = None
    model: str | None = None
    usage: Usage = Usage()
    summary: str | None = None
    call: CallProjection | None = None
    usage_sum: Usage | None = None
    ran: ToolProjection | None = None
    requested: tuple[ToolProjection, ...] = ()
    texts: tuple[TextProjection, ...] = ()
    facets: tuple[tuple[str, str], ...] = ()
    payloads: tuple[bytes, ...] = ()  # digests of what it refers to
    attribute_tokens: str = ""
    conversation_id: str | None = None
    user_id: str | None = None
    domain: str | None = None
    first_input: str | None = None
    last_output: str | None = None
    may_have_pending: bool = False  # its sender announces spans before they end (Logfire)
    notes: tuple[str, ...] = ()
