"""Comparisons as files to keep or to send."""

from __future__ import annotations

import time

from starlette.responses import Response

from hansard_web.api.router import NounRouter
from hansard_web.app.site import SiteDep
from hansard_web.diff.api import TIMEOUT_MS
from hansard_web.html_export import MEDIA_TYPE, saved_diff

router = NounRouter("diff")


@router.get(
    "/v1/diff/saved/{left}/{right}",
    responses={200: {"content": {"text/html": {}}, "description": "one self-contained file"}},
    response_class=Response,
)
def save_diff(site: SiteDep, left: str, right: str) -> Response:
    """Give a comparison of two runs or two steps as one HTML file; it opens offline, unscripted."""
    with site.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        file = saved_diff(connection, left, right, trees=site.pictures.tree, now_ns=time.time_ns())
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
    return Response(file.body, media_type=MEDIA_TYPE, headers=headers)
