"""Derived context: every claim about two calls is one that their messages show."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_collector.derived_context.alignment import common_subsequence
from hansard_collector.derived_context.origins import Origin, OriginEvidence, Sent, squeezed
from hansard_collector.derived_context.provenance import (
    Candidate,
    ItemChange,
    best_baseline,
    compare,
    estimated_tokens,
)


def sent(text: str, role: str = "user", *, call_id: str | None = None, form: str = "") -> Sent:
    """A message; `form` stands for what only the full hash sees: ids, reasoning."""
    said = hashlib.sha256(f"{role}\0{squeezed(text)}".encode()).digest()
    whole = hashlib.sha256(f"{role}\0{text}\0{call_id}\0{form}".encode()).digest()
    return Sent(whole, said, role, text, (call_id,) if call_id else ())


def changes(previous: list[Sent], current: list[Sent]) -> list[tuple[str, int | None, int | None]]:
    return [
        (row.change.value, row.previous, row.current) for row in compare(previous, current).rows
    ]


TEXTS = st.sampled_from(
    ["ok", "go on", "read the file a.py", "read the file b.py", "x" * 300, "x" * 100, "ok then"]
)
MESSAGES = st.builds(
    sent,
    TEXTS,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    call_id=st.sampled_from([None, "c1", "c2"]),
    form=st.sampled_from(["", "other"]),
)
LISTS = st.lists(MESSAGES, max_size=12)


@given(LISTS)
def test_a_call_against_itself_is_all_kept_and_breaks_nothing(messages: list[Sent]) -> None:
    comparison = compare(messages, messages)

    assert [row.change for row in comparison.rows] == [ItemChange.KEPT] * len(messages)
    assert all(row.same_bytes for row in comparison.rows)
    assert comparison.cache_break is None


@given(LISTS, LISTS)
def test_every_message_of_both_calls_stands_in_exactly_one_row(
    previous: list[Sent], current: list[Sent]
) -> None:
    rows = compare(previous, current).rows

    assert [row.current for row in rows if row.current is not None] == list(range(len(current)))
    assert sorted(row.previous for row in rows if row.previous is not None) == list(
        range(len(previous))
    )
    for row in rows:
        assert (row.current is None) == (row.change is ItemChange.DROPPED)
        assert (row.previous is None) == (row.change is ItemChange.ADDED)


@given(LISTS, LISTS)
def test_as_many_messages_are_kept_from_either_side(
    previous: list[Sent], current: list[Sent]
) -> None:
    there = compare(previous, current)
    back = compare(current, previous)

    assert there.count(ItemChange.KEPT) == back.count(ItemChange.KEPT)


@given(LISTS, LISTS)
def test_kept_and_reordered_messages_say_the_same_on_both_sides(
    previous: list[Sent], current: list[Sent]
) -> None:
    for row in compare(previous, current).rows:
        if row.change in (ItemChange.KEPT, ItemChange.REORDERED):
            assert row.previous is not None
            assert row.current is not None
            assert previous[row.previous].match_hash == current[row.current].match_hash
            assert row.same_bytes == (previous[row.previous].hash == current[row.current].hash)


@given(LISTS, LISTS)
def test_messages_put_behind_a_prompt_break_no_cache(
    previous: list[Sent], added: list[Sent]
) -> None:
    comparison = compare(previous, previous + added)

    assert comparison.cache_break is None
    assert [row.change for row in comparison.rows[len(previous) :]] == [ItemChange.ADDED] * len(
        added
    )


@given(LISTS, LISTS)
def test_the_break_is_the_first_message_that_differs(
    previous: list[Sent], current: list[Sent]
) -> None:
    broken = compare(previous, current).cache_break

    if broken is None:
        shorter = min(len(previous), len(current))
        assert [m.hash for m in previous[:shorter]] == [m.hash for m in current[:shorter]]
    else:
        at = broken.position
        assert [m.hash for m in previous[:at]] == [m.hash for m in current[:at]]
        assert previous[at].hash != current[at].hash


@given(LISTS, st.one_of(st.none(), st.integers(min_value=0, max_value=10**7)))
def test_estimated_tokens_add_up_to_what_was_billed(
    messages: list[Sent], billed: int | None
) -> None:
    sizes = estimated_tokens(messages, billed=billed)

    assert len(sizes) == len(messages)
    assert all(size >= 0 for size in sizes)
    if billed is not None and messages:
        assert sum(sizes) == billed


@given(st.lists(st.integers(0, 4), max_size=14), st.lists(st.integers(0, 4), max_size=14))
def test_alignment_is_as_long_as_the_textbook_says(left: list[int], right: list[int]) -> None:
    pairs = common_subsequence(left, right)

    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            table[i + 1][j + 1] = (
                table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
            )
    assert len(pairs) == table[-1][-1]
    assert all(left[i] == right[j] for i, j in pairs)
    assert pairs == sorted(set(pairs))
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)


def test_a_clock_in_the_system_prompt_is_a_rewrite_that_loses_the_cache_of_what_follows() -> None:
    rules = "You are a careful research assistant. Answer from sources you have opened. " * 60
    previous = [
        sent(rules + "It is 13:58:41 UTC", "system"),
        sent("hello"),
        sent("hi", "assistant"),
    ]
    current = [sent(rules + "It is 13:59:20 UTC", "system"), *previous[1:], sent("what is new?")]

    comparison = compare(previous, current)

    assert [row.change.value for row in comparison.rows] == ["rewritten", "kept", "kept", "added"]
    assert comparison.cache_break is not None
    assert comparison.cache_break.position == 0
    assert comparison.cache_break.cacheable
    assert comparison.cache_break.lost_tokens == sum(row.tokens for row in comparison.rows[1:3])


def test_a_prompt_too_short_to_be_cached_loses_nothing_that_was_cacheable() -> None:
    comparison = compare([sent("at 10:00", "system"), sent("hi")], [sent("at 10:01", "system")])

    assert comparison.cache_break is not None
    assert not comparison.cache_break.cacheable


def test_a_result_cut_after_its_first_part_is_truncated() -> None:
    whole = "".join(f"line {number}\n" for number in range(2000))
    previous = [sent("read it"), sent(whole, "tool", call_id="c1")]
    current = [sent("read it"), sent(whole[:4000] + "… [12,000 characters cut]", "tool")]

    row = compare(previous, current).rows[1]

    assert row.change is ItemChange.TRUNCATED
    assert row.cut is not None
    assert (row.cut.kept, row.cut.characters) == ("beginning", 4000)


def test_a_result_replaced_by_a_remark_is_known_by_its_call_id() -> None:
    previous = [sent("read it"), sent("a long file " * 50, "tool", call_id="c1"), sent("thanks")]
    current = [
        sent("read it"),
        sent("[old tool result cleared]", "tool", call_id="c1"),
        sent("thanks"),
    ]

    assert [change for change, _, _ in changes(previous, current)] == ["kept", "rewritten", "kept"]


def test_one_message_put_elsewhere_is_reordered() -> None:
    one, two, three = sent("first of all"), sent("second of all"), sent("third of all")

    rows = changes([one, two, three], [three, one, two])

    assert Counter(change for change, _, _ in rows) == {"kept": 2, "reordered": 1}
    assert ("reordered", 2, 0) in rows


def test_a_word_said_often_is_dropped_and_added_not_moved() -> None:
    ok, question, answer = sent("ok"), sent("what now?"), sent("nothing", "assistant")

    rows = changes([ok, question, ok, answer], [question, ok, answer, ok])

    assert [change for change, _, _ in rows] == ["dropped", "kept", "kept", "kept", "added"]


def test_same_words_in_another_form_are_kept_but_break_the_cache() -> None:
    previous = [sent("think", "assistant", form="with reasoning"), sent("go on")]
    current = [sent("think", "assistant"), sent("go on")]

    comparison = compare(previous, current)

    assert [row.change for row in comparison.rows] == [ItemChange.KEPT, ItemChange.KEPT]
    assert [row.same_bytes for row in comparison.rows] == [False, True]
    assert comparison.cache_break is not None
    assert comparison.cache_break.position == 0


def test_dropped_messages_stand_where_they_would_have_followed() -> None:
    one, two, three, four = (sent(word * 3) for word in ("alpha", "beta", "gamma", "delta"))

    assert changes([one, two, three], [one, three, four]) == [
        ("kept", 0, 0),
        ("dropped", 1, None),
        ("kept", 2, 1),
        ("added", None, 2),
    ]


def test_a_changed_tool_list_is_rewritten_however_much_it_changed() -> None:
    previous = [sent('[{"name":"search"}]', "tools"), sent("hello")]
    current = [sent('[{"name":"bash","description":"run"}]', "tools"), sent("hello")]

    comparison = compare(previous, current)

    assert comparison.rows[0].change is ItemChange.REWRITTEN
    assert comparison.rows[0].origin == Origin("tool list")


def test_origins_are_what_hashes_ids_and_equal_texts_show_and_nothing_else() -> None:
    answer = sent("I will look.", "assistant")
    evidence = OriginEvidence(
        outputs={answer.match_hash: Origin("output", "t-a", "chat")},
        ran={"c1": Origin("result", "t-b", "read_file")},
        asks={"c9": Origin("output", "t-c", "chat")},
        results={squeezed("The user likes tea."): Origin("memory", "t-d", "search memory")},
    )
    messages = [
        sent("You are helpful.", "system"),
        sent("What is in a.py?"),
        answer,
        sent("print(1)", "tool", call_id="c1"),
        sent("something never seen", "assistant"),
        sent("asked elsewhere", "assistant", call_id="c9"),
        sent("The user  likes tea."),
        sent("Remember the format.", "system"),
        sent("no such call", "tool", call_id="c2"),
    ]

    rows = compare([], messages, evidence=evidence).rows

    assert [(row.origin.kind, row.origin.step_id) for row in rows] == [
        ("system prompt", None),
        ("user", None),
        ("output", "t-a"),
        ("result", "t-b"),
        ("unknown", None),
        ("output", "t-c"),
        ("memory", "t-d"),
        ("unknown", None),
        ("unknown", None),
    ]


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        pytest.param([], None, id="first call"),
        pytest.param([(1, "a", 4, 4), (2, "sub", 1, 1)], 1, id="a sub-agent ran in between"),
        pytest.param([(1, "a", 4, 4), (2, "a", 6, 6)], 2, id="the latest goes furthest"),
        pytest.param([(1, "a", 0, 5), (2, "sub", 0, 1)], 1, id="first message always changes"),
        pytest.param([(1, "a", 1, 1), (2, "b", 1, 1)], 1, id="same prompt, own agent"),
        pytest.param([(1, "x", 0, 0), (2, "y", 0, 0)], None, id="nothing in common"),
        pytest.param([(1, "a", 0, 0), (2, "y", 0, 0)], 1, id="whole context replaced"),
    ],
)
def test_the_call_to_compare_with_is_the_one_this_call_goes_on_from(
    candidates: list[tuple[int, str, int, int]], expected: int | None
) -> None:
    found = best_baseline([Candidate(*one) for one in candidates], agent_name="a")

    assert (found.key if found else None) == expected


def test_a_thousand_equal_messages_are_laid_side_by_side_without_looking_at_every_pair() -> None:
    previous = [sent("start"), *[sent("ok")] * 1000, sent("end")]
    current = [sent("begin anew"), *[sent("ok")] * 999, sent("finish it")]

    comparison = compare(previous, current)

    assert comparison.count(ItemChange.KEPT) == 999
