"""Transcripts as JSON, for the API and the command line alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

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
from hansard_store.transcripts.queries import TranscriptItem, TranscriptSize
from hansard_store.transcripts.service import SqliteTranscripts
from hansard_web.api.values import Body, plain, stored_fields

if TYPE_CHECKING:
    from hansard_web.app.site import Site  # of a server, which commands do without

_CREATED: Final = "created_at created_ns"
_COST: Final = """
    all_tokens messages estimator margin_pct window_tokens window_share break_even_turns advice
"""


def transcripts_of(site: Site) -> SqliteTranscripts:
    """Return the transcripts of a site's store."""
    return SqliteTranscripts(
        site.folder,
        RetentionMode(site.settings.retention),
        Redactor(site.folder.key()),
        read=site.readers.read,
    )


def item_body(item: TranscriptItem) -> Body:
    """Return a transcript of a list."""
    return {
        **conversation_body(item.conversation),
        **stored_fields(item, "messages size_bytes last_at last_ns folds folded_until first_input"),
    }


def conversation_body(conversation: Conversation) -> Body:
    return {
        "conversation_id": str(conversation.id),
        "conversation": conversation.name,
        **stored_fields(conversation, _CREATED),
    }


def size_body(size: TranscriptSize) -> Body:
    return {
        **item_body(size.item),
        "roles": dict(size.roles),
        **stored_fields(size, "branches marked archives folded_bytes payload_bytes"),
    }


def stored_body(one: StoredMessage, mark: Mark | None = None) -> Body:
    """Return a message of a log, under its mark where there is one."""
    has_step = one.trace_id and one.span_id
    return {
        "position": one.position,
        "message_id": one.id,
        "message": plain(veiled(one.body, mark)),
        **stored_fields(one, _CREATED),
        "content_version": one.schema_version,
        "step_id": f"{one.trace_id}-{one.span_id}" if has_step else None,
        "mark": None if mark is None else mark_body(mark),
    }


def handoff_body(fold: Fold) -> Body:
    """Return the message that a fold becomes: it has no place in the log."""
    return {
        "position": None,
        "message_id": None,
        "message": handoff(fold),
        **stored_fields(fold, _CREATED),
        "content_version": None,
        "step_id": None,
        "mark": None,
    }


def fold_body(fold: Fold) -> Body:
    return {
        "position": fold.message_position,
        "summary": fold.summary,
        "by": fold.actor,
        **stored_fields(fold, _CREATED),
    }


def mark_body(mark: Mark) -> Body:
    return {
        **stored_fields(mark, "position kind reason"),
        "by": mark.actor,
        **stored_fields(mark, f"superseded_by {_CREATED}"),
    }


def branch_body(branch: Branch) -> Body:
    return {
        "branch_id": str(branch.id),
        "conversation_id": str(branch.conversation),
        "parent": str(branch.parent),
        **stored_fields(branch, f"parent_position name messages ended {_CREATED}"),
    }


def head_body(transcripts: SqliteTranscripts, log: LogId, head: int) -> Body:
    """Return all that is known of a log but its messages."""
    is_branch = isinstance(log, BranchId)
    return {
        **conversation_body(transcripts.conversation(log)),
        "log": str(log),
        "branch": branch_body(transcripts.branch(log)) if isinstance(log, BranchId) else None,
        "kind": "branch" if is_branch else "conversation",
        "head": head,
        "folds": [fold_body(one) for one in transcripts.folds(log)],
        "marks": [mark_body(one) for one in transcripts.marks(log)],
        "branches": [branch_body(one) for one in transcripts.branches(log)],
    }


def message_bodies(
    messages: Sequence[StoredMessage], marks: Sequence[Mark], *, is_raw: bool = False
) -> list[Body]:
    """Return messages under the marks in force; raw, as they stand in the log."""
    shown = {} if is_raw else current_marks(marks)
    return [stored_body(one, shown.get(one.position)) for one in messages]


def active_bodies(transcripts: SqliteTranscripts, log: LogId) -> tuple[Active, list[Body]]:
    """Return what the next call is given, and its messages: the newest fold, and what follows."""
    now = active(transcripts, log)
    after = -1 if now.fold is None else now.fold.message_position
    messages = transcripts.messages(log, after=after, limit=now.head - after)
    front = [] if now.fold is None else [handoff_body(now.fold)]
    return now, [*front, *message_bodies(messages, transcripts.marks(log))]


def cost_body(cost: ResumeCost) -> Body:
    return {"tokens": cost.tokens, **stored_fields(cost, _COST), "reason": cost.why}


def effect_body(effect: CacheEffect) -> Body:
    return stored_fields(effect, "cold_tokens folds_over")


def check_body(check: FoldCheck) -> Body:
    """Return what a summary lost."""
    return {
        "sentences": check.sentences,
        "is_complete": check.is_whole,
        "is_truncated": check.is_cut,
        "lost": [
            stored_fields(one, "kind position role sentence missing is_negation_lost")
            for one in check.lost
        ],
    }
