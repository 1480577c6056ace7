"""Which spans that call themselves model calls can be counted (DESIGN §7)."""

from __future__ import annotations

import pytest

from hansard_collector.derivation.rows import derive
from hansard_collector.dialects.engine.item_views import SpanView
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_compiler.calls import Call, CallError, Message, TextPart, Tokens

VIEW = SpanView(
    trace_id=b"t" * 16,
    span_id=b"s" * 8,
    parent_span_id=b"",
    name="chat",
    kind=3,
    start_ns=1,
    end_ns=2,
    status_code=0,
    status_message="",
    attributes={},
)
ASKED = (Message("user", (TextPart("What is the weather?"),)),)
SAID = (Message("assistant", (TextPart("Sunny."),)),)


def can_count(call: Call) -> bool:
    made = derive(VIEW, Normalised(role="llm", call=call), resource_tokens="")
    assert made.call is not None
    return made.call.is_candidate


@pytest.mark.parametrize(
    "call",
    [
        Call(tokens=Tokens(input=3)),
        Call(output=SAID),
        Call(error=CallError("timeout", None)),
        Call(input=ASKED, response_id="r1"),
        Call(input=ASKED, finish_reason="stop", finish_reason_raw="stop"),
        Call(input=ASKED, stream=True),
    ],
    ids=["usage", "answer", "failure", "response id", "finish reason", "unwatched stream"],
)
def test_a_call_that_tells_what_came_of_it_counts(call: Call) -> None:
    assert can_count(call)


def test_a_span_with_a_model_and_messages_alone_prepares_a_prompt_and_does_not_count() -> None:
    assert not can_count(Call(request_model="gpt-4o", input=ASKED))


@pytest.mark.parametrize(
    ("kind", "operation", "counts"),
    [(3, "chat", True), (3, "generate_content", True), (1, "chat", False), (3, None, False)],
)
def test_what_a_clients_span_says_it_asked_of_a_server_was_a_call(
    kind: int, operation: str | None, counts: bool
) -> None:
    call = Call(operation=operation, request_model="gpt-4o", input=ASKED)
    made = derive(VIEW._replace(kind=kind), Normalised(role="llm", call=call), resource_tokens="")

    assert made.call is not None
    assert made.call.is_candidate is counts
