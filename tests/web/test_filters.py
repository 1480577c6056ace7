"""The address of the runs list and the words of its filter box."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_web.api.times import parse_time
from hansard_web.runs.filters import (
    KEYS,
    LIST_KEYS,
    FilterTerm,
    ListState,
    parse_words,
    read_state,
    to_filter,
)

NOW = 1_800_000_000 * 1_000_000_000
HOUR = 3600 * 1_000_000_000


def typed(text: str) -> ListState:
    return read_state([("q", text)])


def test_conditions_typed_as_words_become_terms() -> None:
    state = typed('status:error agent:mender tool:"apply patch" duration>250ms cost>$0.05 hello')

    assert state.words == "hello"
    assert state.terms == (
        FilterTerm("status", "error"),
        FilterTerm("agent", "mender"),
        FilterTerm("tool", "apply patch"),
        FilterTerm("min_duration_ms", "250"),
        FilterTerm("min_cost", "0.05"),
    )


def test_a_name_with_a_dot_is_an_attribute() -> None:
    wanted = to_filter(typed("gen_ai.system:openai"), now_ns=NOW).filter

    assert wanted.attributes == (("gen_ai.system", "openai"),)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("colour:red", ("unknown filter “colour”. Searched as text",)),
        (
            "cost>much",
            ("“cost>much” has no value that cost can have. Searched as text",),
        ),
        ("a:b " * 500, ("unknown filter “a”. Searched as text",)),
        ('"colour:red" http://a.b localhost:8080 12:30 note: a', ()),
    ],
)
def test_a_word_that_looks_like_a_condition_and_is_none_is_pointed_out(
    text: str, problems: tuple[str, ...]
) -> None:
    assert to_filter(typed(text), now_ns=NOW).problems == problems


def test_words_with_colons_stay_words() -> None:
    terms, words = parse_words('http://example.com 12:30 note: "status:error"')

    assert terms == []
    assert words == ["http://example.com", "12:30", "note:", '"status:error"']


def test_a_filter_has_the_units_of_the_store() -> None:
    wanted = to_filter(typed("duration>1.5s cost>0.25 since:1h until:2026-01-01"), now_ns=NOW)

    assert wanted.filter.min_duration_ns == 1_500_000_000
    assert wanted.filter.min_cost_usd_nano == 250_000_000
    assert wanted.filter.since_ns == NOW - HOUR
    assert wanted.filter.until_ns == 1_767_225_600 * 1_000_000_000
    assert wanted.problems == ()


def test_values_that_cannot_be_meant_are_left_out_and_told() -> None:
    meant = to_filter(typed("status:broken since:soon agent:a"), now_ns=NOW)

    assert meant.filter.status == ()
    assert meant.filter.since_ns is None
    assert meant.filter.agent == ("a",)
    assert len(meant.problems) == 2
    assert "broken" in meant.problems[0]


def test_a_condition_is_put_on_and_off_by_the_same_toggle() -> None:
    state = typed("agent:mender")

    assert state.toggled("status", "error").toggled("status", "error") == state
    assert state.toggled("status", "error").url == "/?status=error&agent=mender"


def test_single_conditions_replace_each_other() -> None:
    state = typed("since:24h").setting("since", "7d")

    assert state.terms == (FilterTerm("since", "7d"),)


def test_narrowing_begins_again_at_the_first_page() -> None:
    state = read_state([("cursor", "abc"), ("agent", "a")])

    assert state.cursor == "abc"
    assert state.toggled("status", "error").cursor == ""


def test_unknown_parameters_are_left_out_of_the_canonical_address() -> None:
    assert read_state([("utm_source", "x"), ("agent", "")]).url == "/"


def test_only_the_two_runs_selected_last_are_compared() -> None:
    state = read_state([("compare", "a"), ("compare", "b"), ("compare", "a"), ("compare", "c")])

    assert state.compare == ("b", "c")


def test_times_may_be_ages_or_moments() -> None:
    assert parse_time("90m", now_ns=NOW) == NOW - 90 * 60 * 1_000_000_000
    assert parse_time("2027-01-15T08:00:00Z", now_ns=NOW) == NOW
    assert parse_time("2027-01-15T09:00:00+01:00", now_ns=NOW) == NOW
    with pytest.raises(ValueError, match="yesterday"):
        parse_time("yesterday", now_ns=NOW)


VALUES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(st.lists(st.tuples(st.sampled_from(KEYS), VALUES), max_size=6))
def test_an_address_reads_back_as_the_state_that_wrote_it(pairs: list[tuple[str, str]]) -> None:
    state = read_state(pairs)

    again = read_state(parse_qsl(state.query))

    assert again.url == state.url
    assert set(again.terms) == set(state.terms)


@given(st.text(max_size=80))
def test_any_text_in_the_box_can_be_read(text: str) -> None:
    state = typed(text)

    to_filter(state, now_ns=NOW)
    assert all(term.key in KEYS and term.value for term in state.terms)
    assert len({term.key for term in state.terms if term.key not in LIST_KEYS}) <= len(state.terms)
