"""The pages: each a context dataclass, a template, and its row partials."""

from __future__ import annotations

from fastapi import APIRouter

from hansard_web.pages import live_runs, runs, search, signin, theme, usage


def page_routers() -> list[APIRouter]:
    """Return the routes of every page, in the order in which they are tried."""
    return [runs.router, live_runs.router, search.router, usage.router, theme.router, signin.router]
