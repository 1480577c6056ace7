"""Everything that can go wrong between a compiled context and a model's response.

ProviderError
├── SetupError             nothing can be sent yet (a ConfigError too)
│   ├── PackageMissing       names the package and the extra that brings it
│   └── KeyMissing           names the variable to set
├── RequestRefused         refused here, nothing was sent
│   ├── NotRenderable        the provider's API has no form for something in the request
│   ├── BrokenPairs          tool calls without results, results without calls
│   ├── OverLimit            counted more tokens than allowed
│   └── FeatureOff           behind a flag that is off
└── CallFailed             something was sent; holds what was recorded and whether to try again
    ├── RateLimited  Overloaded  ProviderBroken  TimedOut  ConnectionFailed  StreamBroken
    ├── QuotaExceeded  ContextTooLong  AuthenticationFailed  NotPermitted  ModelUnknown
    ├── ContentFiltered  BadRequest  InvalidResponse
    └── AnswerTruncated      the answer ends where the token limit was
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from hansard_compiler.errors import ConfigError, HansardError

if TYPE_CHECKING:
    from hansard_compiler.providers.transport.exchange import Exchange


class ProviderError(HansardError):
    """A model call that did not come about, or not as it should."""

    code = "provider_error"


class SetupError(ProviderError, ConfigError):
    """Something must be installed or set before this provider can be called."""

    code = "provider_setup"


class PackageMissing(SetupError):
    """The provider's official package is not installed."""

    code = "provider_package_missing"

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"the package {package!r} is missing: pip install 'hansard[{extra}]'")
        self.package = package
        self.extra = extra


class KeyMissing(SetupError):
    """There is no key for the provider."""

    code = "provider_key_missing"

    def __init__(self, provider: str, variable: str) -> None:
        super().__init__(f"no key for {provider}: set {variable}, or pass api_key")
        self.provider = provider
        self.variable = variable


class RequestRefused(ProviderError):
    """Refused before anything was sent."""

    code = "request_refused"


class NotRenderable(RequestRefused):
    """Something in the request has no form in the provider's API."""

    code = "not_renderable"


class BrokenPairs(RequestRefused):
    """Tool calls and results that the provider would refuse; each problem is a sentence."""

    code = "broken_tool_pairs"

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class OverLimit(RequestRefused):
    """The request takes more tokens than allowed."""

    code = "over_token_limit"

    def __init__(self, tokens: int, limit: int, counted_by: str) -> None:
        super().__init__(f"the request takes {tokens} tokens ({counted_by}); the limit is {limit}")
        self.tokens = tokens
        self.limit = limit
        self.counted_by = counted_by


class FeatureOff(RequestRefused):
    """The request needs something that must be switched on first."""

    code = "feature_disabled"


class CallFailed(ProviderError):
    """A call without a usable response. `exchange` holds the bytes of every attempt.

    `retry_after_s` is the delay that the provider set, None without one.
    """

    code = "model_call_failed"
    is_retryable: ClassVar[bool] = False

    def __init_subclass__(cls, *, code: str, is_retryable: bool = False) -> None:
        cls.code, cls.is_retryable = code, is_retryable

    def __init__(
        self,
        message: str,
        *,
        http_status: int | None = None,
        provider_code: str | None = None,
        retry_after_s: float | None = None,
        request_id: str | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        super().__init__(message)
        self.http_status = http_status
        self.provider_code = provider_code
        self.retry_after_s = retry_after_s
        self.request_id = request_id
        self.exchange = exchange


class RateLimited(CallFailed, code="rate_limited", is_retryable=True):
    """Too many requests or tokens in a time; waiting helps."""


class Overloaded(CallFailed, code="overloaded", is_retryable=True):
    """The provider has no capacity at the moment."""


class ProviderBroken(CallFailed, code="provider_server_error", is_retryable=True):
    """The provider failed inside."""


class TimedOut(CallFailed, code="timed_out", is_retryable=True):
    """No response in time. The provider may have worked, and billed, all the same."""


class ConnectionFailed(CallFailed, code="connection_failed", is_retryable=True):
    """The provider was not reached."""


class StreamBroken(CallFailed, code="stream_interrupted", is_retryable=True):
    """A streamed response stopped before its end; what came is in `exchange`."""


class QuotaExceeded(CallFailed, code="quota_exceeded"):
    """The account is used up; waiting does not help."""


class ContextTooLong(CallFailed, code="context_too_long"):
    """The request is longer than the model's window."""


class AuthenticationFailed(CallFailed, code="authentication_failed"):
    """The key was not accepted."""


class NotPermitted(CallFailed, code="permission_denied"):
    """The key is good and may not do this."""


class ModelUnknown(CallFailed, code="model_unknown"):
    """No such model, or none for this account."""


class ContentFiltered(CallFailed, code="content_filtered"):
    """The provider would not answer because of content."""


class BadRequest(CallFailed, code="bad_request"):
    """The provider calls the request wrong."""


class InvalidResponse(CallFailed, code="invalid_response"):
    """The response is not what the provider's API promises."""


class AnswerTruncated(CallFailed, code="response_truncated"):
    """The response was cut at the token limit; what there is of it is usable."""
