"""How figures read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_web.ui import format as figures

MS, S = 1_000_000, 1_000_000_000


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (740_000, "740 µs"),
        (288 * MS, "288 ms"),
        (999_600_000, "1.00 s"),
        (7_820 * MS, "7.82 s"),
        (59_996 * MS, "1 m 00 s"),
        (74 * S, "1 m 14 s"),
        (3 * 3600 * S + 4 * 60 * S, "3 h 04 m"),
        (51 * 3600 * S, "2 d 03 h"),
        (-5 * S, "−5.00 s"),
    ],
)
def test_durations_read_in_the_unit_that_fits(nanoseconds: int, shown: str) -> None:
    assert figures.duration(nanoseconds) == shown


def test_a_status_reads_as_words_and_waiting_for_a_decision_reads_alike_everywhere() -> None:
    waits = {figures.status_word(one) for one in ("awaiting", "blocked")}

    assert waits == {figures.WAITS}
    assert figures.status_word("revised") == "sent back"
    assert (figures.status_word("no_end"), figures.status_word("ok")) == ("no end", "OK")


@pytest.mark.parametrize(
    ("span_name", "shown"),
    [("invoke_agent mender", "mender"), ("fix", "fix"), ("invoke_agent", "invoke_agent"),
     ("", "(no name)"), (None, "(no name)")],
)  # fmt: skip
def test_a_span_of_an_agent_is_called_like_the_agent(span_name: str | None, shown: str) -> None:
    assert figures.agent_words(span_name) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (37_940, "37.9k"), (999_949, "999.9k"), (999_950, "1.00M")],
)
def test_token_counts_fit_into_five_signs(count: int, shown: str) -> None:
    assert figures.tokens(count) == shown


@pytest.mark.parametrize(
    ("usd_nano", "shown"),
    [
        (0, "$0"),
        (840, "<$0.00001"),
        (9_999, "<$0.00001"),
        (10_000, "$0.000010"),
        (520_000, "$0.00052"),
        (29_100, "$0.000029"),
        (78_000_000, "$0.078"),
        (140_000_000, "$0.14"),
        (996_000_000, "$1.00"),
        (1_234_560_000_000, "$1,234.56"),
        (-78_000_000, "−$0.078"),
    ],
)
def test_money_has_two_figures_below_a_dollar_and_cents_above(usd_nano: int, shown: str) -> None:
    assert figures.money(usd_nano) == shown


@given(st.integers(1, 994_999_999))
def test_small_money_never_reads_as_nothing(usd_nano: int) -> None:
    assert float(figures.money(usd_nano).removeprefix("<").removeprefix("$")) > 0


@given(st.integers(0, (1 << 63) - 1))
def test_every_moment_that_can_be_stored_can_be_shown(epoch_ns: int) -> None:
    shown = figures.iso_time(epoch_ns)

    assert shown.endswith("Z")
    assert shown[-10:-1] == f"{epoch_ns % S:09d}"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-9, "now"),
        (4, "now"),
        (59, "59 s ago"),
        (3599, "59 m ago"),
        (86_400, "24 h ago"),
        (172_800, "2 d ago"),
    ],
)
def test_ages_have_one_unit(seconds: int, shown: str) -> None:
    assert figures.ago(seconds * S) == shown
