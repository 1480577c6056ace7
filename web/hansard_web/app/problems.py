"""Every error as an answer: which status and code it has, and for whom it is worded.

API paths get the error object of DESIGN §14, OTLP paths a google.rpc.Status, pages and fragments a
page that says what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Annotated, Any, Final

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
from hansard_compiler.transcripts import errors as transcript_errors
from hansard_store.annotations import errors as annotation_errors
from hansard_store.approvals.errors import (
    ActionBlocked,
    ApprovalConflict,
    InvalidProposal,
    NotAnApprover,
)
from hansard_store.bodies import Answer, Body, Description
from hansard_store.error_groups import errors as error_group_errors
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
from hansard_store.runs.tombstones import RunDeletedError
from hansard_store.tasks import errors as task_errors
from hansard_web.api.values import dump
from hansard_web.app.security import HEADERS
from hansard_web.errors import (
    BodiesInMemory,
    EncodedPayloadError,
    NotificationsOff,
    PayloadTooLargeError,
)
from hansard_web.sidecar import errors
from hansard_web.sidecar.errors import TooManyCalls

# The class of an error that is nearest to its own counts; any other is answered with 500.
_STATUSES: Final[Mapping[type[HansardError], HTTPStatus]] = {
    kind: status
    for status, kinds in (
        (HTTPStatus.BAD_REQUEST, (
            InvalidQueryError, DigestMismatchError, InvalidAcknowledgement, InvalidProposal,
            principal_errors.NameReserved, memory_errors.InvalidMemory,
            annotation_errors.InvalidAnnotation, annotation_errors.SecretInName,
            task_errors.InvalidDecision, error_group_errors.InvalidErrorChange, errors.InvalidBody,
            compiling.InvalidInput,
            transcript_errors.InvalidConversationId, transcript_errors.InvalidMessage,
        )),
        (HTTPStatus.UNAUTHORIZED, (principal_errors.CredentialsRequired,)),
        (HTTPStatus.FORBIDDEN, (
            NotAnApprover, ActionBlocked, principal_errors.SelfApproval,
            principal_errors.ScopeMissing, memory_errors.WriterRefused, memory_errors.NotApproved,
            compiling.RequiredWithheld,
        )),
        (HTTPStatus.NOT_FOUND, (NotFoundError,)),
        (HTTPStatus.CONFLICT, (
            AmbiguousIdError, StaleCursorError, PayloadAlteredError, ApprovalConflict,
            NotReplayable, memory_errors.MemoryRefused, annotation_errors.AnnotationRefused,
            task_errors.TaskRefused, error_group_errors.ErrorChangeRefused,
            transcript_errors.TranscriptError, errors.NotOpen, errors.NotOwner,
            errors.ResultExists, errors.StillWorking, errors.NotRetained,
            NotificationsOff,
        )),
        (HTTPStatus.PRECONDITION_FAILED, (VersionConflictError,)),
        (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, (PayloadTooLargeError, memory_errors.TooLarge)),
        (HTTPStatus.UNSUPPORTED_MEDIA_TYPE, (EncodedPayloadError, errors.InvalidJson)),
        (HTTPStatus.UNPROCESSABLE_ENTITY, (
            errors.SidecarError, compiling.CompileError, PolicyRuleError, ScriptError,
            failures.RequestRefused,
        )),
        (HTTPStatus.PRECONDITION_REQUIRED, (errors.VersionRequired,)),
        (HTTPStatus.INTERNAL_SERVER_ERROR, (transcript_errors.UndecodableMessage,)),
        # The server lacks a package or a key; no other request of this kind will do better.
        (HTTPStatus.NOT_IMPLEMENTED, (
            errors.ProviderNotSetUp, compiling.ScorerUnavailable, failures.SetupError,
        )),
        (HTTPStatus.SERVICE_UNAVAILABLE, (
            ReportsUnusable, QueryLimitError, StoreBusyError, SchemaAlteredError, BodiesInMemory,
            StoreBusy, errors.RecordingDisabled, TooManyCalls,
        )),
        # Sent, and no usable answer came: the provider's own status stands in the details.
        (HTTPStatus.TOO_MANY_REQUESTS, (failures.RateLimited,)),
        (HTTPStatus.GATEWAY_TIMEOUT, (failures.TimedOut,)),
        (HTTPStatus.BAD_GATEWAY, (failures.CallFailed,)),
    )
    for kind in kinds
}  # fmt: skip
# What of an error its details show, for programs: numbers and places, never content. The first
# class that fits counts; a name in front of `=` is that of the detail.
_DETAILS: Final = (
    (AmbiguousIdError, "matches"),
    (compiling.InvalidBudget, "token_budget response_reserve"),
    (compiling.ItemTooLarge, "item_id found_bytes most_bytes"),
    (compiling.ScorerUnavailable, "scorer extra"),
    (PolicyRuleError, "at=where problem"),
    (failures.OverLimit, "tokens limit counted_by"),
    (failures.BrokenPairs, "problems"),
    (failures.CallFailed, "provider_status=http_status provider_code retry_after_s request_id"
                          " is_retryable"),
    (errors.ResultExists, "step_id"),
    (transcript_errors.HeadStale, "expected found"),
    (transcript_errors.ResultWithoutCall, "call_ids"),
    (transcript_errors.UndecodableMessage, "log position"),
)  # fmt: skip
# The client may retry the same request.
_TRY_AGAIN: Final = (BodiesInMemory, StoreBusy, StoreBusyError, TooManyCalls)
_PROGRAMS: Final = ("/v1", "/healthz", "/metrics", "/mcp", "/openapi.json")
_DOCUMENT: Final = "/v1/openapi.json"
_LONGEST_PATH: Final = 128  # in a message
_GRPC_CODES: Final = {
    HTTPStatus.FORBIDDEN: code_pb2.PERMISSION_DENIED,
    HTTPStatus.NOT_FOUND: code_pb2.UNIMPLEMENTED,
    HTTPStatus.METHOD_NOT_ALLOWED: code_pb2.UNIMPLEMENTED,
}


class ErrorDetail(Body):
    code: Annotated[str, Description("stable, for programs")]
    message: Annotated[str, Description("for people")]
    details: dict[str, Any]


class Error(Answer):
    error: ErrorDetail


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
    return next((_STATUSES[known] for known in kind.__mro__ if known in _STATUSES), None)


def _details_of(error: HansardError) -> dict[str, Any]:
    names = next((names for kind, names in _DETAILS if isinstance(error, kind)), "")
    pairs = (name.partition("=") for name in names.split())
    shown = {name: getattr(error, attribute or name) for name, _, attribute in pairs}
    match error:
        case RunDeletedError():
            stone = error.tombstone
            return {
                "run_id": stone.trace_id.hex(),
                "deleted_ns": str(stone.deleted_ns),
                "deleted_by": stone.deleted_by,
                "reason": stone.reason,
                "span_count": stone.span_count,
                "digest": f"sha256:{stone.digest.hex()}",
            }
        case StoreError() if error.details:
            return dict(error.details)
        case NotReplayable():
            return {**error.facts, "reason": error.reason.value, "replay_id": error.replay_id}
        case compiling.InvalidInput():
            problems = [{"at": one.where, "problem": one.what} for one in error.problems[:100]]
            return {"problems": problems, **shown}
        case compiling.RequiredOverBudget():
            return _over_budget(error)
        case compiling.RequiredWithheld():
            return {
                "items": [
                    {"item_id": item_id, "reason": reason, "rule_ids": rules}
                    for item_id, reason, rules in error.items
                ]
            }
    return shown


def _over_budget(error: compiling.RequiredOverBudget) -> dict[str, Any]:
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


def _invalid(error: RequestValidationError) -> Problem:
    # Only place and sentence: the library's own entries repeat the input, which may be a secret.
    problems = [
        {"at": ".".join(str(part) for part in found["loc"]), "problem": _sentence(found["msg"])}
        for found in error.errors()
    ]
    first = problems[0] if problems else {"at": "request", "problem": "is not valid"}
    message = f"{first['at']}: {first['problem']}"
    return Problem(HTTPStatus.BAD_REQUEST, "bad_request", message, {"problems": problems})


def _sentence(message: str) -> str:
    """Return a message of pydantic without what it puts before that of a validator of ours."""
    return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _of_routing(request: Request, problem: Problem) -> Problem:
    """Return that no route answers a request, with where the routes are described."""
    method, path = request.method[:16], request.url.path
    path = path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"
    match problem.status:
        case HTTPStatus.NOT_FOUND:
            message = f"no route {path}; {_DOCUMENT} describes all routes"
        case HTTPStatus.METHOD_NOT_ALLOWED:
            allowed = (
                problem.headers.get("allow") or problem.headers.get("Allow") or "other methods"
            )
            message = f"{path} does not take {method}, it takes {allowed}; see {_DOCUMENT}"
        case _:
            return problem
    return replace(problem, message=message, details={**problem.details, "openapi": _DOCUMENT})


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
        error = ErrorDetail(
            code=problem.code, message=problem.message, details=dict(problem.details)
        )
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
    return bytes(service.outlet.redactor.redact_bytes(error).data)


def add_handlers(app: FastAPI) -> None:
    """Make every error of the app an answer of this module."""

    async def handle(request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        if isinstance(error, HTTPException) and is_for_programs(request.url.path):
            problem = _of_routing(request, problem)
        return answer_problem(request, problem)

    async def handle_unforeseen(request: Request, error: Exception) -> Response:
        # Starlette answers these outside of every middleware, the protecting one included.
        response = answer_problem(request, problem_of(error))
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    for kind in (HansardError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, handle)
    app.add_exception_handler(Exception, handle_unforeseen)
