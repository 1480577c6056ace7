"""What the routes of transcripts answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hansard_compiler.transcripts.cost import Advice
from hansard_compiler.transcripts.summary_check import Kind
from hansard_compiler.transcripts.views import EndStatus, MarkKind
from hansard_store.bodies import Answer, Body, Page


class ConversationBody(Body):
    """`conversation` is what spans call it: `gen_ai.conversation.id`."""

    conversation_id: str
    conversation: str
    created_at: str
    created_ns: str


class EnsuredConversation(Answer, ConversationBody):
    pass


class TranscriptItemBody(ConversationBody):
    """Sizes are bytes as stored; times null = nothing was said yet."""

    messages: int
    size_bytes: int
    last_at: str | None
    last_ns: str | None
    folds: int
    folded_until: int | None
    first_input: str | None


class TranscriptList(Page):
    items: list[TranscriptItemBody]


class TranscriptSizeBody(Answer, TranscriptItemBody):
    roles: dict[str, int]
    branches: int
    marked: int
    archives: int
    folded_bytes: int
    payload_bytes: Annotated[int, Field(description="of originals of clipped results, and media")]


class MarkBody(Body):
    position: int
    kind: MarkKind
    reason: str
    by: str
    superseded_by: int | None
    created_at: str
    created_ns: str


class TranscriptMessage(Body):
    """A message as it is stored, under its mark; position null: the summary of a fold."""

    position: int | None
    message_id: str | None
    message: dict[str, Any]
    created_at: str
    created_ns: str
    content_version: int | None
    step_id: str | None
    mark: MarkBody | None


class FoldBody(Body):
    """The summary stands for all messages up to its position."""

    position: int
    summary: str
    by: str
    created_at: str
    created_ns: str


class BranchBody(Body):
    """A sub-agent; `ended` null: it never did, or was resumed since."""

    branch_id: str
    conversation_id: str
    parent: str
    parent_position: int
    name: str
    messages: int
    ended: EndStatus | None
    created_at: str
    created_ns: str


class TranscriptHead(ConversationBody):
    """All that is known of a log but its messages."""

    log: str
    kind: Literal["conversation", "branch"]
    branch: BranchBody | None
    head: Annotated[int, Field(description="position of the last message; -1: none")]
    folds: list[FoldBody]
    marks: list[MarkBody]
    branches: list[BranchBody]


class TranscriptBody(Page, TranscriptHead):
    """One page of a log; with `view=active` all that the next call is given."""

    view: Literal["all", "active"]
    open_calls: Annotated[
        list[str], Field(description="of view=active: tool calls without a result")
    ]
    prefix_hash: Annotated[
        str | None, Field(description="of view=active: sha256 over the prompt's bytes")
    ]
    items: list[TranscriptMessage]


class Appended(Answer):
    items: list[TranscriptMessage]
    head: int


class Folded(Answer, FoldBody):
    pass


class CacheEffectBody(Body):
    """What the next call pays once in full, and how many summaries may repeat the message."""

    cold_tokens: int
    folds_over: int


class MarkedBody(Answer, MarkBody):
    cache: CacheEffectBody


class LostSentence(Body):
    kind: Kind
    position: int
    role: str
    sentence: str
    missing: list[str]
    is_negation_lost: bool


class FoldCheckBody(Answer):
    """Which constraints and requests a summary does not repeat: a check of words, no model."""

    sentences: int
    is_complete: bool
    is_truncated: bool
    lost: list[LostSentence]


class ResumeCostBody(Answer):
    """Tokens that the transcript is as input of the next call."""

    tokens: int
    all_tokens: int
    messages: int
    estimator: str
    margin_pct: int
    window_tokens: int
    window_share: float
    break_even_turns: int | None
    advice: Advice
    reason: str


class BranchList(Page):
    items: list[BranchBody]


class BranchAnswer(Answer, BranchBody):
    pass
