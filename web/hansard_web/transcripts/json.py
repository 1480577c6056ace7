"""Transcripts as JSON, for the API and the command line alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_compiler.transcripts.cost import ResumeCost
from hansard_compiler.transcripts.ids import BranchId, LogId
from hansard_compiler.transcripts.messages import StoredMessage
from hansard_compiler.transcripts.reads import CacheEffect, active
from hansard_compiler.transcripts.summary_check import FoldCheck
from hansard_compiler.transcripts.views import (
    Active,
    Branch,
    Conversation,
    Fold,
    Mark,
    current_marks,
    handoff,
    veiled,
)
from hansard_store.bodies import body_of
from hansard_store.transcripts.queries import TranscriptItem, TranscriptSize
from hansard_store.transcripts.service import SqliteTranscripts
from hansard_web.api.values import plain
from hansard_web.transcripts.schemas import (
    BranchBody,
    CacheEffectBody,
    ConversationBody,
    FoldBody,
    FoldCheckBody,
    LostSentence,
    MarkBody,
    MarkedBody,
    ResumeCostBody,
    TranscriptHead,
    TranscriptItemBody,
    TranscriptMessage,
    TranscriptSizeBody,
)

if TYPE_CHECKING:
    from hansard_web.app.site import Site  # of a server, which commands do without


def transcripts_of(site: Site) -> SqliteTranscripts:
    """Return the transcripts of a site's store."""
    return SqliteTranscripts(
        site.folder,
        RetentionMode(site.settings.retention),
        Redactor(site.folder.key()),
        read=site.readers.read,
    )


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
