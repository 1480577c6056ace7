"""A run and its steps as the published models."""

from __future__ import annotations

from pydantic import Field

from hansard_compiler.models.runs import RunRecord, StepRecord
from hansard_web.api.schemas import Page


class RunAndSteps(Page):
    """docs/schemas/RunRecord.json, and StepRecord.json for each step in the order they began."""

    run: RunRecord
    steps: list[StepRecord] = Field(description="a page of them")
    total: int = Field(description="steps of the run, all pages")
