"""Routes of every page: a page is a context dataclass, a template, and its row partials."""

from __future__ import annotations

from fastapi import APIRouter


def page_routers() -> list[APIRouter]:
    """Return the routes of every page, in the order in which they are tried.

    They are imported here, as the first page of a server is shown without the others.
    """
    from hansard_web.annotations import forms as annotating
    from hansard_web.approvals import live as live_approvals
    from hansard_web.approvals import page as approvals
    from hansard_web.audit import page as events
    from hansard_web.diff.page import routes as diff
    from hansard_web.health import page as health
    from hansard_web.memory import page as memory
    from hansard_web.principals import signin
    from hansard_web.receipts import page as receipts
    from hansard_web.replay_page import form_page as replay
    from hansard_web.replay_page import result_page as replay_result
    from hansard_web.reports import page as reports
    from hansard_web.run_page import page as run
    from hansard_web.runs import conversations
    from hansard_web.runs import live as live_runs
    from hansard_web.runs import page as runs
    from hansard_web.search import page as search
    from hansard_web.steps import page as step
    from hansard_web.tasks import page as tasks
    from hansard_web.transcripts import page as transcripts
    from hansard_web.ui import theme
    from hansard_web.usage import page as usage

    pages = (
        runs, step, run, live_runs, approvals, live_approvals, events,
        conversations, transcripts, diff, replay, replay_result, search, memory,
        annotating, tasks, reports, receipts, usage, health, theme, signin,
    )  # fmt: skip
    return [page.router for page in pages]
