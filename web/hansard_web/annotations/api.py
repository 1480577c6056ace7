"""Annotations over HTTP: notes, scores and tags; scores that programs measure; the data set."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import Query
from pydantic import ConfigDict, Field, model_validator
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from hansard_compiler.compile.models import TopLevel
from hansard_compiler.models.annotations import (
    KINDS,
    ON_ONE,
    Annotate,
    Expected,
    RunId,
    ScoreName,
    ScoreValue,
    Text,
    Withdraw,
)
from hansard_compiler.models.json_schema import any_of
from hansard_compiler.models.memory import Name, StepId
from hansard_store.annotations.queries import (
    annotation_json,
    count_pruned,
    get_annotation,
    list_annotations,
)
from hansard_store.annotations.service import AnnotationService
from hansard_web.annotations.dataset import DatasetWanted, open_dataset
from hansard_web.annotations.panel import read_target
from hansard_web.api.openapi import answers
from hansard_web.api.parameters import FEW, Cursor, Limit, ScoreText, TagText, one_of
from hansard_web.api.queries import read_word
from hansard_web.api.request_bodies import JsonRoute
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep
from hansard_web.approvals.worker import person
from hansard_web.principals.dependencies import of_app

AnnotationsDep = Annotated[AnnotationService, of_app("annotations")]
router = NounRouter("annotations", route_class=JsonRoute)


class GiveScore(TopLevel):
    """A score that a program measured, or a model judged, with the names of gen_ai.evaluation.*."""

    model_config = ConfigDict(json_schema_extra=any_of(*ON_ONE))

    run_id: RunId | None = Field(default=None, description="what it is on, whole id: this,")
    step_id: StepId | None = Field(default=None, description="or this")
    name: ScoreName
    score: ScoreValue
    explanation: Text | None = None
    expected: Expected | None = None
    source: Literal["code", "llm"] = "code"
    by: Name | None = Field(default=None, description="the evaluator")

    @model_validator(mode="after")
    def _fits(self) -> GiveScore:
        self.annotate()
        return self

    def annotate(self) -> Annotate:
        """Return it as an annotation."""
        return Annotate(kind="score", **self.model_dump(exclude={"schema_version"}))


@router.post("/v1/annotations", "annotations.bodies.AnnotationAnswer", status=201)
def annotate(request: Request, service: AnnotationsDep, body: Annotate) -> ApiResponse:
    """Add a note, a score or a tag; a newer score of one name and author replaces the older."""
    made = service.write(body, by=person(request, None))
    return ApiResponse({"annotation": annotation_json(made)}, status_code=HTTPStatus.CREATED)


@router.post("/v1/scores", "annotations.bodies.AnnotationAnswer", status=201)
def give_score(service: AnnotationsDep, body: GiveScore) -> ApiResponse:
    """Add a score that a program measured, never in a person's name: `ingest` is enough for it."""
    made = service.write(body.annotate())
    return ApiResponse({"annotation": annotation_json(made)}, status_code=HTTPStatus.CREATED)


@router.post("/v1/annotations/{annotation_id}/withdraw", "annotations.bodies.AnnotationAnswer")
def withdraw(
    request: Request, service: AnnotationsDep, annotation_id: str, body: Withdraw
) -> ApiResponse:
    """Take an annotation back: it stays in the history, with who did it and why."""
    made = service.withdraw(annotation_id, body, by=person(request, None))
    return ApiResponse({"annotation": annotation_json(made)})


@router.get("/v1/annotations", "annotations.bodies.AnnotationList")
def list_of_annotations(
    site: SiteDep,
    limit: Limit,
    run: Annotated[str | None, Query(description="of a run and its steps")] = None,
    step: Annotated[str | None, Query(description="of one step")] = None,
    kind: Annotated[str | None, one_of(*KINDS), Query(description="note, score or tag")] = None,
    name: Annotated[str | None, Query(description="of a score; the tag itself")] = None,
    author: Annotated[str | None, Query()] = None,
    state: Annotated[
        str, one_of("current", "all"), Query(description="current, or all")
    ] = "current",
    cursor: Cursor = None,
) -> ApiResponse:
    """List annotations, the newest first, those that spans tell among them."""
    read_word("state", state, ("current", "all"))
    with site.readers.read() as connection:
        target = read_target(connection, run=run, step=step)
        page = list_annotations(
            connection, target=target, with_steps=bool(run), kind=read_word("kind", kind, KINDS),
            name=name or None, author=author or None, with_ended=state == "all", limit=limit,
            cursor=cursor,
        )  # fmt: skip
        pruned = target and count_pruned(connection, target, with_steps=bool(run))
    return page_answer(page, annotation_json, pruned=pruned)


class Lines(Response):
    """A JSON object a line."""

    media_type = "application/x-ndjson"


@router.get(
    "/v1/annotations/export",
    response_class=Lines,
    responses=answers("annotations.bodies.DatasetLine", description="a line a marked run or step"),
)
def export(
    site: SiteDep,
    tag: Annotated[list[TagText], Query(description="each of these", json_schema_extra=FEW)] = [],  # noqa: B006
    score: Annotated[
        list[ScoreText],
        Query(description="name, name:label, name>=0.5; each", json_schema_extra=FEW),
    ] = [],  # noqa: B006
    run: Annotated[str | None, Query(description="of one run and its steps")] = None,
) -> Response:
    """Write every run and step on which an annotation stands, with input, output and judgements."""
    selection = DatasetWanted.read(tuple(tag), tuple(score), run or None)
    body = open_dataset(site.readers, selection)
    headers = {"Content-Disposition": 'attachment; filename="dataset.jsonl"'}
    return StreamingResponse(body, media_type=Lines.media_type, headers=headers)


@router.get("/v1/annotations/{annotation_id}", "annotations.bodies.AnnotationAnswer")
def annotation(site: SiteDep, annotation_id: str) -> ApiResponse:
    """Show one by its id, or by its last eight digits or more, or its first."""
    with site.readers.read() as connection:
        return ApiResponse(
            {"annotation": annotation_json(get_annotation(connection, annotation_id))}
        )
