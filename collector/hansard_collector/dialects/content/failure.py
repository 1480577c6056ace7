"""What went wrong in a span: status ⊕ `error.type` ⊕ exception event ⊕ log (§20, row error)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hansard_collector.dialects.engine.span_reader import Reading, ReadRecord
from hansard_collector.dialects.engine.values import count, text
from hansard_compiler.calls import CallError

_ERROR_STATUS = 2
_EXCEPTIONS = ("exception", "gen_ai.client.operation.exception")
_LEFT = "GeneratorExit"
_LOGS = ("api_error", "claude_code.api_error", "gemini_cli.api_error")
EVENTS = frozenset({*_EXCEPTIONS, *_LOGS})
_HTTP_IN_TEXT = re.compile(
    r"\b(?:error code|status[ _]code|http(?:/[\d.]+)?|status)\W{1,3}([45]\d\d)\b", re.IGNORECASE
)
# The JavaScript SDKs of OpenAI and Anthropic: `429 Rate limit …`, `Error: 500 {"type": …`.
_HTTP_IN_FRONT = re.compile(r"(?:\w*Error: )?([45]\d\d) [A-Z{]")
_LONGEST_SEARCHED = 4096


def error_of(reading: Reading, found: Mapping[str, Any]) -> CallError | None:
    """Return the error of a failed span; None for one that did not fail.

    An exception event alone is no failure: programs record exceptions that they handle.
    """
    view = reading.view
    if view.status_code != _ERROR_STATUS and not found.get("failed"):
        return None
    if was_left(reading):
        return None
    exception = _last(reading.records(*_EXCEPTIONS))
    log = _last(reading.records(*_LOGS))
    message = (
        text(exception.get("exception.message"))
        or found.get("message")
        or text(view.status_message)
        or text(log.get("error"))
        or _output_text(reading)
    )
    sent_type = found.get("type")
    named_type = text(exception.get("exception.type"))
    is_number = sent_type is not None and sent_type.isdecimal()
    return CallError(
        type=named_type or sent_type if is_number else sent_type or named_type,
        message=message,
        http_status=_http_status(found, log=log, sent_type=sent_type, message=message),
    )


def was_left(reading: Reading, _: str = "") -> bool | None:
    """Whether a stream's reader left it before its end: Python closes the generator with this.

    Instrumentors that look for any exception call it a failure; nothing failed.
    """
    if reading.view.status_code != _ERROR_STATUS:
        return None
    named = text(_last(reading.records(*_EXCEPTIONS)).get("exception.type")) or ""
    return named.rpartition(".")[2] == _LEFT or None


def error_of_reason(
    reason: str | None, sent: str | None, error: CallError | None
) -> CallError | None:
    """Return the error of a call that ended for `reason`, as it was `sent`.

    A model that stopped with an error has failed, whatever the status of the span says.
    """
    if error is not None or reason != "error":
        return error
    return CallError(type=sent, message=f"the model call ended with finish reason {sent!r}")


def _last(records: list[ReadRecord]) -> Mapping[str, Any]:
    return records[-1].attributes if records else {}


def _output_text(reading: Reading) -> str | None:
    """OpenInference puts a tool's error message where its output would be."""
    value = reading.view.attributes.get("output.value")
    return text(value) if "openinference" in reading.marks else None


def _http_status(
    found: Mapping[str, Any], *, log: Mapping[str, Any], sent_type: str | None, message: str | None
) -> int | None:
    for status in (found.get("http_status"), count(log.get("status_code")), count(sent_type)):
        if status is not None and 400 <= status <= 599:
            return int(status)
    if not message:
        return None
    searched = message[:_LONGEST_SEARCHED]
    in_text = _HTTP_IN_FRONT.match(searched) or _HTTP_IN_TEXT.search(searched)
    return int(in_text[1]) if in_text else None
