"""What the routes of annotations answer."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from hansard_compiler.models.annotations import Source
from hansard_store.annotations.queries import AnnotationBody
from hansard_store.bodies import Answer, Body, Description, Page


class _Judged(Body):
    source: Source | None
    author: str | None
    created_at: str


class DatasetScore(_Judged):
    """gen_ai.evaluation.name, .score.value, .score.label, .explanation"""

    name: str
    value: float | None
    label: str | None
    explanation: str | None


class DatasetNote(_Judged):
    text: str


class DatasetMessage(Body):
    """A message in the normal form of every dialect."""

    role: str
    name: NotRequired[str | None]
    parts: list[dict[str, Any]]


class DatasetExample(Body):
    """What is judged."""

    step_id: Annotated[str | None, Description("null: a run")]
    name: str
    role: Annotated[str, Description("run, llm, tool, agent, …")]
    status: str
    model: str | None
    started_at: str | None
    input: Annotated[
        list[DatasetMessage] | Any,
        Description("messages of a model call; of a tool its name and arguments; else its input"),
    ]
    tools: Annotated[list[dict[str, Any]], Description("what the model was offered")]
    output: Annotated[
        list[DatasetMessage] | Any,
        Description("messages of a model call; of a tool its result; else its output"),
    ]


class DatasetLine(Answer, DatasetExample):
    """A marked step; or a marked run, given by its first prompt and its last answer."""

    run_id: str
    expected: Annotated[str | None, Description("the newest expected output of a score or a note")]
    tags: list[str]
    scores: list[DatasetScore]
    notes: list[DatasetNote]
    agent: str | None
    conversation_id: str | None
    run_name: str


class AnnotationAnswer(Answer):
    """One annotation as it is now."""

    annotation: AnnotationBody


class AnnotationList(Page):
    """Annotations, the newest first."""

    items: list[AnnotationBody]
    pruned: Annotated[
        int | None,
        Description(
            "of the run or step asked for, how many that had ended are not kept; else null"
        ),
    ]
