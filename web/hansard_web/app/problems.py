"""Every error as an answer: which status and code it has, and for whom it is worded.

API paths get the error object of DESIGN §14, OTLP paths a google.rpc.Status, pages and fragments a
page that says what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from google.rpc import code_pb2
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hansard_collector.errors import StoreBusy
from hansard_collector.receivers.http_responses import status_response
from hansard_collector.receivers.paths import is_otlp_path
from hansard_compiler.compile import errors as compiling
from hansard_compiler.errors import AmbiguousIdError, HansardError, NotFoundError
from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.providers.scripted import ScriptError
from hansard_compiler.providers.transport import failures
from hansard_compiler.replay.errors import NotReplayable
from hansard_store.annotations import errors as annotation_errors
from hansard_store.approvals.errors import (
    ActionBlocked,
    ApprovalConflict,
    InvalidProposal,
    NotAnApprover,
)
from hansard_store.errors import (
    DigestMismatchError,
    InvalidQueryError,
    PayloadAlteredError,
    QueryLimitError,
    SchemaAlteredError,
    StaleCursorError,
    StoreBusyError,
    StoreError,
    VersionConflictError,
)
from hansard_store.memory import errors as memory_errors
from hansard_store.principals import errors as principal_errors
from hansard_store.reports.files import InvalidAcknowledgement, ReportsUnusable
from hansard_store.runs.tombstones import RunDeletedError, Tombstone
from hansard_store.tasks import errors as task_errors
from hansard_web.api.values import dump
from hansard_web.app.security import HEADERS
from hansard_web.errors import BodiesInMemory, EncodedPayloadError, PayloadTooLargeError
from hansard_web.sidecar import errors
from hansard_web.sidecar.errors import TooManyCalls
from hansard_web.transcripts.bodies import TRANSCRIPT_STATUSES, transcript_details

# Which status each refusal of the sidecar, the compiler, policy and providers is answered with.

# The first class that fits an error counts.
SIDECAR_STATUSES: Final = (
    (errors.RecordingDisabled, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.TooManyCalls, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.NotOpen, HTTPStatus.CONFLICT),
    (errors.NotOwner, HTTPStatus.CONFLICT),
    (errors.ResultExists, HTTPStatus.CONFLICT),
    (errors.StillWorking, HTTPStatus.CONFLICT),
    (errors.NotRetained, HTTPStatus.CONFLICT),
    (errors.InvalidBody, HTTPStatus.BAD_REQUEST),
    (errors.InvalidJson, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    (errors.VersionRequired, HTTPStatus.PRECONDITION_REQUIRED),
    (errors.ProviderNotSetUp, HTTPStatus.NOT_IMPLEMENTED),
    (errors.SidecarError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (compiling.InvalidInput, HTTPStatus.BAD_REQUEST),
    (compiling.RequiredWithheld, HTTPStatus.FORBIDDEN),
    (compiling.ScorerUnavailable, HTTPStatus.NOT_IMPLEMENTED),
    (compiling.CompileError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (PolicyRuleError, HTTPStatus.UNPROCESSABLE_ENTITY),
    # The server lacks a package or a key; no other request of this kind will do better.
    (failures.SetupError, HTTPStatus.NOT_IMPLEMENTED),
    (ScriptError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (failures.RequestRefused, HTTPStatus.UNPROCESSABLE_ENTITY),
    # Sent, and no usable answer came: the provider's own status stands in the details.
    (failures.RateLimited, HTTPStatus.TOO_MANY_REQUESTS),
    (failures.TimedOut, HTTPStatus.GATEWAY_TIMEOUT),
    (failures.CallFailed, HTTPStatus.BAD_GATEWAY),
)


def sidecar_details(error: HansardError) -> dict[str, Any]:
    """Return the numbers and places of a refusal, for programs; never content."""
    return dict(_details(error))


def _details(error: HansardError) -> Mapping[str, Any]:
    match error:
        case compiling.InvalidInput():
            problems = [{"at": one.where, "problem": one.what} for one in error.problems[:100]]
            return {"problems": problems, **_numbers(error)}
        case compiling.RequiredOverBudget():
            return _over_budget(error)
        case compiling.RequiredWithheld():
            return {
                "items": [
                    {"item_id": item_id, "reason": reason, "rule_ids": list(rules)}
                    for item_id, reason, rules in error.items
                ]
            }
        case compiling.ScorerUnavailable():
            return {"scorer": error.scorer, "extra": error.extra}
        case PolicyRuleError():
            return {"at": error.where, "problem": error.problem}
        case failures.OverLimit():
            return {"tokens": error.tokens, "limit": error.limit, "counted_by": error.counted_by}
        case failures.BrokenPairs():
            return {"problems": list(error.problems)}
        case failures.CallFailed():
            return {
                "provider_status": error.http_status,
                "provider_code": error.provider_code,
                "retry_after_s": error.retry_after_s,
                "request_id": error.request_id,
                "is_retryable": error.is_retryable,
            }
        case errors.ResultExists():
            return {"step_id": error.step_id}
    return {}


def _numbers(error: compiling.InvalidInput) -> Mapping[str, Any]:
    match error:
        case compiling.InvalidBudget():
            return {
                "token_budget": error.token_budget,
                "response_reserve": error.response_reserve,
            }
        case compiling.ItemTooLarge():
            return {
                "item_id": error.item_id,
                "found_bytes": error.found_bytes,
                "most_bytes": error.most_bytes,
            }
    return {}


def _over_budget(error: compiling.RequiredOverBudget) -> Mapping[str, Any]:
    return {
        "needed_tokens": error.needed_tokens,
        "available_tokens": error.available_tokens,
        "missing_tokens": error.needed_tokens - error.available_tokens,
        "token_budget": error.token_budget,
        "response_reserve": error.response_reserve,
        "items": [
            {"item_id": item_id, "reason": reason, "tokens": tokens}
            for item_id, reason, tokens in error.items[:100]
        ],
    }


_MEMORY: Final = (
    (memory_errors.WriterRefused, HTTPStatus.FORBIDDEN),
    (memory_errors.NotApproved, HTTPStatus.FORBIDDEN),
    (memory_errors.TooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (memory_errors.InvalidMemory, HTTPStatus.BAD_REQUEST),
    (memory_errors.MemoryRefused, HTTPStatus.CONFLICT),
)
_ANNOTATIONS: Final = (
    (annotation_errors.InvalidAnnotation, HTTPStatus.BAD_REQUEST),
    (annotation_errors.SecretInName, HTTPStatus.BAD_REQUEST),
    (annotation_errors.AnnotationRefused, HTTPStatus.CONFLICT),
)
_TASKS: Final = (
    (task_errors.InvalidDecision, HTTPStatus.BAD_REQUEST),
    (task_errors.TaskRefused, HTTPStatus.CONFLICT),
)
_PRINCIPALS: Final = (
    (principal_errors.CredentialsRequired, HTTPStatus.UNAUTHORIZED),
    (principal_errors.SelfApproval, HTTPStatus.FORBIDDEN),
    (principal_errors.ScopeMissing, HTTPStatus.FORBIDDEN),
    (principal_errors.NameReserved, HTTPStatus.BAD_REQUEST),
)
# The first class that fits an error counts.
_STATUSES: Final = (
    (NotFoundError, HTTPStatus.NOT_FOUND),
    (AmbiguousIdError, HTTPStatus.CONFLICT),
    (StaleCursorError, HTTPStatus.CONFLICT),
    (PayloadAlteredError, HTTPStatus.CONFLICT),
    (InvalidQueryError, HTTPStatus.BAD_REQUEST),
    (DigestMismatchError, HTTPStatus.BAD_REQUEST),
    (InvalidAcknowledgement, HTTPStatus.BAD_REQUEST),
    (ReportsUnusable, HTTPStatus.SERVICE_UNAVAILABLE),
    (QueryLimitError, HTTPStatus.SERVICE_UNAVAILABLE),
    (StoreBusyError, HTTPStatus.SERVICE_UNAVAILABLE),
    (SchemaAlteredError, HTTPStatus.SERVICE_UNAVAILABLE),
    (PayloadTooLargeError, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (BodiesInMemory, HTTPStatus.SERVICE_UNAVAILABLE),
    (EncodedPayloadError, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    (StoreBusy, HTTPStatus.SERVICE_UNAVAILABLE),
    (VersionConflictError, HTTPStatus.PRECONDITION_FAILED),
    (NotAnApprover, HTTPStatus.FORBIDDEN),
    (ApprovalConflict, HTTPStatus.CONFLICT),
    (ActionBlocked, HTTPStatus.FORBIDDEN),
    (InvalidProposal, HTTPStatus.BAD_REQUEST),
    (NotReplayable, HTTPStatus.CONFLICT),
    *_PRINCIPALS,
    *_MEMORY,
    *_ANNOTATIONS,
    *_TASKS,
    *SIDECAR_STATUSES,
    *TRANSCRIPT_STATUSES,
)
# The client may retry the same request.
_TRY_AGAIN: Final = (BodiesInMemory, StoreBusy, StoreBusyError, TooManyCalls)
_PROGRAMS: Final = ("/v1", "/healthz", "/mcp", "/openapi.json")
_GRPC_CODES: Final = {
    HTTPStatus.FORBIDDEN: code_pb2.PERMISSION_DENIED,
    HTTPStatus.NOT_FOUND: code_pb2.UNIMPLEMENTED,
    HTTPStatus.METHOD_NOT_ALLOWED: code_pb2.UNIMPLEMENTED,
}


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as the client receives it."""

    status: HTTPStatus
    code: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    link: str | None = None  # an address that works, where there is one


