"""Which status each refusal of the sidecar, the compiler, policy and providers is answered with."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from hansard_compiler.compile import errors as compiling
from hansard_compiler.errors import HansardError
from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.providers.scripted import ScriptError
from hansard_compiler.providers.transport import failures
from hansard_web.sidecar import errors

# The first class that fits an error counts.
SIDECAR_STATUSES: Final = (
    (errors.RecordingOff, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.TooManyCalls, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.NotOpen, HTTPStatus.CONFLICT),
    (errors.NotOurs, HTTPStatus.CONFLICT),
    (errors.AlreadyAnswered, HTTPStatus.CONFLICT),
    (errors.StillWorking, HTTPStatus.CONFLICT),
    (errors.NotKept, HTTPStatus.CONFLICT),
    (errors.BadBody, HTTPStatus.BAD_REQUEST),
    (errors.NotJson, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    (errors.VersionNeeded, HTTPStatus.PRECONDITION_REQUIRED),
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
        case errors.AlreadyAnswered():
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
