"""Conversations: the runs that share a conversation id, in order."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlencode

import apsw
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from hansard_store.runs.conversations import (
    ConversationItem,
    get_conversation,
    list_conversations,
)
from hansard_store.runs.filters import RunFilter, RunSort
from hansard_store.runs.queries import list_runs
from hansard_store.transcripts.queries import find_transcript
from hansard_web.app.site import SiteDep
from hansard_web.runs.rows import RunRow, run_rows

router = APIRouter()

_ROWS: Final = 50
_FIRST_TO_LAST: Final = RunSort("started_at", descending=False)


@dataclass(frozen=True, slots=True)
class ConversationRow:
    conversation: ConversationItem
    url: str
    length_ns: int


@dataclass(frozen=True, slots=True)
class ConversationsPage:
    rows: tuple[ConversationRow, ...]
    more_url: str | None
    is_first: bool


@dataclass(frozen=True, slots=True)
class ConversationPage:
    conversation: ConversationItem
    length_ns: int
    rows: tuple[RunRow, ...]
    more_url: str | None
    runs_url: str  # the same runs in the list, where they can be narrowed
    transcript_url: str | None  # what an agent keeps of it


def conversation_href(conversation_id: str) -> str:
    """Return the address of a conversation; ids are anyone's text, slashes and dots included."""
    return f"/conversations?{urlencode({'id': conversation_id})}"


@router.get("/conversations")
def conversations(
    request: Request,
    site: SiteDep,
    id: Annotated[str, Query()] = "",
    cursor: Annotated[str, Query()] = "",
) -> Response:
    with site.readers.read() as connection:
        if id:
            one = _conversation_page(connection, id, cursor=cursor)
            return site.renderer.page(request, "conversation.html", here="conversations", page=one)
        page = _conversations_page(connection, cursor=cursor)
    return site.renderer.page(request, "conversations.html", here="conversations", page=page)


def _conversations_page(connection: apsw.Connection, *, cursor: str) -> ConversationsPage:
    found = list_conversations(connection, limit=_ROWS, cursor=cursor or None)
    rows = tuple(
        ConversationRow(
            item,
            url=conversation_href(item.conversation_id),
            length_ns=max(item.ended_ns - item.started_ns, 0),
        )
        for item in found.items
    )
    more = urlencode({"cursor": found.next_cursor}) if found.next_cursor else ""
    return ConversationsPage(rows, f"/conversations?{more}" if more else None, not cursor)


def _conversation_page(
    connection: apsw.Connection, conversation_id: str, *, cursor: str
) -> ConversationPage:
    now_ns = time.time_ns()
    conversation = get_conversation(connection, conversation_id)
    found = list_runs(
        connection,
        RunFilter(conversation=conversation_id),
        now_ns=now_ns,
        sort=_FIRST_TO_LAST,
        limit=_ROWS,
        cursor=cursor or None,
    )
    more = {"id": conversation_id, "cursor": found.next_cursor or ""}
    stored_transcript = find_transcript(connection, conversation_id)
    return ConversationPage(
        conversation=conversation,
        length_ns=max(conversation.ended_ns - conversation.started_ns, 0),
        rows=run_rows(connection, found.items, now_ns=now_ns),
        more_url=f"/conversations?{urlencode(more)}" if found.next_cursor else None,
        runs_url=f"/?{urlencode({'conversation': conversation_id})}",
        transcript_url=f"/transcripts/{stored_transcript.conversation.id}"
        if stored_transcript
        else None,
    )
