"""Which failure a response's status and body amount to, the same for every provider."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

from hansard_compiler.providers.transport import failures
from hansard_compiler.providers.transport.exchange import Exchange, read_json
from hansard_compiler.providers.transport.failures import CallFailed
from hansard_compiler.redaction.redactor import Redactor

# What providers write into `error.code` and `error.type`. Codes say more than the HTTP status.
_BY_CODE: dict[str, type[CallFailed]] = {
    "authentication_error": failures.AuthenticationFailed,
    "billing_error": failures.QuotaExceeded,
    "billing_hard_limit_reached": failures.QuotaExceeded,
    "content_filter": failures.ContentFiltered,
    "content_policy_violation": failures.ContentFiltered,
    "context_length_exceeded": failures.ContextTooLong,
    "exceed_context_size_error": failures.ContextTooLong,
    "insufficient_quota": failures.QuotaExceeded,
    "invalid_api_key": failures.AuthenticationFailed,
    "model_not_found": failures.ModelUnknown,
    "overloaded_error": failures.Overloaded,
    "permission_error": failures.NotPermitted,
    "rate_limit_error": failures.RateLimited,
    "rate_limit_exceeded": failures.RateLimited,
    "request_too_large": failures.ContextTooLong,
    "server_error": failures.ProviderBroken,
    "server_is_overloaded": failures.Overloaded,
    "string_above_max_length": failures.ContextTooLong,
    "api_error": failures.ProviderBroken,
    "timeout_error": failures.TimedOut,
}
_BY_STATUS: dict[int, type[CallFailed]] = {
    401: failures.AuthenticationFailed,
    402: failures.QuotaExceeded,
    403: failures.NotPermitted,
    408: failures.TimedOut,
    413: failures.ContextTooLong,
    429: failures.RateLimited,
    503: failures.Overloaded,
    504: failures.TimedOut,
    529: failures.Overloaded,
}
# For providers that say it in words alone (Anthropic, vLLM, llama.cpp, Ollama).
_TOO_LONG = re.compile(
    r"prompt is too long|context (?:length|window|size)|maximum context|too many tokens", re.I
)
_MODEL = re.compile(r"\bmodel\b.*\b(?:not found|does not exist|unknown)\b|^model:", re.I)
_MOST_CHARACTERS = 1_000


def failure_of(exchange: Exchange) -> CallFailed:
    """Return the failure of an exchange whose last attempt got an error status."""
    attempt = exchange.last
    assert attempt is not None
    assert attempt.status is not None
    try:
        body = read_json(attempt.body)
    except ValueError:
        body = None
    error = error_in(body)
    kind = _kind(attempt.status, error)
    return made(
        kind,
        error.get("message") or f"HTTP {attempt.status}",
        exchange,
        http_status=attempt.status,
        code=_code(error),
    )


def failure_in_stream(error: Mapping[str, Any], exchange: Exchange) -> CallFailed:
    """Return the failure that an event of a stream reported."""
    kind = _kind(500, error)
    return made(kind, error.get("message") or "an error in the stream", exchange, code=_code(error))


def error_in(body: Any) -> Mapping[str, Any]:
    """Return the error object of a body, empty where there is none; some servers give a text."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, Mapping) else {}


def made(
    kind: type[CallFailed],
    message: Any,
    exchange: Exchange,
    *,
    http_status: int | None = None,
    code: str | None = None,
) -> CallFailed:
    """Return a failure with what its last attempt says about a retry."""
    attempt = exchange.last
    # Without secrets: a provider may repeat the key it does not accept.
    clean = _redactor().redact_text(str(message)[:_MOST_CHARACTERS]).text
    return kind(
        f"{exchange.provider}: {clean}",
        http_status=http_status,
        provider_code=code,
        retry_after_s=retry_after_s(attempt.headers) if attempt else None,
        request_id=attempt.request_id if attempt else None,
        exchange=exchange,
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the provider's retry delay in seconds, None where it sends none."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < 1e9 else None


def _kind(status: int, error: Mapping[str, Any]) -> type[CallFailed]:
    for key in ("code", "type"):
        known = _BY_CODE.get(str(error.get(key)))
        if known is not None:
            return known
    message = str(error.get("message", ""))
    if status in (400, 413, 422, 500) and _TOO_LONG.search(message):
        return failures.ContextTooLong
    if status == 404 and _MODEL.search(message):
        return failures.ModelUnknown
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return failures.ProviderBroken if status >= 500 else failures.BadRequest


def _code(error: Mapping[str, Any]) -> str | None:
    code = error.get("code") or error.get("type")
    return code if isinstance(code, str) else None


@lru_cache(maxsize=1)
def _redactor() -> Redactor:
    return Redactor(os.urandom(32))
