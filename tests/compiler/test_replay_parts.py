"""Replay, the pure part: recipes, changes of requests and messages, forks, spread."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.calls import Call, Message, TextPart, ToolCallPart, ToolResultPart
from hansard_compiler.compile.engine import compile_context
from hansard_compiler.compile.models import CompilationRequest
from hansard_compiler.compile.record import stored_request
from hansard_compiler.models.runs import ReplayRecipe
from hansard_compiler.providers.from_telemetry import mutate_messages, rebuilt_from
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.mutations import parse_mutations, recipe_of
from hansard_compiler.replay.requests import item_ids, mutate_request
from hansard_compiler.replay.spread import Repeat, range_of, spread_of
from hansard_compiler.replay.turns import first_divergence, says_the_same, with_answer
from tests.compiler.compiling import item, ports, request

ITEMS = [
    item("rules", "system", "Be kind."),
    item("notes", "file", "order seven is in the post"),
    item("asked", "user_msg", "where is order seven?"),
]


# ---- recipes


@pytest.mark.covers("TS-10", "RP-12")
def test_a_recipe_keeps_overrides_and_the_ordered_list() -> None:
    given_list = [
        {"op": "set_model", "model": "a"},
        {"op": "set_budget", "token_budget": 9},
        {"op": "remove_item", "item_id": "notes"},
        {"op": "set_model", "model": "b"},
        {"op": "set_weights", "weights": {"trust": 2.0}},
    ]

    made = recipe_of("r", "run", "step", parse_mutations(given_list), "why")

    assert made.model_override == "b"
    assert made.provider_override is None
    assert made.compile_overrides == {"token_budget": 9, "weights": {"trust": 2.0}}
    assert made.context_mutations == given_list
    assert ReplayRecipe.model_validate_json(made.model_dump_json()) == made


@pytest.mark.parametrize(
    ("given_list", "told"),
    [
        ([{"op": "set_model", "model": "a"}, {"op": "fly"}], "change 2"),
        ([{"op": "edit_message", "position": -1, "text": ""}], "change 1, position"),
        (["remove_item"], "change 1"),
        ([{"op": "set_model", "model": "a"}] * 101, "at most 100"),
    ],
)
def test_a_change_that_cannot_be_meant_names_its_place(given_list: list[Any], told: str) -> None:
    with pytest.raises(NotReplayable, match=told) as refused:
        parse_mutations(given_list)

    assert refused.value.reason is ReplayReason.MUTATION_INVALID


# ---- compiles


@pytest.mark.covers("RP-08")
def test_what_is_removed_stays_a_candidate_and_says_why() -> None:
    whole = request(ITEMS)
    removed = mutate_request(whole, parse_mutations([{"op": "remove_item", "item_id": "notes"}]))

    made = {one.item_id: one for one in compile_context(removed, ports()).receipts}

    assert item_ids(removed) == item_ids(whole)
    assert (made["notes"].decision, made["notes"].reason.value) == ("exclude", "removed_by_replay")
    assert "post" not in str(compile_context(removed, ports()).payload)


@pytest.mark.parametrize("source", ["external_api", "https://example.com/a", "memory", "memory:m"])
def test_a_memory_from_outside_is_left_out_by_either_of_its_sources(source: str) -> None:
    outside = {"origin": "external", "url": "https://example.com/a"}
    told = {"id": "m", "memory_type": "note", "subject": "a", "content": "b", "confidence": 0}
    whole = request(ITEMS, memory_records=[{**told, "metadata": outside}])

    removed = mutate_request(whole, parse_mutations([{"op": "remove_source", "source": source}]))

    made = {one.item_id: one for one in compile_context(removed, ports()).receipts}
    assert made["m"].reason.value == "removed_by_replay"


def test_without_a_removal_a_request_is_stored_in_the_bytes_it_always_had() -> None:
    result = compile_context(request(ITEMS), ports())

    assert b"removed_items" not in stored_request(result).data


def test_the_stored_request_of_a_removal_compiles_to_the_same_again() -> None:
    removed = mutate_request(
        request(ITEMS), parse_mutations([{"op": "remove_item", "item_id": "notes"}])
    )
    first = compile_context(removed, ports())

    again = compile_context(
        CompilationRequest.model_validate_json(stored_request(first).data), ports()
    )

    assert again.compile_hash == first.compile_hash
    assert first.compile_hash != compile_context(request(ITEMS), ports()).compile_hash


def test_changes_apply_in_their_order() -> None:
    given_list = [
        {"op": "add_item", "item": {"id": "new", "kind": "file", "content": "one"}},
        {"op": "edit_item", "item_id": "new", "content": "two"},
    ]

    made = mutate_request(request(ITEMS), parse_mutations(given_list))

    assert made.context_items[-1].content == "two"
    with pytest.raises(NotReplayable):
        mutate_request(request(ITEMS), parse_mutations(given_list[::-1]))


# ---- messages

_ids = st.sampled_from(["a", "b", "c", "d"])
_texts = st.text("xyz", max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Calls, each answered later, with talk between them."""
    messages: list[Message] = [Message("user", (TextPart("go"),))]
    for call_id in draw(st.lists(_ids, unique=True, max_size=4)):
        call = ToolCallPart(call_id, "get", {"k": draw(st.integers(0, 2))})
        messages.append(Message("assistant", (TextPart(draw(_texts)), call)))
        messages.append(Message("tool", (ToolResultPart(call_id, draw(_texts)),)))
    messages.append(Message("user", (TextPart("and?"),)))
    return tuple(messages)


