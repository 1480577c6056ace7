"""Runs, steps and tool calls, recorded over HTTP by programs without the SDK."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import Header
from starlette.requests import Request

from hansard_web.api.request_bodies import JsonRoute, raw_body
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.sidecar.bodies import AnswerTool, AppendStep, CallTool, EndRun, StartRun
from hansard_web.sidecar.idempotency import Done, IdempotencyKey
from hansard_web.sidecar.request import SidecarDep
from hansard_web.sidecar.runs import answer_tool, append_step, call_tool, end_run, start_run

router = NounRouter("sidecar", route_class=JsonRoute)

Traceparent = Annotated[
    str | None, Header(description="W3C trace context of the caller; the body's stands back")
]


@router.post("/v1/runs/start", "sidecar.runs.StartedRun", status=201)
def begin_run(
    service: SidecarDep,
    request: Request,
    body: StartRun,
    idempotency_key: IdempotencyKey = None,
    traceparent: Traceparent = None,
) -> ApiResponse:
    """Begin a run. It is shown at once, and stays open until it is ended."""
    once = service.once("runs/start", idempotency_key, raw_body(request))
    return once.do(
        lambda: Done(
            start_run(service, body, once.ids, traceparent=traceparent),
            status=HTTPStatus.CREATED,
        )
    )


@router.post("/v1/runs/{run_id}/steps", "sidecar.runs.StepInput")
def tell_step(
    service: SidecarDep,
    request: Request,
    run_id: str,
    body: AppendStep,
    idempotency_key: IdempotencyKey = None,
) -> ApiResponse:
    """Begin a step, append inputs, tool calls and results to an open one, or end it."""
    once = service.once(f"runs/{run_id}/steps", idempotency_key, raw_body(request))
    return once.do(lambda: Done(append_step(service, run_id, body, once.ids)))


@router.post("/v1/runs/{run_id}/end", "sidecar.runs.EndedRun")
def finish_run(
    service: SidecarDep,
    request: Request,
    run_id: str,
    body: EndRun,
    idempotency_key: IdempotencyKey = None,
) -> ApiResponse:
    """End a run: what is open in it ends with it, marked as left open."""
    once = service.once(f"runs/{run_id}/end", idempotency_key, raw_body(request))
    return once.do(lambda: Done(end_run(service, run_id, body)))


@router.post("/v1/tools/call", "sidecar.runs.CalledTool")
def tell_tool_call(
    service: SidecarDep, request: Request, body: CallTool, idempotency_key: IdempotencyKey = None
) -> ApiResponse:
    """Tell that a tool is called: observed, not gated. The step is open until its result."""
    once = service.once("tools/call", idempotency_key, raw_body(request))
    return once.do(lambda: Done(call_tool(service, body, once.ids)))


@router.post("/v1/tools/result", "sidecar.runs.AnsweredTool")
def tell_tool_result(
    service: SidecarDep, request: Request, body: AnswerTool, idempotency_key: IdempotencyKey = None
) -> ApiResponse:
    """Tell what a tool gave, or why it failed."""
    once = service.once("tools/result", idempotency_key, raw_body(request))
    return once.do(lambda: Done(answer_tool(service, body, once.ids)))
