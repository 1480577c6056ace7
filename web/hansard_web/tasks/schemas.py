"""Tasks for review as the API describes them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hansard_store.principals.model import Method
from hansard_web.api.schemas import Answer, Body, Page
from hansard_web.memory.schemas import Supersession


class TaskSubject(Body):
    """What it is about; `name` null: all of that kind."""

    kind: Literal["tool", "model", "step", "memory", "component"]
    name: str | None = Field(description="of a memory, its type")


class TaskEvidence(Body):
    """One time that it happened, by the id of a step, an approval, a memory or a report."""

    kind: Literal["step", "approval", "memory", "report", "figure"]
    id: str = Field(description="of a figure, what was measured, in words")
    at: str
    ns: str


class TaskDecision(Body):
    """What a person decided, and when."""

    decision: Literal["approve", "dismiss"]
    by: str | None
    method: Method
    at: str
    ns: str
    origin: str | None = Field(description="page, api, cli")
    note: str | None


class TaskDone(Body):
    """Who said that it is done."""

    by: str | None
    method: Method
    at: str
    ns: str


class Task(Body):
    """Something that goes wrong again and again; nothing acts on it while it is blocked."""

    task_id: str
    state: Literal["blocked", "approved", "dismissed", "done"]
    review: bool = Field(description="a person has to decide")
    level: Literal["action", "component", "architecture"]
    rule: str
    pattern: str = Field(description="what repeats; one task of a pattern is open at most")
    subject: TaskSubject
    title: str
    description: str
    sample: str | None = Field(
        description="what the newest one says; null: nothing is kept of it any more"
    )
    count: int = Field(description="how often, none of them twice")
    first_at: str
    first_ns: str
    last_at: str
    last_ns: str
    threshold: int = Field(description="that was in force when it was last seen,")
    window_ns: str = Field(description="within this time")
    activity: list[int] = Field(description="how many in each 24th of the window, the oldest first")
    evidence: list[TaskEvidence] = Field(description="the first one and the newest")
    created_at: str
    created_ns: str
    updated_at: str
    updated_ns: str
    proposes: list[Supersession] = Field(description="what approving the task applies at once")
    decision: TaskDecision | None
    done: TaskDone | None


class TaskAnswer(Answer):
    """One task as it is now."""

    task: Task


class TaskList(Page):
    """Tasks, the last opened first."""

    items: list[Task]
