"""The tasks of an app, and who may decide about them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from hansard_store.tasks.service import TaskBook
from hansard_web.principals.requests import principal_of


# async: see `site_of`.
async def tasks_of_app(request: Request) -> TaskBook:
    """Return the tasks of the app, as the principal of a request uses them."""
    book: TaskBook = request.app.state.tasks
    return book.acting(principal_of(request))


TasksDep = Annotated[TaskBook, Depends(tasks_of_app)]
