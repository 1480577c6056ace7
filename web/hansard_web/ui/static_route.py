"""The route of static files."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from hansard_compiler.errors import NotFoundError
from hansard_web.ui.assets import Assets

_A_YEAR = "public, max-age=31536000, immutable"


def static_router(assets: Assets) -> APIRouter:
    """Return the route below /static; the files are in memory, so it answers on the loop."""
    router = APIRouter()

    async def static(request: Request, build: str, path: str) -> Response:
        asset = assets.find(path)
        if asset is None:
            raise NotFoundError("file", path)
        # A page of an older build may still ask: it gets today's file, but must ask again.
        is_current = build == assets.build
        etag = f'"{assets.build}"'
        headers = {"Cache-Control": _A_YEAR if is_current else "no-cache", "ETag": etag}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(asset.body, headers={"Content-Type": asset.media_type, **headers})

    router.add_api_route(
        "/static/{build}/{path:path}", static, methods=["GET", "HEAD"], include_in_schema=False
    )
    return router
