"""`/v1/conversations`: the runs that share a conversation id, summed."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import Depends, Query

from hansard_store.runs.conversations import (
    CONVERSATION_SORTS,
    ConversationFilter,
    get_conversation,
    list_conversations,
)
from hansard_store.transcripts.queries import find_transcript
from hansard_web.api.parameters import Cursor, Limit, TimeText, one_of
from hansard_web.api.queries import read_times
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep
from hansard_web.conversations.bodies import MessagesReader, conversation_body
from hansard_web.conversations.messages import conversation_calls

router = NounRouter("conversations")
_SORTS = tuple(text for key in CONVERSATION_SORTS for text in (key, f"-{key}"))


def read_conversation_filter(
    user: Annotated[str | None, Query(description="user id of one of its runs")] = None,
    agent: Annotated[str | None, Query(description="agent of one of its runs")] = None,
    since: Annotated[
        TimeText | None, Query(description="a run started at or after: RFC 3339 or ns")
    ] = None,
    until: Annotated[
        TimeText | None, Query(description="a run started before: RFC 3339 or ns")
    ] = None,
) -> ConversationFilter:
    """Return the filter of a list of conversations; an empty value means that it was not given."""
    since_ns, until_ns = read_times(since, until)
    return ConversationFilter(user or None, agent or None, since_ns, until_ns)


@router.get("/v1/conversations", "conversations.bodies.ConversationList")
def conversations(
    site: SiteDep,
    limit: Limit,
    filters: Annotated[ConversationFilter, Depends(read_conversation_filter)],
    sort: Annotated[str, one_of(*_SORTS), Query(description="- for falling")] = "-last_run",
    cursor: Cursor = None,
) -> ApiResponse:
    """List conversations, the one with the newest run first."""
    with site.readers.read() as connection:
        page = list_conversations(connection, filters, sort=sort, limit=limit, cursor=cursor)
    return page_answer(page, conversation_body)


@router.get(
    "/v1/conversations/{conversation_id:path}/messages", "conversations.bodies.ConversationMessages"
)
def messages(site: SiteDep, conversation_id: str, cursor: Cursor = None) -> ApiResponse:
    """Read the messages of a conversation by run, the first run first, each message once.

    A page has up to 10 runs, 40 model calls and 4 MiB of messages.
    """
    with site.readers.read() as connection:
        get_conversation(connection, conversation_id)  # raises NotFoundError
        page = conversation_calls(connection, conversation_id, now_ns=time.time_ns(), cursor=cursor)
        return page_answer(page, MessagesReader(connection).run_body)


@router.get("/v1/conversations/{conversation_id:path}", "conversations.bodies.Conversation")
def conversation(site: SiteDep, conversation_id: str) -> ApiResponse:
    """Show a conversation; its runs are `/v1/runs?conversation=…&sort=started_at`."""
    with site.readers.read() as connection:
        found = get_conversation(connection, conversation_id)
        stored = find_transcript(connection, conversation_id)
    transcript_id = str(stored.conversation.id) if stored else None
    return ApiResponse({**conversation_body(found), "transcript_id": transcript_id})
