"""What the routes of tasks answer."""

from __future__ import annotations

from hansard_store.bodies import Answer, Page
from hansard_store.tasks.json import TaskBody


class TaskAnswer(Answer):
    """One task as it is now."""

    task: TaskBody


class TaskList(Page):
    """Tasks, the last opened first."""

    items: list[TaskBody]
