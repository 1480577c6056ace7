"""Conversations as bodies of the API."""

from __future__ import annotations

from typing import Annotated

from hansard_store.bodies import Answer, Body, Description, Page, body_of, milliseconds
from hansard_store.runs.conversations import ConversationItem
from hansard_web.api.bodies import TokensBody, tokens_body


class ConversationItemBody(Body):
    conversation_id: str
    last_run_id: str
    runs: int
    failed_runs: Annotated[int, Description("runs of status error")]
    started_at: str
    ended_at: str
    duration_ms: Annotated[float, Description("from the first start to the latest end")]
    model_calls: int
    tool_calls: int
    error_count: Annotated[int, Description("steps that failed")]
    tokens: TokensBody | None
    cost_usd: float | None
    user_id: str | None
    agents: list[str]
    first_input: str | None
    last_output: str | None


class ConversationList(Page):
    items: list[ConversationItemBody]


class Conversation(ConversationItemBody, Answer):
    transcript_id: Annotated[str | None, Description("of /v1/transcripts; null: none is stored")]


def conversation_body(item: ConversationItem) -> ConversationItemBody:
    """Return a conversation with what its runs used."""
    return body_of(
        ConversationItemBody,
        item,
        tokens=tokens_body(item.tokens),
        duration_ms=milliseconds(item.duration_ns) or 0.0,
    )
