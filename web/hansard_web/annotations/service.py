"""The annotations of an app, and who may write them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from hansard_store.annotations.service import AnnotationBook


# async: see `site_of`.
async def annotations_of_app(request: Request) -> AnnotationBook:
    """Return the annotations of the app that serves a request."""
    book: AnnotationBook = request.app.state.annotations
    return book


AnnotationsDep = Annotated[AnnotationBook, Depends(annotations_of_app)]
