"""The bodies of annotations as OpenAPI describes them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hansard_web.api import bodies as models

# A line of an exported data set, as the OpenAPI document describes it and tests check it.

Source = Literal["human", "code", "llm"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Judged(_Part):
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


class DatasetMessage(_Part):
    """A message in the normal form of every dialect."""

    role: str
    name: str | None = None
    parts: list[dict[str, Any]]


class DatasetLine(_Part):
    """A marked step; or a marked run, given by its first prompt and its last answer."""

    schema_version: Literal["1"]
    run_id: str
    step_id: str | None = Field(description="null: a run")
    name: str
    role: str = Field(description="run, llm, tool, agent, …")
    status: str
    model: str | None
    started_at: str | None
    input: list[DatasetMessage] | Any = Field(
        description="messages of a model call; of a tool its name and arguments; else its input"
    )
    tools: list[dict[str, Any]] = Field(description="what the model was offered")
    output: list[DatasetMessage] | Any = Field(
        description="messages of a model call; of a tool its result; else its output"
    )
    expected: str | None = Field(description="the newest expected output of a score or a note")
    tags: list[str]
    scores: list[DatasetScore]
    notes: list[DatasetNote]
    agent: str | None
    conversation_id: str | None
    run_name: str


class AnnotationAnswer(models.Answer):
    """One annotation as it is now."""

    annotation: models.Annotation


class AnnotationList(models.Page):
    """Annotations, the newest first."""

    items: list[models.Annotation]
    pruned: int | None = Field(
        description="of the run or step asked for, how many that had ended are not kept; else null"
    )
