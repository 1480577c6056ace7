"""`/v1/users`: who the runs were for, with what they used and how they ended."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from hansard_store.runs.users import (
    USER_SORTS,
    UserFilter,
    get_user,
    list_users,
    user_conversations,
    user_days,
)
from hansard_web.api.parameters import Cursor, Limit, one_of, read_window
from hansard_web.api.queries import Window
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep
from hansard_web.users.bodies import day_body, user_body

router = NounRouter("users")
_SORTS = tuple(text for key in USER_SORTS for text in (key, f"-{key}"))


@router.get("/v1/users", "users.bodies.UserList")
def users(
    site: SiteDep,
    limit: Limit,
    window: Annotated[Window, Depends(read_window)],
    prefix: Annotated[str, Query(description="ids that begin with this; upper case differs")] = "",
    sort: Annotated[str, one_of(*_SORTS), Query(description="- for falling")] = "-last_seen",
    cursor: Cursor = None,
) -> ApiResponse:
    """List the users of the runs that started in a window."""
    filters = UserFilter(window.since_ns, window.until_ns, prefix)
    with site.readers.read() as connection:
        page = list_users(connection, filters, sort=sort, limit=limit, cursor=cursor)
    return page_answer(page, user_body)


@router.get("/v1/users/{user_id:path}", "users.bodies.User")
def user(
    site: SiteDep, user_id: str, window: Annotated[Window, Depends(read_window)]
) -> ApiResponse:
    """Show a user, by day; the runs are `/v1/runs?user=…`."""
    filters = UserFilter(window.since_ns, window.until_ns)
    with site.readers.read() as connection:
        found = get_user(connection, user_id, filters)
        days = user_days(connection, user_id, filters)
        talks = user_conversations(connection, user_id, filters)
    return ApiResponse(
        {**user_body(found), "days": [day_body(day) for day in days], "conversation_ids": talks}
    )