def problem_of(error: Exception) -> Problem:
    """Return the problem of an error; an unforeseen one without its details.

    The server logs those: Starlette raises such an error again once it is answered.
    """
    match error:
        case HansardError():
            headers = {"Retry-After": "1"} if isinstance(error, _TRY_AGAIN) else {}
            status = problem_status(type(error)) or HTTPStatus.INTERNAL_SERVER_ERROR
            return Problem(status, error.code, str(error), _details_of(error), headers=headers)
        case RequestValidationError():
            return _invalid(error)
        case HTTPException():
            status = HTTPStatus(error.status_code)
            code = status.phrase.lower().replace(" ", "_").replace("-", "_")
            return Problem(status, code, error.detail, headers=dict(error.headers or {}))
    return Problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "internal",
        "Hansard failed in a way it should not; its log says how",
    )


def problem_status(kind: type[HansardError]) -> HTTPStatus | None:
    """Return what errors of a class are answered with; None: no answer is made of them."""
    return next((status for known, status in _STATUSES if issubclass(kind, known)), None)


def _details_of(error: HansardError) -> dict[str, Any]:
    match error:
        case RunDeletedError():
            return _tombstone_json(error.tombstone)
        case AmbiguousIdError():
            return {"matches": error.matches}
        case StoreError() if error.details:
            return dict(error.details)
        case NotReplayable():
            details = {"reason": error.reason.value, "replay_id": error.replay_id}
            return {**error.facts, **details}
    return sidecar_details(error) or transcript_details(error)


