"""Tool calls and results: what is sound is sent, what a provider would refuse is found before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.calls import Message, Part, TextPart, ToolCallPart, ToolResultPart
from hansard_compiler.providers.base import RenderInput, WireFormat
from tests.compiler.provider_schemas import assert_fits
from tests.compiler.render_inputs import FORMATS, PATHS, call, result, said, with_messages

by_provider = pytest.mark.parametrize("form", FORMATS, ids=lambda one: one.provider)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """A sound conversation: turns of a user, each answered by texts and rounds of tool calls."""
    messages: list[Message] = []
    numbers = iter(range(10_000))
    for _ in range(draw(st.integers(1, 4))):
        messages.append(said("user", draw(st.text(min_size=1)) + "?"))
        for _ in range(draw(st.integers(0, 3))):
            calls = [call(f"c{next(numbers)}") for _ in range(draw(st.integers(1, 3)))]
            text: list[Part] = [TextPart("Looking.")] if draw(st.booleans()) else []
            messages.append(Message("assistant", (*text, *calls)))
            answers = draw(st.permutations(calls))
            if draw(st.booleans()):
                parts = tuple(ToolResultPart(one.id, "x") for one in answers)
                messages.append(Message("tool", parts))
            else:
                messages.extend(result(one.id or "", "x") for one in answers)
        if draw(st.booleans()):
            messages.append(said("assistant", "Done."))
    return messages


def problems(form: WireFormat, messages: list[Message]) -> list[str]:
    return form.problems(form.render(with_messages(*messages)))


@by_provider
@given(messages=conversations())
def test_a_sound_conversation_has_no_problems(form: WireFormat, messages: list[Message]) -> None:
    assert problems(form, messages) == []


@pytest.mark.covers("PA-17")
@by_provider
@given(messages=conversations(), data=st.data())
def test_any_missing_call_or_result_is_found(
    form: WireFormat, messages: list[Message], data: st.DataObject
) -> None:
    pairing = [
        (index, part)
        for index, message in enumerate(messages)
        for part in message.parts
        if isinstance(part, ToolCallPart | ToolResultPart)
    ]
    if not pairing:
        return
    index, gone = data.draw(st.sampled_from(pairing))
    kept = tuple(part for part in messages[index].parts if part is not gone)

    broken = [*messages[:index], replace(messages[index], parts=kept), *messages[index + 1 :]]

    assert any(repr(gone.id) in problem for problem in problems(form, broken))


@pytest.mark.covers("PA-17")
@by_provider
def test_an_orphan_result_is_found(form: WireFormat) -> None:
    assert problems(form, [said("user", "Hi"), result("c9", "x")]) != []


@by_provider
def test_a_result_given_twice_is_found(form: WireFormat) -> None:
    messages = [Message("assistant", (call("c1"),)), result("c1", "x"), result("c1", "y")]

    assert problems(form, [said("user", "Hi"), *messages]) != []


def test_a_result_that_comes_later_is_sound_for_openai_and_not_for_anthropic() -> None:
    messages = [
        said("user", "Hi"),
        Message("assistant", (call("c1"),)),
        said("assistant", "Still looking."),
        said("user", "And?"),
        said("assistant", "Wait."),
        result("c1", "x"),
    ]

    assert problems(FORMATS[0], messages) == []
    assert problems(FORMATS[1], messages) == [
        "messages[2]: tool call 'c1' has no result in the message after it",
        "messages[4]: a result for 'c1', which the message before did not call",
    ]
    assert problems(FORMATS[2], messages) != []


def test_words_between_call_and_result_are_put_behind_the_result_for_anthropic() -> None:
    messages = [Message("assistant", (call("c1"),)), said("user", "Hurry."), result("c1", "x")]

    body = FORMATS[1].render(with_messages(said("user", "Hi"), *messages))

    assert [block["type"] for block in body["messages"][2]["content"]] == ["tool_result", "text"]
    assert FORMATS[1].problems(body) == []


def test_a_call_id_used_twice_and_reasoning_at_the_end_are_found() -> None:
    form = FORMATS[0]
    twice = [Message("assistant", (call("c1"), call("c1"))), result("c1", "x")]
    body = form.render(with_messages(said("user", "Hi")))
    body["input"].append({"type": "reasoning", "id": "rs_1", "summary": []})

    assert "tool call 'c1' needs an id of its own" in problems(form, twice)
    assert form.problems(body) == ["a reasoning item without the item it led to"]


@pytest.mark.parametrize("form", FORMATS[:3], ids=lambda one: one.provider)
@given(messages=conversations())
def test_what_is_rendered_fits_the_types_of_the_official_package(
    form: WireFormat, messages: list[Message]
) -> None:
    given: RenderInput = with_messages(*messages)

    assert_fits(PATHS[form.provider], form.render(given))
