"""Conversations: the runs that share a conversation id, in order, with their messages."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal
from urllib.parse import urlencode

import apsw
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_store.runs.conversations import (
    ConversationFilter,
    ConversationItem,
    get_conversation,
    list_conversations,
)
from hansard_store.transcripts.queries import find_transcript
from hansard_web.app.addresses import address, conversation_href, user_href
from hansard_web.app.site import Site, SiteDep
from hansard_web.conversations.messages import MessagesPage, conversation_messages
from hansard_web.transcripts.json import transcripts_of
from hansard_web.transcripts.page import TranscriptPage, transcript_page
from hansard_web.ui.format import iso_time
from hansard_web.ui.periods import PeriodChoice, known_period, period_choices, period_start_ns
from hansard_web.ui.sorting import SortedColumn, sorted_columns

router = APIRouter()

_ROWS: Final = 50
_NEWEST: Final = "-last_run"
_DEFAULT: Final = "all"
_COLUMNS: Final = {
    "runs": "-runs",
    "calls": "-model_calls",
    "errors": "-errors",
    "tokens": "-tokens",
    "cost": "-cost_usd",
    "duration": "-duration_ms",
    "last_run": _NEWEST,
}

View = Literal["", "runs", "transcript"]


@dataclass(frozen=True, slots=True)
class ConversationRow:
    conversation: ConversationItem
    url: str
    user_url: str | None


@dataclass(frozen=True, slots=True)
class ConversationsPage:
    rows: tuple[ConversationRow, ...]
    fields: Mapping[str, str]
    chips: tuple[tuple[str, str, str], ...]  # label, value, the address without it
    periods: tuple[PeriodChoice, ...]
    sort: str
    columns: Mapping[str, SortedColumn]
    more_url: str | None
    export: Mapping[str, str]  # the filters of the list as a file
    is_narrowed: bool
    is_first: bool


@dataclass(frozen=True, slots=True)
class Messages:
    """A part of a conversation's messages, and how to get the next."""

    found: MessagesPage
    more_url: str | None
    more_fragment: str | None


@dataclass(frozen=True, slots=True)
class ConversationPage:
    conversation: ConversationItem
    user_url: str | None
    messages: Messages | None  # of its runs
    stored: TranscriptPage | None  # shown in place of those
    transcript_url: str | None
    runs_view_url: str
    transcript_view_url: str
    runs_url: str  # the same runs in the list, where they can be narrowed
    errors_url: str
    json_url: str


@router.get("/conversations")
def conversations(
    request: Request,
    site: SiteDep,
    id: Annotated[str, Query()] = "",
    user: Annotated[str, Query()] = "",
    agent: Annotated[str, Query()] = "",
    since: Annotated[str, Query()] = _DEFAULT,
    sort: Annotated[str, Query()] = _NEWEST,
    view: Annotated[View, Query()] = "",
    cursor: Annotated[str, Query()] = "",
) -> Response:
    now_ns = time.time_ns()
    if id:
        one = _conversation_page(site, id, view=view, cursor=cursor, now_ns=now_ns)
        return site.renderer.page(request, "conversations/one.html", here="conversations", page=one)
    fields = {"user": user, "agent": agent, "since": since, "sort": sort or _NEWEST}
    with site.readers.read() as connection:
        page = _conversations_page(connection, fields, cursor=cursor, now_ns=now_ns)
    return site.renderer.page(request, "conversations/list.html", here="conversations", page=page)


@router.get("/fragments/conversations/messages")
def more_messages(
    request: Request,
    site: SiteDep,
    id: Annotated[str, Query()],
    cursor: Annotated[str, Query()],
) -> Response:
    """The messages of further runs, in place of the link that requested them."""
    if request.headers.get("hx-request") != "true":
        return RedirectResponse(conversation_href(id, view="runs", cursor=cursor), 303)
    with site.readers.read() as connection:
        page = _messages(connection, id, cursor=cursor, now_ns=time.time_ns())
    return site.renderer.fragment(request, "conversations/_messages.html", page=page)


def _conversations_page(
    connection: apsw.Connection, fields: Mapping[str, str], *, cursor: str, now_ns: int
) -> ConversationsPage:
    period = known_period(fields["since"], _DEFAULT)
    since_ns = period_start_ns(period, now_ns) or None
    filters = ConversationFilter(fields["user"] or None, fields["agent"] or None, since_ns)
    found = list_conversations(
        connection, filters, sort=fields["sort"], limit=_ROWS, cursor=cursor or None
    )

    def url(**changes: str) -> str:
        made = {**fields, "since": period, **changes}
        made["since"] = "" if made["since"] == _DEFAULT else made["since"]
        made["sort"] = "" if made["sort"] == _NEWEST else made["sort"]
        return address("/conversations", made)

    window = {"since": iso_time(since_ns)} if since_ns else {}
    api = {**fields, "since": "", **window}
    return ConversationsPage(
        rows=tuple(_row(item) for item in found.items),
        fields=fields,
        chips=tuple(
            (name, fields[name], url(**{name: ""})) for name in ("user", "agent") if fields[name]
        ),
        periods=period_choices(period, lambda name: url(since=name)),
        sort=fields["sort"],
        columns=sorted_columns(_COLUMNS, fields["sort"], lambda order: url(sort=order)),
        more_url=url(cursor=found.next_cursor) if found.next_cursor else None,
        export=api,
        is_narrowed=filters != ConversationFilter(),
        is_first=not cursor,
    )


def _row(item: ConversationItem) -> ConversationRow:
    user_url = user_href(item.user_id) if item.user_id else None
    return ConversationRow(item, conversation_href(item.conversation_id), user_url)


def _messages(
    connection: apsw.Connection, conversation_id: str, *, cursor: str, now_ns: int
) -> Messages:
    found = conversation_messages(connection, conversation_id, now_ns=now_ns, cursor=cursor or None)
    if found.next_cursor is None:
        return Messages(found, None, None)
    more = {"id": conversation_id, "cursor": found.next_cursor}
    return Messages(
        found,
        conversation_href(conversation_id, view="runs", cursor=found.next_cursor),
        f"/fragments/conversations/messages?{urlencode(more)}",
    )


def _conversation_page(
    site: Site, conversation_id: str, *, view: View, cursor: str, now_ns: int
) -> ConversationPage:
    with site.readers.read() as connection:
        conversation = get_conversation(connection, conversation_id)
        found = find_transcript(connection, conversation_id)
        stored, messages = None, None
        if found is not None and view != "runs":
            stored = transcript_page(connection, transcripts_of(site), found.conversation.id)
        else:
            messages = _messages(connection, conversation_id, cursor=cursor, now_ns=now_ns)
    runs = {"conversation": conversation_id}
    return ConversationPage(
        conversation=conversation,
        user_url=user_href(conversation.user_id) if conversation.user_id else None,
        messages=messages,
        stored=stored,
        transcript_url=f"/transcripts/{found.conversation.id}" if found else None,
        runs_view_url=conversation_href(conversation_id, view="runs"),
        transcript_view_url=conversation_href(conversation_id, view="transcript"),
        runs_url=f"/?{urlencode(runs)}",
        errors_url=f"/?{urlencode({**runs, 'status': 'error'})}",
        json_url=address("/v1/runs", {**runs, "sort": "started_at", "limit": "500"}),
    )
