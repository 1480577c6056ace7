"""Transcripts: what was said in a conversation, in order, and nothing of it ever changed."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import Depends, HTTPException, Query
from pydantic import WithJsonSchema
from starlette.requests import Request

from hansard_compiler.transcripts.cost import WINDOW_TOKENS
from hansard_compiler.transcripts.ids import BranchId, ConversationId, LogId, parse_log_id
from hansard_compiler.transcripts.reads import cache_effect, check_summary, cost_of
from hansard_compiler.transcripts.views import prefix_hash
from hansard_store.bodies import body_of
from hansard_store.database.cursors import decode_cursor, encode_cursor
from hansard_store.principals.model import Scope
from hansard_store.transcripts.queries import list_transcripts, transcript_size
from hansard_store.transcripts.service import SqliteTranscripts
from hansard_web.api.parameters import Cursor, Limit
from hansard_web.api.request_bodies import JsonRoute
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep
from hansard_web.principals.dependencies import principal_of
from hansard_web.transcripts.bodies import (
    AppendMessages,
    CheckSummary,
    EndBranch,
    EnsureConversation,
    FoldTranscript,
    MarkMessage,
    SpawnBranch,
)
from hansard_web.transcripts.json import (
    TranscriptBody,
    active_bodies,
    branch_body,
    check_body,
    conversation_body,
    cost_body,
    fold_body,
    head_body,
    item_body,
    marked_body,
    message_bodies,
    size_body,
    transcripts_of,
)

router = NounRouter("transcripts", route_class=JsonRoute)

_KIND = "transcript messages"


ConversationText = Annotated[
    str, WithJsonSchema({"type": "string", "pattern": "^conv_[0-9a-f]{32}$"})
]
BranchText = Annotated[str, WithJsonSchema({"type": "string", "pattern": "^br_[0-9a-f]{32}$"})]
LogText = Annotated[str, WithJsonSchema({"type": "string", "pattern": "^(conv|br)_[0-9a-f]{32}$"})]


# async: see `site_of`.
async def log_of(log_id: LogText) -> LogId:
    """Return the conversation or sub-agent that a path names."""
    return parse_log_id(log_id)


def _transcripts(site: SiteDep) -> SqliteTranscripts:
    return transcripts_of(site)


LogDep = Annotated[LogId, Depends(log_of)]
TranscriptsDep = Annotated[SqliteTranscripts, Depends(_transcripts)]


@router.get("/v1/transcripts", "transcripts.json.TranscriptList")
def transcripts(
    site: SiteDep,
    limit: Limit,
    conversation: Annotated[str | None, Query(description="gen_ai.conversation.id")] = None,
    cursor: Cursor = None,
) -> ApiResponse:
    """List transcripts, the conversation that began last first."""
    with site.readers.read() as connection:
        page = list_transcripts(
            connection, name=conversation or None, limit=limit, cursor=cursor or None
        )
    return page_answer(page, item_body)


@router.post("/v1/transcripts", "transcripts.json.EnsuredConversation")
def ensure_conversation(service: TranscriptsDep, body: EnsureConversation) -> ApiResponse:
    """Return the id of a conversation; made where there is none."""
    return ApiResponse(conversation_body(service.ensure(body.conversation)))


@router.get("/v1/transcripts/{log_id}", "transcripts.json.TranscriptBody")
def transcript(
    service: TranscriptsDep,
    log: LogDep,
    request: Request,
    limit: Limit,
    view: Annotated[
        Literal["all", "active"],
        Query(description="all: everything ever, a page; active: what the next call is given"),
    ] = "all",
    after: Annotated[int, Query(ge=-1, lt=1 << 62, description="from the next position on")] = -1,
    raw: Annotated[bool, Query(description="marked messages as they stand; admin only")] = False,
    cursor: Cursor = None,
) -> ApiResponse:
    """Read a conversation or a sub-agent (`br_…`): its messages, folds, marks and sub-agents."""
    if raw:
        need_admin(request)
    if view == "active":
        return ApiResponse(_active_body(service, log))
    if cursor is not None:
        (after,) = decode_cursor(_KIND, cursor, count=1)
    found = service.messages(log, after=after, limit=limit + 1)
    page = found[:limit]
    more = len(found) > limit
    return ApiResponse(
        body_of(
            TranscriptBody,
            **head_body(service, log, service.head(log)),
            view=view,
            open_calls=[],
            prefix_hash=None,
            items=message_bodies(page, service.marks(log), is_raw=raw),
            next_cursor=encode_cursor(_KIND, page[-1].position) if more else None,
        )
    )


def _active_body(service: SqliteTranscripts, log: LogId) -> TranscriptBody:
    now, items = active_bodies(service, log)
    return body_of(
        TranscriptBody,
        now,
        **head_body(service, log, now.head),
        view="active",
        prefix_hash=prefix_hash(now.messages),
        items=items,
        next_cursor=None,
    )


@router.post("/v1/transcripts/{log_id}", "transcripts.json.Appended", status=201)
def append_messages(service: TranscriptsDep, log: LogDep, request: AppendMessages) -> ApiResponse:
    """Append messages, all or none, and return them as they are stored: go on with those.

    With a `message_id` of your own the same request may be sent again.
    """
    stored = service.append(
        log, [one.new() for one in request.messages], clip_bytes=request.clip_bytes
    )
    body = {"items": message_bodies(stored, ()), "head": stored[-1].position}
    return ApiResponse(body, status_code=HTTPStatus.CREATED)


@router.post("/v1/transcripts/{log_id}/fold", "transcripts.json.Folded", status=201)
def fold_transcript(service: TranscriptsDep, log: LogDep, body: FoldTranscript) -> ApiResponse:
    """Let a summary stand for all messages so far. Nothing is deleted."""
    made = service.fold(log, body.summary, expected_head=body.expected_head, actor=body.by)
    return ApiResponse(fold_body(made), status_code=HTTPStatus.CREATED)


@router.post("/v1/transcripts/{log_id}/redactions", "transcripts.json.MarkedBody", status=201)
def mark_message(service: TranscriptsDep, log: LogDep, request: MarkMessage) -> ApiResponse:
    """Redact or supersede a message in views and prompts, or restore it; the row stays."""
    made = service.mark(
        log,
        request.position,
        request.kind,
        reason=request.reason,
        actor=request.by,
        superseded_by=request.superseded_by,
    )
    body = marked_body(made, cache_effect(service, log, request.position))
    return ApiResponse(body, status_code=HTTPStatus.CREATED)


@router.post("/v1/transcripts/{log_id}/check", "transcripts.json.FoldCheckBody")
def check_fold(service: TranscriptsDep, log: LogDep, body: CheckSummary) -> ApiResponse:
    """Say which constraints and requests a summary does not repeat."""
    service.conversation(log)
    return ApiResponse(check_body(check_summary(service, log, body.summary)))


@router.get("/v1/transcripts/{log_id}/cost", "transcripts.json.ResumeCostBody")
def resume_cost(
    service: TranscriptsDep,
    log: LogDep,
    provider: Annotated[str, Query(max_length=200)] = "",
    model: Annotated[str, Query(max_length=200)] = "",
    window_tokens: Annotated[int, Query(ge=1, lt=1 << 53)] = WINDOW_TOKENS,
) -> ApiResponse:
    """Estimate what going on costs before it is paid, and say whether to fold."""
    cost = cost_of(service, log, provider=provider, model=model, window_tokens=window_tokens)
    return ApiResponse(cost_body(cost))


@router.get("/v1/transcripts/{conversation_id}/stats", "transcripts.json.TranscriptSizeBody")
def transcript_stats(site: SiteDep, conversation_id: ConversationText) -> ApiResponse:
    """Tell how large a transcript is, and how much of it is folded."""
    conversation = ConversationId.parse(conversation_id)
    with site.readers.read() as connection:
        return ApiResponse(size_body(transcript_size(connection, conversation)))


@router.get("/v1/transcripts/{log_id}/branches", "transcripts.json.BranchList")
def branches(service: TranscriptsDep, log: LogDep) -> ApiResponse:
    """List the sub-agents that began in a log, in order."""
    service.conversation(log)
    items = [branch_body(one) for one in service.branches(log)]
    return ApiResponse({"items": items, "next_cursor": None})


@router.post(
    "/v1/transcripts/{log_id}/branches",
    "transcripts.json.BranchAnswer",
    status=201,
)
def spawn_branch(service: TranscriptsDep, log: LogDep, body: SpawnBranch) -> ApiResponse:
    """Begin the log of a sub-agent, which is read and appended to by its own id."""
    return ApiResponse(branch_body(service.spawn(log, body.name)), status_code=HTTPStatus.CREATED)


@router.post("/v1/transcripts/{branch_id}/end", "transcripts.json.BranchAnswer")
def end_branch(service: TranscriptsDep, branch_id: BranchText, body: EndBranch) -> ApiResponse:
    """Say that a sub-agent ended. Appending to it resumes it."""
    return ApiResponse(branch_body(service.end(BranchId.parse(branch_id), body.status)))


def need_admin(request: Request) -> None:
    """Refuse a token that may not see what was redacted."""
    token = principal_of(request)
    if token is not None and not token.allows(Scope.ADMIN):
        raise HTTPException(
            HTTPStatus.FORBIDDEN, "what was redacted is for tokens with the scope admin"
        )
