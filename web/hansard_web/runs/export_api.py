"""Runs and steps as the OTLP they came in, streamed."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response, StreamingResponse

from hansard_web.api.parameters import one_of
from hansard_web.api.router import NounRouter
from hansard_web.app.site import SiteDep
from hansard_web.runs.export import FORMATS, JSON, LINES, PROTOBUF, open_export, open_raw

router = NounRouter("export")


@router.get(
    "/v1/steps/{step_id}/raw",
    responses={200: {"content": {JSON: {}}, "description": "OTLP/JSON of this span"}},
    response_class=Response,
)
def raw_step(site: SiteDep, step_id: str) -> Response:
    """Give one span, and the log records that carry its ids, as they came in."""
    return StreamingResponse(open_raw(site.readers, step_id), media_type=JSON)


@router.get(
    "/v1/runs/{run_id}/export",
    responses={
        200: {
            "content": {JSON: {}, PROTOBUF: {}, LINES: {}, "text/html": {}},
            "description": "otlp-json: one object with resourceSpans and resourceLogs. "
            "otlp-proto: TracesData, the spans only. jsonl: a line a slice of otlp-json. "
            "html: one self-contained file to read, 2,000 steps at most.",
        }
    },
    response_class=Response,
)
def export_run(
    site: SiteDep,
    run_id: str,
    format: Annotated[
        str, one_of(*FORMATS), Query(description="otlp-json, otlp-proto, jsonl or html")
    ] = "otlp-json",
) -> Response:
    """Give a run as it came in; sent to any OTLP receiver, it is the same run there."""
    export = open_export(site.readers, run_id, format)
    headers = {"Content-Disposition": f'attachment; filename="{export.name}"'}
    return StreamingResponse(export.body, media_type=export.media_type, headers=headers)
