"""Errors: status ⊕ error.type ⊕ exception event ⊕ log."""

from __future__ import annotations

from typing import Any

import pytest

from hansard_compiler.calls import CallError
from tests.collector.dialects.maker import event, log, read

_CHAT = {"gen_ai.operation.name": "chat"}
_EXCEPTION = event(
    "exception",
    {"exception.type": "openai.RateLimitError", "exception.message": "Error code: 429 - Wait."},
)


@pytest.mark.parametrize(
    ("attributes", "more", "expected"),
    [
        (_CHAT, {"status": 2, "message": "no"}, CallError(None, "no")),
        (
            {**_CHAT, "error.type": "RateLimitError"},
            {"status": 2, "message": "Error code: 429 - Wait."},
            CallError("RateLimitError", "Error code: 429 - Wait.", 429),
        ),
        (
            {**_CHAT, "error.type": "429"},
            {"status": 2, "events": [_EXCEPTION]},
            CallError("openai.RateLimitError", "Error code: 429 - Wait.", 429),
        ),
        ({**_CHAT, "error.type": "500"}, {"status": 2}, CallError("500", None, 500)),
        (
            _CHAT,
            {"status": 2, "events": [_EXCEPTION]},
            CallError("openai.RateLimitError", "Error code: 429 - Wait.", 429),
        ),
        (
            _CHAT,
            {
                "status": 2,
                "logs": [
                    log(
                        "gen_ai.client.operation.exception",
                        {"exception.type": "Timeout", "exception.message": "slow"},
                    )
                ],
            },
            CallError("Timeout", "slow"),
        ),
        (
            {**_CHAT, "http.response.status_code": 503},
            {"status": 2, "message": "no"},
            CallError(None, "no", 503),
        ),
        (
            _CHAT,
            {"status": 2, "message": "status_code: 401, model_name: x"},
            CallError(None, "status_code: 401, model_name: x", 401),
        ),
        ({**_CHAT, "error.type": "timeout"}, {}, CallError("timeout", None)),
        (
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.level": "ERROR",
                "langfuse.observation.status_message": "broken",
            },
            {},
            CallError(None, "broken"),
        ),
        (
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.status": "error"},
            {"message": "failed"},
            CallError(None, "failed"),
        ),
        (
            {"litellm.provider.error.code": "429", "litellm.call_id": "x"},
            {"status": 2, "message": "Wait."},
            CallError("429", "Wait.", 429),
        ),
        (
            {"openinference.span.kind": "TOOL", "output.value": "KeyError: city"},
            {"status": 2},
            CallError(None, "KeyError: city"),
        ),
    ],
    ids=[
        "status alone", "error.type", "numeric error.type", "number alone", "exception event",
        "exception log", "http status", "status in the text", "error.type without status",
        "Langfuse level", "Strands tool status", "LiteLLM", "OpenInference tool",
    ],
)  # fmt: skip
def test_an_error_is_put_together_from_all_that_tell_of_it(
    attributes: dict[str, Any], more: dict[str, Any], expected: CallError
) -> None:
    assert read(attributes, **more).error == expected


@pytest.mark.parametrize(
    ("attributes", "more"),
    [
        (_CHAT, {"events": [_EXCEPTION]}),
        ({**_CHAT, "http.response.status_code": 404}, {}),
        ({"langfuse.observation.level": "WARNING", "langfuse.release": "1"}, {}),
        ({"success": False}, {}),
    ],
    ids=["handled exception", "http status alone", "warning", "a foreign key"],
)
def test_a_span_that_did_not_fail_has_no_error(
    attributes: dict[str, Any], more: dict[str, Any]
) -> None:
    assert read(attributes, **more).error is None


def test_a_failed_call_invents_no_answer_and_no_tokens() -> None:
    shown = read({**_CHAT, "gen_ai.request.model": "error-429"}, status=2, events=[_EXCEPTION])

    assert shown.call is not None
    assert shown.call.error == shown.error
    assert (shown.call.output, shown.call.finish_reason, shown.call.cost) == ((), None, None)
    assert not shown.call.tokens.any_known()


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("429 Rate limit reached", 429),
        ('Error: 500 {"type": "error"}', 500),
        ("500 Internal", 500),
        ("404 pages were read", None),
        ("the answer had 500 Words", None),
    ],
)
def test_a_number_in_front_of_a_message_is_its_http_status(
    message: str, status: int | None
) -> None:
    error = read(_CHAT, status=2, message=message).error

    assert error is not None
    assert error.http_status == status


@pytest.mark.parametrize("named", ["GeneratorExit", "builtins.GeneratorExit"])
def test_a_stream_that_its_reader_left_was_cancelled_and_did_not_fail(named: str) -> None:
    left = event("exception", {"exception.type": named, "exception.message": ""})

    step = read(_CHAT, status=2, message="GeneratorExit: ", events=[left])

    assert step.cancelled
    assert step.error is None


def test_a_failure_after_a_stream_was_left_is_one() -> None:
    left = event("exception", {"exception.type": "GeneratorExit"})

    step = read(_CHAT, status=2, events=[left, _EXCEPTION])

    assert step.error is not None
    assert not step.cancelled
