"""Spans of Hansard's own decorators: what is quoted of what a function took and gave."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard_collector.derivation.rows import derive
from hansard_collector.dialects.engine.item_views import SpanView
from hansard_collector.dialects.engine.normalisation import MessageCache, normalise
from hansard_store.steps.flags import SpanFlag
from tests.collector.dialects.maker import span


def agent(**attributes: Any) -> SpanView:
    operation = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}
    return span(operation | {key.replace("__", "."): value for key, value in attributes.items()})


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ({"question": "Where is it?"}, "Where is it?"),
        ({"question": "Where is it?", "times": 2}, "question: Where is it?"),
        ({"who": "Ann", "what": "refund"}, "who: Ann, what: refund"),
        ("Behind you.", "Behind you."),
        (
            {
                "messages": [
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": "?"},
                ]
            },
            "Hi",
        ),
        ({}, None),
        ([1, 2], "[1,2]"),
        (17, "17"),
    ],
)
def test_a_run_is_quoted_in_the_words_of_its_arguments_and_result(
    value: Any, quoted: str | None
) -> None:
    view = agent(hansard__input=json.dumps(value), hansard__output=json.dumps(value))

    made = derive(view, normalise(view, MessageCache()))

    assert (made.role, made.agent_name) == ("agent", "clerk")
    assert (made.first_input, made.last_output) == (quoted, quoted)


def test_without_a_text_in_them_they_are_quoted_as_json() -> None:
    view = agent(hansard__input='{"count": 2}', hansard__output='{"count": 2}')

    made = derive(view, normalise(view, MessageCache()))

    assert (made.first_input, made.last_output) == ("2", '{"count":2}')


def test_a_cancelled_agent_is_cancelled_and_not_failed() -> None:
    view = agent(hansard__cancelled=True)

    made = derive(view, normalise(view, MessageCache()))

    assert made.flags & SpanFlag.CANCELLED
    assert not made.flags & SpanFlag.ERROR
