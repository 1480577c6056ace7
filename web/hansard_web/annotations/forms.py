"""What the forms for notes, scores and tags do: plain posts, which htmx answers with the panel."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any

import apsw
from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_store.annotations.errors import AnnotationRefused, InvalidAnnotation
from hansard_store.annotations.queries import get_annotation
from hansard_store.steps.queries import get_step
from hansard_web.annotations.api import AnnotationsDep
from hansard_web.annotations.panel import AnnotationPanel, find_target, panel_of_run, panel_of_step
from hansard_web.app.addresses import way_back
from hansard_web.app.site import Site, SiteDep
from hansard_web.approvals.worker import person
from hansard_web.ui.forms import OwnForm

router = APIRouter()


@dataclass(frozen=True, slots=True)
class AnnotationsPage:
    """The panel alone: for htmx, or a page that says what is wrong."""

    annotations: AnnotationPanel


@router.post("/annotations", dependencies=[OwnForm])
def annotate(
    request: Request,
    site: SiteDep,
    service: AnnotationsDep,
    kind: Annotated[str, Form()] = "",
    run_id: Annotated[str, Form()] = "",
    step_id: Annotated[str, Form()] = "",
    name: Annotated[str, Form()] = "",
    value: Annotated[str, Form()] = "",
    label: Annotated[str, Form()] = "",
    text: Annotated[str, Form()] = "",
    expected: Annotated[str, Form()] = "",
    tag: Annotated[str, Form()] = "",
    by: Annotated[str, Form()] = "",
    back: Annotated[str, Form()] = "",
) -> Response:
    """Add a note, a score or a tag, and come back to what it is on."""
    typed = {
        "kind": kind, "name": name, "value": value, "label": label, "text": text,
        "expected": expected, "tag": tag, "by": by,
    }  # fmt: skip
    with site.readers.read() as connection:
        target = find_target(connection, run=run_id, step=step_id)
    try:
        fields = {**_fields_of(typed), target[0]: target[1]}
        service.through("page").write_json(fields, by=person(request, by.strip()))
    except AnnotationRefused as error:
        return _response(request, site, target, back, error=error, typed=typed)
    return _response(request, site, target, back)


@router.post("/annotations/{annotation_id}/withdraw", dependencies=[OwnForm])
def withdraw(
    request: Request,
    site: SiteDep,
    service: AnnotationsDep,
    annotation_id: str,
    reason: Annotated[str, Form()] = "",
    by: Annotated[str, Form()] = "",
    back: Annotated[str, Form()] = "",
) -> Response:
    """Take an annotation back, and come back to what it was on."""
    with site.readers.read() as connection:
        found = get_annotation(connection, annotation_id)
    target = ("step_id", found.step_id) if found.step_id else ("run_id", found.run_id)
    try:
        fields = {"reason": reason.strip() or None, "by": person(request, by.strip())}
        service.through("page").withdraw_json(annotation_id, fields)
    except AnnotationRefused as error:
        return _response(request, site, target, back, error=error)
    return _response(request, site, target, back)


def _fields_of(typed: dict[str, str]) -> dict[str, Any]:
    """Return the fields of a form, as the API takes them, without empty ones."""
    fields: dict[str, Any] = {name: typed[name].strip() for name in ("expected", "tag")}
    if typed["kind"] == "score":
        score = {"value": _number(typed["value"]), "label": typed["label"].strip() or None}
        fields |= {
            "name": typed["name"].strip(),
            "score": score,
            "explanation": typed["text"].strip(),
        }
    elif typed["kind"] == "note":
        fields["text"] = typed["text"].strip()
    return {"kind": typed["kind"], **{name: one for name, one in fields.items() if one}}


def _number(text: str) -> float | None:
    text = text.strip().replace(",", ".")
    try:
        return float(text) if text else None
    except ValueError:
        raise InvalidAnnotation([("value", f"{text[:40]!r} is no number; 0.9 is")]) from None


def _response(
    request: Request,
    site: Site,
    target: tuple[str, str],
    back: str,
    *,
    error: AnnotationRefused | None = None,
    typed: dict[str, str] | None = None,
) -> Response:
    field, whole_id = target
    here = way_back(back) if back else f"/{field[:-3]}s/{whole_id}"
    is_fragment = request.headers.get("hx-request") == "true"
    if error is None and not is_fragment:
        path = here.partition("#")[0]
        return RedirectResponse(f"{path}#annotations-{field[:-3]}-added", HTTPStatus.SEE_OTHER)
    with site.readers.read() as connection:
        panel = _panel(connection, field, whole_id, here)
    problem = "" if error is None else str(error)
    page = AnnotationsPage(replace(panel, problem=problem, typed=typed or {}, is_open=True))
    status = _status(error)
    if is_fragment:
        response = site.renderer.fragment(request, "annotations/_panel_only.html", page=page)
        response.status_code = status
        return response
    return site.renderer.page(request, "annotations.html", here="runs", page=page, status=status)


def _status(error: AnnotationRefused | None) -> HTTPStatus:
    if error is None:
        return HTTPStatus.OK
    return HTTPStatus.BAD_REQUEST if isinstance(error, InvalidAnnotation) else HTTPStatus.CONFLICT


def _panel(connection: apsw.Connection, field: str, whole_id: str, back: str) -> AnnotationPanel:
    if field == "run_id":
        return panel_of_run(connection, whole_id, back=back)
    return panel_of_step(
        connection, get_step(connection, whole_id, now_ns=time.time_ns()), back=back
    )
