"""Runs, steps and tool calls, told over HTTP by programs without the SDK."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import Header
from starlette.requests import Request

from hansard_web.api.openapi import answers
from hansard_web.api.request_bodies import JsonRoute, raw_body
from hansard_web.api.router import Answer, NounRouter
from hansard_web.sidecar.bodies import AnswerTool, AppendStep, CallTool, EndRun, StartRun
from hansard_web.sidecar.idempotency import Done, IdempotencyKey
from hansard_web.sidecar.request import SidecarDep
from hansard_web.sidecar.runs import append_step, end_run, start_run
from hansard_web.sidecar.tools import answer_tool, call_tool

router = NounRouter("sidecar", route_class=JsonRoute)

Traceparent = Annotated[
    str | None, Header(description="W3C trace context of the caller; the body's stands back")
]


@router.post(
    "/v1/runs/start",
    response_class=Answer,
    status_code=HTTPStatus.CREATED,
    responses=answers("sidecar.schemas.StartedRun", status=201),
)
def begin_run(
    service: SidecarDep,
    request: Request,
    body: StartRun,
    idempotency_key: IdempotencyKey = None,
    traceparent: Traceparent = None,
) -> Answer:
    """Begin a run. It is shown at once, and stays open until it is ended."""
    once = service.once("runs/start", idempotency_key, raw_body(request))
    ids = service.ids("runs/start", idempotency_key)
    return once.do(
        lambda: Done(
            start_run(service.sidecar, body, ids, traceparent=traceparent),
            status=HTTPStatus.CREATED,
        )
    )


@router.post(
    "/v1/runs/{run_id}/steps",
    response_class=Answer,
    responses=answers("sidecar.schemas.StepInput"),
)
def tell_step(
    service: SidecarDep,
    request: Request,
    run_id: str,
    body: AppendStep,
    idempotency_key: IdempotencyKey = None,
) -> Answer:
    """Begin a step, append inputs, tool calls and results to an open one, or end it."""
    route = f"runs/{run_id}/steps"
    once = service.once(route, idempotency_key, raw_body(request))
    ids = service.ids(route, idempotency_key)
    return once.do(lambda: Done(append_step(service.sidecar, run_id, body, ids)))


@router.post(
    "/v1/runs/{run_id}/end", response_class=Answer, responses=answers("sidecar.schemas.EndedRun")
)
def finish_run(
    service: SidecarDep,
    request: Request,
    run_id: str,
    body: EndRun,
    idempotency_key: IdempotencyKey = None,
) -> Answer:
    """End a run: what is open in it ends with it, marked as left open."""
    once = service.once(f"runs/{run_id}/end", idempotency_key, raw_body(request))
    return once.do(lambda: Done(end_run(service.sidecar, run_id, body)))


@router.post(
    "/v1/tools/call", response_class=Answer, responses=answers("sidecar.schemas.CalledTool")
)
def tell_tool_call(
    service: SidecarDep, request: Request, body: CallTool, idempotency_key: IdempotencyKey = None
) -> Answer:
    """Tell that a tool is called: observed, not gated. The step is open until its result."""
    once = service.once("tools/call", idempotency_key, raw_body(request))
    ids = service.ids("tools/call", idempotency_key)
    return once.do(lambda: Done(call_tool(service.sidecar, body, ids)))


@router.post(
    "/v1/tools/result", response_class=Answer, responses=answers("sidecar.schemas.AnsweredTool")
)
def tell_tool_result(
    service: SidecarDep, request: Request, body: AnswerTool, idempotency_key: IdempotencyKey = None
) -> Answer:
    """Tell what a tool gave, or why it failed."""
    once = service.once("tools/result", idempotency_key, raw_body(request))
    ids = service.ids("tools/result", idempotency_key)
    return once.do(lambda: Done(answer_tool(service.sidecar, body, ids)))