def _tombstone_json(stone: Tombstone) -> dict[str, Any]:
    return {
        "run_id": stone.trace_id.hex(),
        "deleted_ns": str(stone.deleted_ns),
        "deleted_by": stone.deleted_by,
        "reason": stone.reason,
        "span_count": stone.span_count,
        "digest": f"sha256:{stone.digest.hex()}",
    }


def _invalid(error: RequestValidationError) -> Problem:
    # Only place and sentence: the library's own entries repeat the input, which may be a secret.
    problems = [
        {"at": ".".join(str(part) for part in found["loc"]), "problem": found["msg"]}
        for found in error.errors()
    ]
    first = problems[0] if problems else {"at": "request", "problem": "is not valid"}
    message = f"{first['at']}: {first['problem']}"
    return Problem(HTTPStatus.BAD_REQUEST, "bad_request", message, {"problems": problems})


def is_for_programs(path: str) -> bool:
    """Whether programs ask there, which read JSON."""
    return path.startswith("/v1/") or path in _PROGRAMS


def answer_problem(request: Request, problem: Problem) -> Response:
    """Answer in the kind of body that the path promises."""
    if is_otlp_path(request.url.path, request.method):
        # Only where this process has no OTLP endpoint: that one answers for itself.
        return status_response(
            request.headers,
            http_code=problem.status,
            grpc_code=_GRPC_CODES.get(problem.status, code_pb2.INTERNAL),
            message=problem.message,
            headers=problem.headers,
        )
    if is_for_programs(request.url.path):
        error = {
            "code": problem.code,
            "message": problem.message,
            "details": dict(problem.details),
        }
        return Response(
            _without_secrets(request, dump({"schema_version": "1", "error": error})),
            media_type="application/json",
            status_code=problem.status,
            headers=dict(problem.headers),
        )
    response: Response = request.app.state.site.renderer.page(
        request,
        "error.html",
        here="",
        page=problem,
        status=problem.status,
        headers=problem.headers,
    )
    return response


def _without_secrets(request: Request, error: bytes) -> bytes:
    """Return an error as the store would keep it: ids and names that it repeats may hold a key."""
    service = request.app.state.sidecar
    if service is None:
        return error
    return bytes(service.sidecar.outlet.redactor.redact_bytes(error).data)


def add_handlers(app: FastAPI) -> None:
    """Make every error of the app an answer of this module."""

    async def handle(request: Request, error: Exception) -> Response:
        return answer_problem(request, problem_of(error))

    async def handle_unforeseen(request: Request, error: Exception) -> Response:
        # Starlette answers these outside of every middleware, the protecting one included.
        response = answer_problem(request, problem_of(error))
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    for kind in (HansardError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, handle)
    app.add_exception_handler(Exception, handle_unforeseen)
