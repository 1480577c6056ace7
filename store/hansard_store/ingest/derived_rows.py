"""The rows that are derived from one span: what the collector's normalisation makes of it.

NamedTuples, because every span makes half a dozen: a frozen dataclass takes five times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hansard_compiler.calls import Message

if TYPE_CHECKING:
    from hansard_store.annotations.rows import SpanAnnotation
    from hansard_store.policy.checks import CheckRow


class Usage(NamedTuple):
    """Tokens and money of one call; None is unknown, never zero."""

    tokens_input: int | None = None
    tokens_output: int | None = None
    tokens_cache_read: int | None = None
    tokens_cache_write: int | None = None
    tokens_reasoning: int | None = None
    cost_usd_nano: int | None = None

    @property
    def has_tokens(self) -> bool:
        return self.tokens_input is not None or self.tokens_output is not None


class CallProjection(NamedTuple):
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


class ToolProjection(NamedTuple):
    """A tool call that a model requested or a span ran."""

    call_id: str | None
    name: str | None


class TextProjection(NamedTuple):
    """A text to be found by search that is no message."""

    field: str
    text: str


class CompilationRow(NamedTuple):
    """What a compile span tells of its compile as a whole, in the order of the table."""

    id: str
    hash: str | None
    stable_prefix_hash: str | None
    volatile_suffix_hash: str | None
    provider: str | None
    model: str | None
    budget_tokens: int | None
    budget_reserve: int | None
    budget_used: int | None
    counter: str | None
    ports: str | None
    request_ref: str | None
    result_ref: str | None
    schema_version: str | None  # where it is not ours
    started_ns: int
    item_total: int
    receipt_count: int
    included: int
    excluded: int
    compressed: int
    redacted: int
    notes: str | None


class CompilationProjection(NamedTuple):
    """A compile and its receipts, column by column: a compile of thousands makes no objects."""

    row: CompilationRow
    receipts: tuple[Sequence[Any], ...]  # of equal length, in the order of RECEIPT_COLUMNS

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.row.notes.split("\n")) if self.row.notes else ()

    @property
    def is_cut(self) -> bool:
        """The span holds only a part of the receipts; the stored result has all."""
        return self.row.receipt_count < self.row.item_total


class SpanProjection(NamedTuple):
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
    likeness: int | None = None  # one for steps that do the same; the lowest bit: with arguments
    call: CallProjection | None = None
    usage_sum: Usage | None = None
    ran: ToolProjection | None = None
    requested: tuple[ToolProjection, ...] = ()
    texts: tuple[TextProjection, ...] = ()
    facets: tuple[tuple[str, str], ...] = ()
    payloads: tuple[bytes, ...] = ()  # digests of what it refers to
    attribute_tokens: str = ""
    conversation_id: str | None = None
    prompt_id: str | None = None  # of its conversation; several lines: of several
    user_id: str | None = None
    domain: str | None = None
    user_goal: str | None = None
    first_input: str | None = None
    last_output: str | None = None
    error_type: str | None = None
    compilation: CompilationProjection | None = None
    checks: tuple[CheckRow, ...] = ()  # of policy
    annotations: tuple[SpanAnnotation, ...] = ()  # evaluations, and tags of the run
    may_have_pending: bool = False  # its sender announces spans before they end (Logfire)
    notes: tuple[str, ...] = ()
