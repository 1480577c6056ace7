"""What the routes of transcripts answer, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hansard_web.api.schemas import Answer, Body, Page


class Conversation(Body):
    """`conversation` is what spans call it: `gen_ai.conversation.id`."""

    conversation_id: str
    conversation: str
    created_at: str
    created_ns: str


class EnsuredConversation(Answer, Conversation):
    pass


class TranscriptItem(Conversation):
    """Sizes are bytes as stored; times null = nothing was said yet."""

    messages: int
    size_bytes: int
    last_at: str | None
    last_ns: str | None
    folds: int
    folded_until: int | None
    first_input: str | None


class TranscriptList(Page):
    items: list[TranscriptItem]


class TranscriptSize(Answer, TranscriptItem):
    roles: dict[str, int]
    branches: int
    marked: int
    archives: int
    folded_bytes: int
    payload_bytes: int = Field(description="of originals of clipped results, and media")


class Mark(Body):
    position: int
    kind: Literal["redacted", "superseded", "restored"]
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
    mark: Mark | None


class Fold(Body):
    """The summary stands for all messages up to its position."""

    position: int
    summary: str
    by: str
    created_at: str
    created_ns: str


class Branch(Body):
    """A sub-agent; `ended` null: it never did, or was resumed since."""

    branch_id: str
    conversation_id: str
    parent: str
    parent_position: int
    name: str
    messages: int
    ended: Literal["done", "failed"] | None
    created_at: str
    created_ns: str


class Transcript(Page, Conversation):
    """One page of a log; with `view=active` all that the next call is given."""

    log: str
    kind: Literal["conversation", "branch"]
    branch: Branch | None
    head: int = Field(description="position of the last message; -1: none")
    folds: list[Fold]
    marks: list[Mark]
    branches: list[Branch]
    view: Literal["all", "active"]
    open_calls: list[str] = Field(description="of view=active: tool calls without a result")
    prefix_hash: str | None = Field(description="of view=active: sha256 over the prompt's bytes")
    items: list[TranscriptMessage]


class Appended(Answer):
    items: list[TranscriptMessage]
    head: int


class Folded(Answer, Fold):
    pass


class CacheEffect(Body):
    """What the next call pays once in full, and how many summaries may repeat the message."""

    cold_tokens: int
    folds_over: int


class Marked(Answer, Mark):
    cache: CacheEffect


class LostSentence(Body):
    kind: Literal["constraint", "request"]
    position: int
    role: str
    sentence: str
    missing: list[str]
    is_negation_lost: bool


class FoldCheck(Answer):
    """Which constraints and requests a summary does not repeat: a check of words, no model."""

    sentences: int
    is_complete: bool
    is_truncated: bool
    lost: list[LostSentence]


class ResumeCost(Answer):
    """Tokens that the transcript is as input of the next call."""

    tokens: int
    all_tokens: int
    messages: int
    estimator: str
    margin_pct: int
    window_tokens: int
    window_share: float
    break_even_turns: int | None
    advice: Literal["none", "soon", "now"]
    reason: str


class BranchList(Page):
    items: list[Branch]


class BranchAnswer(Answer, Branch):
    pass
