"""Tokens and money, and the conversations they were spent in."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from hansard_store.runs.conversations import (
    get_conversation,
    list_conversations,
)
from hansard_store.runs.usage import USAGE_GROUPS, list_usage
from hansard_web.api.bodies import conversation_body, usage_body
from hansard_web.api.parameters import Cursor, Limit, one_of, read_window
from hansard_web.api.queries import Window
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep

router = NounRouter("usage")


@router.get("/v1/usage", "api.bodies.UsageList")
def usage(
    site: SiteDep,
    limit: Limit,
    window: Annotated[Window, Depends(read_window)],
    by: Annotated[
        str, one_of(*USAGE_GROUPS), Query(description="day, model, agent or conversation")
    ] = "day",
) -> ApiResponse:
    """Sum what the runs that started in a window used; days are of UTC."""
    with site.readers.read() as connection:
        rows = list_usage(
            connection, by, since_ns=window.since_ns, until_ns=window.until_ns, limit=limit
        )
    return ApiResponse({"by": by, "items": [usage_body(row) for row in rows], "next_cursor": None})


@router.get("/v1/conversations", "api.bodies.ConversationList")
def conversations(site: SiteDep, limit: Limit, cursor: Cursor = None) -> ApiResponse:
    """List conversations, the one with the newest run first."""
    with site.readers.read() as connection:
        page = list_conversations(connection, limit=limit, cursor=cursor)
    return page_answer(page, conversation_body)


@router.get("/v1/conversations/{conversation_id:path}", "api.bodies.Conversation")
def conversation(site: SiteDep, conversation_id: str) -> ApiResponse:
    """Show a conversation; its runs are `/v1/runs?conversation=…&sort=started_at`."""
    with site.readers.read() as connection:
        return ApiResponse(conversation_body(get_conversation(connection, conversation_id)))
