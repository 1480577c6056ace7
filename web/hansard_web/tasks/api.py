"""Tasks for review over HTTP: listed, shown, decided about."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import Depends, Query
from starlette.requests import Request

from hansard_compiler.models.tasks import Decide
from hansard_store.detection.rules import LEVELS, Level
from hansard_store.errors import InvalidQueryError
from hansard_store.tasks.json import task_json
from hansard_store.tasks.rows import STATES, State, get_task, list_tasks
from hansard_store.tasks.service import TaskService
from hansard_web.api.openapi import answers
from hansard_web.api.parameters import Cursor, one_of, read_limit
from hansard_web.api.request_bodies import JsonRoute
from hansard_web.api.router import Answer, noun_router
from hansard_web.app.site import SiteDep
from hansard_web.principals.dependencies import principal_of

# The tasks of an app, and who may decide about them.


# async: see `site_of`.
async def tasks_of_app(request: Request) -> TaskService:
    """Return the tasks of the app, as the principal of a request uses them."""
    tasks: TaskService = request.app.state.tasks
    return tasks.acting(principal_of(request))


TasksDep = Annotated[TaskService, Depends(tasks_of_app)]


router = noun_router("tasks", route_class=JsonRoute)

LimitParam = Annotated[int, Depends(read_limit)]
_STATES: Final[tuple[State | Literal["open"], ...]] = (*STATES, "open")


@router.get("/v1/tasks", response_class=Answer, responses=answers("tasks.schemas.TaskList"))
def list_of_tasks(
    site: SiteDep,
    limit: LimitParam,
    state: Annotated[
        str | None,
        one_of(*_STATES),
        Query(description="blocked, approved, dismissed, done; open: the first two"),
    ] = None,
    level: Annotated[
        str | None, one_of(*LEVELS), Query(description="action, component or architecture")
    ] = None,
    cursor: Cursor = None,
) -> Answer:
    """List tasks for review, the last opened first."""
    wanted_state, wanted_level = read_task_state(state), read_level(level)
    with site.readers.read() as connection:
        page = list_tasks(
            connection, state=wanted_state, level=wanted_level, limit=limit, cursor=cursor
        )
        items = [task_json(connection, one) for one in page.items]
    return Answer({"items": items, "next_cursor": page.next_cursor})


@router.get(
    "/v1/tasks/{task_id}", response_class=Answer, responses=answers("tasks.schemas.TaskAnswer")
)
def task(site: SiteDep, task_id: str) -> Answer:
    """Show one by its id, or by its last eight digits or more, or its first."""
    with site.readers.read() as connection:
        return Answer({"task": task_json(connection, get_task(connection, task_id))})


@router.post(
    "/v1/tasks/{task_id}/decide",
    response_class=Answer,
    responses=answers("tasks.schemas.TaskAnswer"),
)
def decide(site: SiteDep, tasks: TasksDep, task_id: str, body: Decide) -> Answer:
    """Approve or dismiss a blocked task, or say that an approved one is done.

    Nothing acts on a task by itself: to approve it says that somebody may. The same decision again
    changes nothing; another one than the first is answered with 409 and the first.
    """
    made = tasks.decide(task_id, body)
    with site.readers.read() as connection:
        return Answer({"task": task_json(connection, made)})


def read_task_state(state: str | None) -> State | Literal["open"] | None:
    """Return a state of tasks; None where none is asked for."""
    if state and state not in _STATES:
        raise InvalidQueryError("state", f"state is {state!r}; it is one of {', '.join(_STATES)}")
    return next((known for known in _STATES if known == state), None)


def read_level(level: str | None) -> Level | None:
    """Return a level of the detector; None where none is asked for."""
    if level and level not in LEVELS:
        raise InvalidQueryError("level", f"level is {level!r}; it is one of {', '.join(LEVELS)}")
    return next((known for known in LEVELS if known == level), None)
