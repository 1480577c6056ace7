"""What went wrong after a replay began, as one of the closed list of reasons."""

from __future__ import annotations

from hansard_compiler.calls import Json
from hansard_compiler.errors import HansardError
from hansard_compiler.providers.transport import failures
from hansard_compiler.replay.errors import NotReplayable, Reason

_REASONS = (
    (failures.KeyMissing, Reason.KEY_MISSING),
    (failures.PackageMissing, Reason.PACKAGE_MISSING),
    (failures.ModelUnknown, Reason.MODEL_UNKNOWN),
    (failures.RequestRefused, Reason.NOT_RENDERABLE),
    (failures.CallFailed, Reason.PROVIDER_FAILED),
)


def reason_of(error: BaseException) -> Reason:
    """Return the reason an error amounts to."""
    if isinstance(error, NotReplayable):
        return error.reason
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), Reason.INTERNAL)


def error_body(error: BaseException) -> Json:
    """Return an error as the report of a replay keeps it."""
    if isinstance(error, NotReplayable):
        return {"code": error.reason.value, "message": str(error), "details": error.facts}
    if not isinstance(error, HansardError):
        return {"code": "internal", "message": type(error).__name__, "details": {}}
    details: Json = {}
    if isinstance(error, failures.CallFailed):
        details = {
            "provider_status": error.http_status,
            "provider_code": error.provider_code,
            "retry_after_s": error.retry_after_s,
            "is_retryable": error.is_retryable,
        }
    return {"code": error.code, "message": str(error), "details": details}
