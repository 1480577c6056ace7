"""Transcripts as JSON, for the API and the command line alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_compiler.transcripts.cost import Advice, ResumeCost
from hansard_compiler.transcripts.ids import BranchId, LogId
from hansard_compiler.transcripts.messages import StoredMessage
from hansard_compiler.transcripts.reads import CacheEffect, active
from hansard_compiler.transcripts.summary_check import FoldCheck, Kind
from hansard_compiler.transcripts.views import (
    Active,
    Branch,
    Conversation,
    EndStatus,
    Fold,
    Mark,
    MarkKind,
    current_marks,
    handoff,
    veiled,
)
from hansard_store.bodies import Answer, Body, Description, Page, body_of
from hansard_store.transcripts.queries import TranscriptItem, TranscriptSize
from hansard_store.transcripts.service import SqliteTranscripts
from hansard_web.api.values import plain

if TYPE_CHECKING:
    from hansard_web.app.site import Site  # of a server, which commands do without


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
    payload_bytes: Annotated[int, Description("of originals of clipped results, and media")]


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
    head: Annotated[int, Description("position of the last message; -1: none")]
    folds: list[FoldBody]
    marks: list[MarkBody]
    branches: list[BranchBody]


class TranscriptBody(Page, TranscriptHead):
    """One page of a log; with `view=active` all that the next call is given."""

    view: Literal["all", "active"]
    open_calls: Annotated[list[str], Description("of view=active: tool calls without a result")]
    prefix_hash: Annotated[
        str | None, Description("of view=active: sha256 over the prompt's bytes")
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


def item_body(item: TranscriptItem) -> TranscriptItemBody:
    """Return a transcript of a list."""
    return body_of(TranscriptItemBody, item, **conversation_body(item.conversation))


def conversation_body(conversation: Conversation) -> ConversationBody:
    return body_of(
        ConversationBody,
        conversation,
        conversation_id=str(conversation.id),
        conversation=conversation.name,
    )


def size_body(size: TranscriptSize) -> TranscriptSizeBody:
    return body_of(TranscriptSizeBody, size, **item_body(size.item), roles=dict(size.roles))


def stored_body(one: StoredMessage, mark: Mark | None = None) -> TranscriptMessage:
    """Return a message of a log, under its mark where there is one."""
    has_step = one.trace_id and one.span_id
    return body_of(
        TranscriptMessage,
        one,
        message_id=one.id,
        message=plain(veiled(one.body, mark)),
        content_version=one.schema_version,
        step_id=f"{one.trace_id}-{one.span_id}" if has_step else None,
        mark=mark and mark_body(mark),
    )


def handoff_body(fold: Fold) -> TranscriptMessage:
    """Return the message that a fold becomes: it has no place in the log."""
    return body_of(
        TranscriptMessage,
        fold,
        position=None,
        message_id=None,
        message=handoff(fold),
        content_version=None,
        step_id=None,
        mark=None,
    )


def fold_body(fold: Fold) -> FoldBody:
    return body_of(FoldBody, fold, position=fold.message_position, by=fold.actor)


def mark_body(mark: Mark) -> MarkBody:
    return body_of(MarkBody, mark, by=mark.actor)


def marked_body(mark: Mark, effect: CacheEffect) -> MarkedBody:
    """Return a mark that was made, with what it costs the next call."""
    return body_of(MarkedBody, **mark_body(mark), cache=body_of(CacheEffectBody, effect))


def branch_body(branch: Branch) -> BranchBody:
    return body_of(
        BranchBody,
        branch,
        branch_id=str(branch.id),
        conversation_id=str(branch.conversation),
        parent=str(branch.parent),
    )


def head_body(transcripts: SqliteTranscripts, log: LogId, head: int) -> TranscriptHead:
    """Return all that is known of a log but its messages."""
    branch = branch_body(transcripts.branch(log)) if isinstance(log, BranchId) else None
    return body_of(
        TranscriptHead,
        **conversation_body(transcripts.conversation(log)),
        log=str(log),
        branch=branch,
        kind="branch" if branch else "conversation",
        head=head,
        folds=[fold_body(one) for one in transcripts.folds(log)],
        marks=[mark_body(one) for one in transcripts.marks(log)],
        branches=[branch_body(one) for one in transcripts.branches(log)],
    )


def message_bodies(
    messages: Sequence[StoredMessage], marks: Sequence[Mark], *, is_raw: bool = False
) -> list[TranscriptMessage]:
    """Return messages under the marks in force; raw, as they stand in the log."""
    shown = {} if is_raw else current_marks(marks)
    return [stored_body(one, shown.get(one.position)) for one in messages]


def active_bodies(
    transcripts: SqliteTranscripts, log: LogId
) -> tuple[Active, list[TranscriptMessage]]:
    """Return what the next call is given, and its messages: the newest fold, and what follows."""
    now = active(transcripts, log)
    after = -1 if now.fold is None else now.fold.message_position
    messages = transcripts.messages(log, after=after, limit=now.head - after)
    front = [] if now.fold is None else [handoff_body(now.fold)]
    return now, [*front, *message_bodies(messages, transcripts.marks(log))]


def cost_body(cost: ResumeCost) -> ResumeCostBody:
    return body_of(ResumeCostBody, cost, reason=cost.why)


def check_body(check: FoldCheck) -> FoldCheckBody:
    """Return what a summary lost."""
    return body_of(
        FoldCheckBody,
        check,
        is_complete=check.is_whole,
        is_truncated=check.is_cut,
        lost=[body_of(LostSentence, one) for one in check.lost],
    )


def transcripts_of(site: Site) -> SqliteTranscripts:
    """Return the transcripts of a site's store."""
    return SqliteTranscripts(
        site.folder,
        RetentionMode(site.settings.retention),
        Redactor(site.folder.key()),
        read=site.readers.read,
    )
