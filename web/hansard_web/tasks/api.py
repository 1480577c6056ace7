"""Tasks for review over HTTP: listed, shown, decided about."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import Query

from hansard_compiler.models.tasks import Decide
from hansard_store.detection.rules import LEVELS
from hansard_store.tasks.json import task_json
from hansard_store.tasks.rows import STATES, State, get_task, list_tasks
from hansard_store.tasks.service import TaskService
from hansard_web.api.parameters import Cursor, Limit, one_of
from hansard_web.api.queries import read_word
from hansard_web.api.request_bodies import JsonRoute
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep
from hansard_web.principals.dependencies import of_app

TasksDep = Annotated[TaskService, of_app("tasks", is_acting=True)]

router = NounRouter("tasks", route_class=JsonRoute)
_STATES: Final[tuple[State | Literal["open"], ...]] = (*STATES, "open")


@router.get("/v1/tasks", "tasks.bodies.TaskList")
def list_of_tasks(
    site: SiteDep,
    limit: Limit,
    state: Annotated[
        str | None,
        one_of(*_STATES),
        Query(description="blocked, approved, dismissed, done; open: the first two"),
    ] = None,
    level: Annotated[
        str | None, one_of(*LEVELS), Query(description="action, component or architecture")
    ] = None,
    cursor: Cursor = None,
) -> ApiResponse:
    """List tasks for review, the last opened first."""
    wanted_state = read_word("state", state, _STATES)
    wanted_level = read_word("level", level, LEVELS)
    with site.readers.read() as connection:
        page = list_tasks(
            connection, state=wanted_state, level=wanted_level, limit=limit, cursor=cursor
        )
        return page_answer(page, lambda one: task_json(connection, one))


@router.get("/v1/tasks/{task_id}", "tasks.bodies.TaskAnswer")
def task(site: SiteDep, task_id: str) -> ApiResponse:
    """Show one by its id, or by its last eight digits or more, or its first."""
    with site.readers.read() as connection:
        return ApiResponse({"task": task_json(connection, get_task(connection, task_id))})


@router.post("/v1/tasks/{task_id}/decide", "tasks.bodies.TaskAnswer")
def decide(site: SiteDep, tasks: TasksDep, task_id: str, body: Decide) -> ApiResponse:
    """Approve or dismiss a blocked task, or say that an approved one is done.

    Nothing acts on a task by itself: to approve it says that somebody may. The same decision again
    changes nothing; another one than the first is answered with 409 and the first.
    """
    made = tasks.decide(task_id, body)
    with site.readers.read() as connection:
        return ApiResponse({"task": task_json(connection, made)})
