"""What reports of one error have in common: their words, without what varies."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.quality.detection import HALVES, Half, of_pairs
from hansard_store.detection.signatures import MOST_CHARS, signature_of

_SAFE = st.characters(codec="ascii", categories=["L", "N"])
_NAMES = st.text(_SAFE, min_size=1, max_size=12)
_IDS = st.one_of(
    st.uuids().map(str),
    st.integers(0, 2**128).map(lambda number: f"{number:032x}"),
    st.integers(0, 2**48).map(hex),
    st.integers(0, 2**40).map(str),
    st.tuples(st.sampled_from(["req", "call", "toolu"]), st.integers(0, 2**32)).map(
        lambda made: f"{made[0]}_a{made[1]}b"
    ),
)
_NUMBERS = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.floats(0, 1e6, allow_nan=False).map(repr),
    st.integers(0, 10**9).map(lambda number: f"{number:,}"),
)
_TIMES = st.datetimes(datetime(1980, 1, 1), datetime(2090, 1, 1)).flatmap(  # noqa: DTZ001
    lambda time: st.sampled_from(
        [
            time.isoformat(),
            time.isoformat(" ", "seconds"),
            f"{time.isoformat(timespec='milliseconds')}Z",
            time.replace(tzinfo=UTC).isoformat(),
            f"{time:%Y-%m-%d}",
            f"{time:%H:%M:%S}",
        ]
    )
)
_PATHS = st.one_of(
    st.lists(_NAMES, min_size=1, max_size=5).map(lambda names: "/" + "/".join(names)),
    st.lists(_NAMES, min_size=1, max_size=3).map(lambda names: "src/" + "/".join(names) + ".py"),
    st.lists(_NAMES, min_size=1, max_size=3).map(lambda names: "C:\\" + "\\".join(names)),
    st.lists(_NAMES, min_size=1, max_size=3).map(lambda names: "~/" + "/".join(names)),
)
_QUOTED = st.text(
    st.characters(exclude_characters="'\"`“”«»\\", exclude_categories=["Cs"]), max_size=20
).flatmap(lambda text: st.sampled_from([f"'{text}'", f'"{text}"', f"`{text}`", f"“{text}”"]))
_ANY = st.one_of(
    st.text(max_size=60),
    st.text("a1'\"`/\\.:-_ e+‹›<>#,T2Z“”f«»", max_size=40),
)


def report(id: str, number: str, time: str, path: str, quoted: str) -> str:
    return (
        f"ToolError: cannot read {path}: field {quoted} has {number} values (request {id}) "
        f"at {time}; try again"
    )


_REPORTS = st.builds(report, id=_IDS, number=_NUMBERS, time=_TIMES, path=_PATHS, quoted=_QUOTED)


@pytest.mark.covers("DI-03")
@given(_REPORTS, _REPORTS)
def test_reports_that_differ_in_variable_parts_have_one_signature(left: str, right: str) -> None:
    assert signature_of(left) == signature_of(right)


@given(_ANY)
def test_a_signature_is_its_own_signature(message: str) -> None:
    found = signature_of(message)

    assert signature_of(found) == found


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("permission denied: /etc/passwd", "no such file: /etc/passwd"),
        ("ValueError: 'a' is no number", "TypeError: 'a' is no number"),
        ("connection refused", "connection reset"),
        ("error E404", "warning W404"),
    ],
)
def test_errors_in_other_words_are_other_errors(left: str, right: str) -> None:
    assert signature_of(left) != signature_of(right)


@pytest.mark.parametrize(
    ("message", "signature"),
    [
        ("", ""),
        ("No module named 'requests'", "No module named <text>"),
        ("can't open it, don't ask", "can't open it, don't ask"),
        (f"run {uuid.UUID(int=1)} is gone", "run <#> is gone"),
        ("10.0.0.1:8080 refused -3 times", "<#>:<#> refused <#> times"),
        ("FAILED tests/test_a.py::test_x", "FAILED <path>::test_x"),
        ("GET https://api.example.com/v1?id=7 failed", "GET <url> failed"),
        ("this and/or that, n/a", "this and/or that, n/a"),
        ("key ‹redacted:openai-key:0a1b2c3d4e5f› is wrong", "key <hidden> is wrong"),
        ("line\none\n\n  two", "line one two"),
        ("took 1.5e-03 s, 200ms, v2", "took <#> s, <#>ms, v<#>"),
        ("deadbeef, 0xfa and 0xBEEF1 of call_a1b2", "<#>, <#> and <#> of <#>"),
    ],
)
def test_what_varies_gives_way_to_what_it_is(message: str, signature: str) -> None:
    assert signature_of(message) == signature


def test_a_long_message_is_told_by_its_beginning() -> None:
    beginning = "word " * (MOST_CHARS // 5)

    assert signature_of(beginning + "one end") == signature_of(beginning + "another end")


@pytest.mark.covers("DI-03")
@pytest.mark.parametrize("half", HALVES)
def test_labelled_pairs_are_told_apart(half: Half) -> None:
    told = of_pairs(half)

    assert told.mistaken == 0
    assert told.recall >= 0.8
    assert told.same + told.other == 64
