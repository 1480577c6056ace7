"""Reads that every back end shares: the active view, its cost, what a redaction costs, what a
summary lost."""

from __future__ import annotations

from dataclasses import dataclass

from hansard_compiler.transcripts.cost import (
    WINDOW_TOKENS,
    ResumeCost,
    count_tokens,
    resume_cost,
)
from hansard_compiler.transcripts.ids import LogId
from hansard_compiler.transcripts.ports import Transcripts
from hansard_compiler.transcripts.summary_check import FoldCheck, check_fold
from hansard_compiler.transcripts.views import (
    Active,
    Fold,
    active_view,
    current_marks,
    veiled,
)


@dataclass(frozen=True, slots=True)
class CacheEffect:
    """What a mark on a message costs the next call."""

    position: int
    cold_tokens: int  # to be paid in full once, because the prefix changes there
    folds_over: int  # folds whose summary may repeat what was marked: fold again

    @property
    def is_free(self) -> bool:
        return not self.cold_tokens


def latest_fold(transcripts: Transcripts, log: LogId) -> Fold | None:
    """Return the fold that counts."""
    return next(reversed(transcripts.folds(log)), None)


def active(transcripts: Transcripts, log: LogId) -> Active:
    """Return the messages of the next call: the newest fold, and what follows it."""
    fold = latest_fold(transcripts, log)
    after = -1 if fold is None else fold.message_position
    marks = current_marks(transcripts.marks(log))
    return active_view(transcripts.messages(log, after=after), fold, marks)


def cost_of(
    transcripts: Transcripts,
    log: LogId,
    *,
    provider: str = "",
    model: str = "",
    window_tokens: int = WINDOW_TOKENS,
    counts_folded: bool = True,
) -> ResumeCost:
    """Return what going on with a transcript costs.

    `counts_folded` False leaves out what folds save: counting that reads every message there is.
    """
    now = active(transcripts, log)
    before = 0
    if counts_folded and now.fold is not None:
        until = now.fold.message_position + 1
        folded = [one.body for one in transcripts.messages(log, limit=until)]
        before = count_tokens(folded, provider=provider, model=model)
    return resume_cost(
        now.messages,
        provider=provider,
        model=model,
        window_tokens=window_tokens,
        folded_tokens=before,
    )


def cache_effect(
    transcripts: Transcripts, log: LogId, position: int, *, provider: str = "", model: str = ""
) -> CacheEffect:
    """Return what marking a message costs, or has cost: all from there on is read cold once."""
    folds = transcripts.folds(log)
    over = sum(1 for fold in folds if fold.message_position >= position)
    if folds and folds[-1].message_position >= position:
        return CacheEffect(position, 0, over)
    after = [one.body for one in transcripts.messages(log, after=position - 1)]
    return CacheEffect(position, count_tokens(after, provider=provider, model=model), over)


def check_summary(transcripts: Transcripts, log: LogId, summary: str | None = None) -> FoldCheck:
    """Say what a summary lost: of the newest fold, or one that is thought of for all there is."""
    fold = latest_fold(transcripts, log)
    if summary is None:
        if fold is None:
            return FoldCheck(0, ())
        found, summary = transcripts.messages(log, limit=fold.message_position + 1), fold.summary
    else:
        found = transcripts.messages(log)
    marks = current_marks(transcripts.marks(log))
    bodies = ((one.position, veiled(one.body, marks.get(one.position))) for one in found)
    return check_fold(bodies, summary)
