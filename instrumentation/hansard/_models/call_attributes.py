"""The request and response of a call, as attributes of the GenAI conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from hansard import semconv
from hansard._clients.bodies import USAGE, Attributes
from hansard._tracing.observation import clean_attribute
from hansard_compiler.errors import HansardError
from hansard_compiler.providers.formats.fields import find, integer, known, text, texts
from hansard_compiler.providers.transport.failures import CallFailed
from hansard_compiler.retention_modes import RetentionMode

if TYPE_CHECKING:
    from hansard._context.compiled_step import CompiledStep
    from hansard._runtime.recorder import Recorder
    from hansard_compiler.calls import Call
    from hansard_compiler.providers.base import RenderInput
    from hansard_compiler.providers.transport.exchange import Attempt, ProviderResponse

_TIERS: Final = {
    "openai": "openai.response.service_tier",
    "openai_compatible": "openai.response.service_tier",
    "anthropic": "anthropic.response.service_tier",
}


def of_request(request: RenderInput, provider: str, recorder: Recorder) -> Attributes:
    """Return what is known before anything is sent."""
    sampling = request.sampling
    found: Attributes = {
        semconv.HANSARD_SCHEMA_VERSION: semconv.SCHEMA_VERSION,
        semconv.OPERATION_NAME: "chat",
        semconv.PROVIDER_NAME: provider,
        semconv.REQUEST_MODEL: request.model,
    }
    found |= known(
        {
            "gen_ai.request.stream": True if request.stream else None,
            "gen_ai.request.max_tokens": integer(sampling.max_output_tokens),
            "gen_ai.request.temperature": sampling.temperature,
            "gen_ai.request.top_p": sampling.top_p,
            "gen_ai.request.seed": integer(sampling.seed),
            "gen_ai.request.reasoning.level": text(sampling.effort),
            "gen_ai.request.previous_response.id": text(request.previous_response_id),
            "gen_ai.output.type": "json" if request.output_schema else None,
        }
    )
    stop = texts(list(sampling.stop))
    # Stop sequences are words of the prompt's author.
    if stop and recorder.settings.retention is not RetentionMode.METADATA_ONLY:
        cleaned = clean_attribute(recorder, semconv.STOP_SEQUENCES, stop)
        found[semconv.STOP_SEQUENCES] = [str(word) for word in cleaned]  # type: ignore[union-attr]
    return found


def answered(raw: ProviderResponse) -> Attributes:
    """Return the provider's response, and the estimate of its cost before."""
    call, response = raw.call, raw.response
    reason = finish_reason_of(call)
    tier = text(response.get("service_tier")) or text(find(response, "usage.service_tier"))
    tokens = {key: integer(getattr(call.tokens, name)) for name, key in USAGE.items()}
    found = known(
        {
            "gen_ai.response.id": text(call.response_id),
            "gen_ai.response.model": text(call.response_model),
            "gen_ai.response.finish_reasons": [reason] if reason else None,
            semconv.TOKENS_ESTIMATED: integer(raw.metadata.get("estimated_input_tokens")),
            semconv.TOKENS_ESTIMATOR: text(raw.metadata.get("estimated_by")),
            semconv.CALL_INCOMPLETE_REASON: raw.shortfall.code if raw.shortfall else None,
        }
    ) | known(tokens)
    tier_key = _TIERS.get(call.provider or "")
    return found | ({tier_key: tier} if tier and tier_key else {})


def finish_reason_of(call: Call) -> str | None:
    """Return why a response ended, in the provider's word where it has one of its own for it."""
    return call.finish_reason_raw or call.finish_reason


def failed(error: BaseException) -> Attributes:
    """Return what a typed failure has beside its message: whether and when to retry."""
    if not isinstance(error, HansardError):
        return {}
    found: Attributes = {semconv.ERROR_CODE: error.code}
    if not isinstance(error, CallFailed):
        return found
    more: Mapping[str, Any] = {
        semconv.ERROR_RETRYABLE: error.is_retryable,
        semconv.ERROR_RETRY_AFTER_S: error.retry_after_s,
        semconv.ERROR_PROVIDER_CODE: text(error.provider_code),
    }
    return found | known(more)


def attempt_attributes(attempt: Attempt) -> Attributes:
    """Return what one try came back with."""
    found: Attributes = {
        f"http.response.header.{name}": [value] for name, value in attempt.headers.items()
    }
    return found | known(
        {
            "http.response.status_code": attempt.status,
            semconv.ERROR_TYPE: attempt.error,
        }
    )


def of_compile(compiled: CompiledStep | None) -> Attributes:
    """Return which compile a call is of."""
    if compiled is None:
        return {}
    return {
        semconv.COMPILE_ID: compiled.id,
        semconv.COMPILE_STABLE_PREFIX_HASH: compiled.stable_prefix_hash,
        semconv.COMPILE_VOLATILE_SUFFIX_HASH: compiled.volatile_suffix_hash,
    }


def server_of(address: str) -> Attributes:
    """Return where a request went."""
    parts = urlsplit(address)
    if not parts.hostname:
        return {}
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {
        semconv.SERVER_ADDRESS: parts.hostname,
        semconv.SERVER_PORT: port,
        "url.path": parts.path,
        "http.request.method": "POST",
    }
