"""What the routes of one app share, and how a route gets it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import Request

from hansard_collector.pipeline.requests import Ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.principals.service import Principals
from hansard_web.app.config import WebSettings
from hansard_web.app.readers import Readers
from hansard_web.live import RunFeed
from hansard_web.principals.attempts import Attempts
from hansard_web.principals.dependencies import FormTokens
from hansard_web.run_page.geometry import Pictures, Recent
from hansard_web.ui.render import Renderer

_KEPT_COMPARISONS = 8  # of two runs each; turning a page of their steps costs nothing


@dataclass(frozen=True, slots=True)
class Site:
    """One store, shown. Made once by `create_app`; closed when the app stops."""

    folder: DataFolder
    settings: WebSettings
    readers: Readers
    renderer: Renderer
    form_tokens: FormTokens
    principals: Principals
    attempts: Attempts
    feed: RunFeed
    started_ns: int
    instance: str  # names this run of the server: links that sign in are for it alone
    pictures: Pictures = field(default_factory=Pictures)
    comparisons: Recent[Any] = field(default_factory=lambda: Recent(_KEPT_COMPARISONS))
    ingest: Ingest | None = None  # None: this process only reads

    def close(self) -> None:
        """End live streams and close idle connections; nothing can be read afterwards."""
        self.feed.close()
        self.readers.close()
        self.principals.close()


# async: FastAPI would otherwise hop to a worker thread and back to read one attribute.
async def site_of(request: Request) -> Site:
    """Return the site of the app that serves this request."""
    site: Site = request.app.state.site
    return site


SiteDep = Annotated[Site, Depends(site_of)]
