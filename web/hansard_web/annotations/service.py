"""The annotations of an app, and who may write them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from hansard_store.annotations.service import AnnotationService


# async: see `site_of`.
async def annotations_of_app(request: Request) -> AnnotationService:
    """Return the annotations of the app that serves a request."""
    book: AnnotationService = request.app.state.annotations
    return book


AnnotationsDep = Annotated[AnnotationService, Depends(annotations_of_app)]
