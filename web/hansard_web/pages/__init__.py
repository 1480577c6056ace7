"""The pages: each a context dataclass, a template, and its row partials."""

from __future__ import annotations

from fastapi import APIRouter


def page_routers() -> list[APIRouter]:
    """Return the routes of every page, in the order in which they are tried.

    They are imported here, as the first page of a server is shown without the others.
    """
    from hansard_web.pages import (
        annotating,
        approvals,
        conversations,
        diff,
        events,
        health,
        live_approvals,
        live_runs,
        memory,
        receipts,
        replay,
        replay_result,
        reports,
        run,
        runs,
        search,
        signin,
        step,
        step_context,
        step_texts,
        tasks,
        theme,
        transcript,
        transcripts,
        usage,
    )

    pages = (
        runs, step, step_context, step_texts, run, live_runs, approvals, live_approvals, events,
        conversations, transcripts, transcript, diff, replay, replay_result, search, memory,
        annotating, tasks, reports, receipts, usage, health, theme, signin,
    )  # fmt: skip
    return [page.router for page in pages]
