"""One conversation has one `match_hash` per message in every dialect."""

from __future__ import annotations

import pytest

from hansard_collector.dialects.engine.normalisation import MessageCache, normalise
from hansard_compiler.calls import (
    Message,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.collector.dialects.conversation import (
    ANSWER,
    ARGUMENTS,
    ASKED,
    CALL_ID,
    CONVERSATIONS,
    RESULT,
    SYSTEM,
    TOOL,
)

_GOLDEN = (
    Message("system", (TextPart(SYSTEM),)),
    Message("user", (TextPart(ASKED),)),
    Message("assistant", (ToolCallPart(CALL_ID, TOOL, ARGUMENTS),)),
    Message("tool", (ToolResultPart(CALL_ID, RESULT),)),
    Message("assistant", (TextPart(ANSWER),)),
)


@pytest.mark.parametrize("dialect", CONVERSATIONS)
def test_a_conversation_has_the_same_messages_in_every_dialect(dialect: str) -> None:
    shown = normalise(CONVERSATIONS[dialect], MessageCache())

    assert shown.role == "llm"
    assert shown.call is not None
    said = (*shown.call.input, *shown.call.output)
    assert [message.role for message in said] == [message.role for message in _GOLDEN], said
    assert [m.match_hash for m in said] == [m.match_hash for m in _GOLDEN], said
    assert len(shown.call.output) == 1


@pytest.mark.parametrize("dialect", CONVERSATIONS)
def test_tool_calls_and_results_keep_the_id_that_joins_them(dialect: str) -> None:
    shown = normalise(CONVERSATIONS[dialect], MessageCache())

    assert shown.call is not None
    parts = [part for message in shown.call.input for part in message.parts]
    ids = [part.id for part in parts if isinstance(part, ToolCallPart | ToolResultPart)]
    assert ids == [CALL_ID, CALL_ID]


@pytest.mark.parametrize("dialect", CONVERSATIONS)
def test_a_warm_cache_gives_the_same_as_an_empty_one(dialect: str) -> None:
    cache = MessageCache()

    first = normalise(CONVERSATIONS[dialect], cache)
    second = normalise(CONVERSATIONS[dialect], cache)

    assert first == second
