"""Tokens and money, and the conversations they were spent in."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from hansard_store.runs.conversations import (
    ConversationItem,
    get_conversation,
    list_conversations,
)
from hansard_store.runs.usage import USAGE_GROUPS, list_usage
from hansard_web.api.bodies import usage_body
from hansard_web.api.openapi import answers
from hansard_web.api.parameters import Cursor, one_of, read_limit, read_window
from hansard_web.api.queries import Window
from hansard_web.api.router import Answer, NounRouter
from hansard_web.api.values import Body, time_text, tokens_body, usd
from hansard_web.app.site import SiteDep

router = NounRouter("usage")

Limit = Annotated[int, Depends(read_limit)]


@router.get("/v1/usage", response_class=Answer, responses=answers("api.schemas.UsageList"))
def usage(
    site: SiteDep,
    limit: Limit,
    window: Annotated[Window, Depends(read_window)],
    by: Annotated[
        str, one_of(*USAGE_GROUPS), Query(description="day, model, agent or conversation")
    ] = "day",
) -> Answer:
    """Sum what the runs that started in a window used; days are of UTC."""
    with site.readers.read() as connection:
        rows = list_usage(
            connection, by, since_ns=window.since_ns, until_ns=window.until_ns, limit=limit
        )
    return Answer({"by": by, "items": [usage_body(row) for row in rows], "next_cursor": None})


@router.get(
    "/v1/conversations",
    response_class=Answer,
    responses=answers("api.schemas.ConversationList"),
)
def conversations(site: SiteDep, limit: Limit, cursor: Cursor = None) -> Answer:
    """List conversations, the one with the newest run first."""
    with site.readers.read() as connection:
        page = list_conversations(connection, limit=limit, cursor=cursor)
    return Answer(
        {"items": [_conversation(item) for item in page.items], "next_cursor": page.next_cursor}
    )


@router.get(
    "/v1/conversations/{conversation_id:path}",
    response_class=Answer,
    responses=answers("api.schemas.Conversation"),
)
def conversation(site: SiteDep, conversation_id: str) -> Answer:
    """Show a conversation; its runs are `/v1/runs?conversation=…&sort=started_at`."""
    with site.readers.read() as connection:
        return Answer(_conversation(get_conversation(connection, conversation_id)))


def _conversation(item: ConversationItem) -> Body:
    return {
        "conversation_id": item.conversation_id,
        "last_run_id": item.last_run_id,
        "runs": item.runs,
        "started_at": time_text(item.started_ns),
        "ended_at": time_text(item.ended_ns),
        "model_calls": item.model_calls,
        "tool_calls": item.tool_calls,
        "error_count": item.error_count,
        "tokens": tokens_body(item.tokens),
        "cost_usd": usd(item.cost_usd_nano),
        "user_id": item.user_id,
        "agents": list(item.agents),
        "first_input": item.first_input,
        "last_output": item.last_output,
    }