def _pairs(messages: tuple[Message, ...]) -> tuple[set[str | None], set[str | None]]:
    parts = [part for message in messages for part in message.parts]
    return (
        {part.id for part in parts if isinstance(part, ToolCallPart)},
        {part.id for part in parts if isinstance(part, ToolResultPart)},
    )


@pytest.mark.covers("RP-12")
@given(conversations(), st.lists(st.integers(0, 9), max_size=4))
def test_calls_and_results_are_never_parted(
    messages: tuple[Message, ...], positions: list[int]
) -> None:
    rebuilt = rebuilt_from(Call(request_model="m", input=messages))
    for position in positions:
        change = parse_mutations([{"op": "remove_message", "position": position}])
        with suppress(NotReplayable):  # there are not so many, or nothing would be left
            rebuilt = mutate_messages(rebuilt, change)

    calls, results = _pairs(rebuilt.messages)
    assert calls == results


# ---- forks


@given(conversations())
def test_a_conversation_parts_from_itself_nowhere(messages: tuple[Message, ...]) -> None:
    assert first_divergence(messages, messages) is None
    assert says_the_same(messages, messages)


@given(conversations(), st.integers(0, 3))
def test_the_first_call_that_differs_is_the_one_that_is_named(
    messages: tuple[Message, ...], wanted: int
) -> None:
    calls = [part for one in messages for part in one.parts if isinstance(part, ToolCallPart)]
    if wanted >= len(calls):
        return
    other = calls[wanted]
    changed = tuple(
        replace(
            message,
            parts=tuple(
                replace(part, arguments={"k": 99}) if part is other else part
                for part in message.parts
            ),
        )
        for message in messages
    )

    found = first_divergence(messages, changed)

    assert found is not None
    assert (found.kind, found.number, found.differs) == ("other_arguments", wanted, ("k",))
    assert "99" not in found.sentence


def test_new_words_take_the_recorded_ids() -> None:
    recorded = Message("assistant", (TextPart("old"), ToolCallPart("r1", "get", {})))
    found = Message("assistant", (TextPart("new"), ToolCallPart("f1", "get", {})))
    talk = (
        Message("user", (TextPart("go"),)),
        recorded,
        Message("tool", (ToolResultPart("r1", 1),)),
    )

    made = with_answer(talk, [recorded], [found])

    assert made is not None
    assert made[1].text == "new"
    assert made[1].parts[1] == ToolCallPart("r1", "get", {})
    assert with_answer(talk, [found], [recorded]) is None


# ---- spread


@pytest.mark.covers("RP-22")
def test_answers_are_grouped_by_what_they_say() -> None:
    def repeat(number: int, words: str, call_id: str) -> Repeat:
        parts = (TextPart(words), ToolCallPart(call_id, "get", {"k": 1}))
        return Repeat(str(number), (Message("assistant", parts),), 10, number, float(number))

    made = spread_of([repeat(1, "Yes.", "x"), repeat(2, "No.", "y"), repeat(4, "Yes. ", "z")])

    assert [one["step_ids"] for one in made["groups"]] == [["1", "4"], ["2"]]
    assert made["latency_ms"] == {"min": 1.0, "median": 2.0, "max": 4.0}


@given(st.lists(st.one_of(st.none(), st.integers(0, 100)), max_size=9))
def test_a_range_holds_its_values(values: list[int | None]) -> None:
    found = range_of(values)
    known = [value for value in values if value is not None]

    if not known:
        assert found is None
    else:
        assert found is not None
        assert found["min"] == min(known) <= found["median"] <= max(known) == found["max"]
