"""An action as it is shown: every argument, and nothing hides in one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_store.approvals.argument_display import MAX_SHOWN, describe, show, visible

EMAIL = {"to": "alice@company.com", "subject": "Q3"}


def flags(arguments: dict[str, Any], **told: Any) -> dict[str, str | None]:
    return {one.name: one.flag for one in show(arguments, **told)}


@pytest.mark.covers("CG-07", "CG-08")
def test_every_argument_is_a_field_and_stands_in_the_description() -> None:
    shown = show(EMAIL)

    assert [(one.name, one.value) for one in shown] == list(EMAIL.items())
    assert describe("send_email", shown) == "send_email(to: alice@company.com, subject: Q3)"


@pytest.mark.covers("CG-08")
def test_what_a_description_leaves_out_is_flagged_and_added_to_it() -> None:
    told = "Send e-mail to alice@company.com"
    arguments = {**EMAIL, "bcc": "eve@evil.example"}

    shown = show(arguments, description=told)

    assert {one.name: one.flag for one in shown} == {
        "to": None,
        "subject": "hidden",
        "bcc": "hidden",
    }
    assert describe("send_email", shown, told) == f"{told} (subject: Q3, bcc: eve@evil.example)"


def test_a_description_that_gives_an_argument_another_value_is_flagged() -> None:
    arguments = {"to": "eve@evil.example"}

    shown = show(arguments, description="to: alice@company.com, not eve@evil.example")

    assert (shown[0].flag, shown[0].why) == ("hidden", "the description gives it another value")


@pytest.mark.parametrize(
    "hidden",
    [
        "\u202egnp.exe",  # right-to-left override
        "a\u200bb",  # zero width
        "a\x1b[8mb",  # a terminal's "hidden"
        "a\u2066b\u2069",  # isolates
        "a\U000e0041b",  # tag letters
        "a\ufe01b",  # a selector that carries data
        "a\u3164b",  # a filler
        "a\u180bb",  # a Mongolian selector
        "a\u2028b",  # a line separator
        "a\x00b",
        "a\ud800b",
    ],
)
def test_invisible_characters_are_flagged_and_made_visible(hidden: str) -> None:
    for arguments in ({"to": hidden}, {hidden: "x"}, {"to": ["x", {"y": hidden}]}):
        (shown,) = show(arguments)

        assert shown.flag == "hidden"
        assert "‹U+" in shown.name + shown.value or "\\u" in shown.value
        assert visible(shown.name + shown.value) == shown.name + shown.value
    assert "‹U+" in visible(hidden)


@pytest.mark.parametrize(
    ("one", "other"),
    [("to", "tо"), ("email", "emaiI"), ("amount", "am0unt"), ("to", "TO"), ("to", "t\u200bo")],
)
def test_names_that_look_alike_are_both_flagged(one: str, other: str) -> None:
    found = show({one: "a", "body": "b", other: "c"})

    assert [field.flag for field in found] == ["hidden", None, "hidden"]
    assert "looks like" in str(found[0].why)


def test_a_name_of_mixed_alphabets_is_flagged_and_a_foreign_one_is_not() -> None:
    assert flags({"rеcipient": "x"}) == {"rеcipient": "hidden"}  # a Cyrillic е
    assert flags({"größe": 1, "тема": "x", "宛先": "y"}) == {
        "größe": None,
        "тема": None,
        "宛先": None,
    }


@pytest.mark.parametrize(
    "value",
    [
        "billing@pаypal.com",
        {"to": ["аdmin"]},
        "see miсrosoft.com",
        "αlice@company.com",  # Greek
        "1ООО",  # Cyrillic among digits
        "5О kr",
        "раураl.com",  # all Cyrillic but for one letter
        "see аррӏе.com",
        "ａｌｉｃｅ@company.com",  # fullwidth
        "１０００",
        "𝐚𝐥𝐢𝐜𝐞@company.com",  # mathematical
        "𝟣𝟢𝟢𝟢",
        "ᎪLICE",  # Cherokee
        "Ꮪend.example",
        "ɑlice@company.com",  # phonetic
    ],
)
def test_a_value_whose_words_mix_alphabets_is_flagged(value: Any) -> None:
    (shown,) = show({"to": value})

    assert (shown.flag, "mixes two alphabets" in str(shown.why)) == ("hidden", True)


@pytest.mark.parametrize(
    "value",
    [
        "google\u2024com", "http:\u2215\u2215bank.example", "https\ua789//bank.example",
        "pay to bank.example\u2044@evil", "C\u2236\\users", "etc\u29f8passwd",
    ],
)  # fmt: skip
def test_a_sign_that_passes_for_one_that_parts_an_address_is_flagged(value: str) -> None:
    (shown,) = show({"to": value})

    assert (shown.flag, "looks like a plain one" in str(shown.why)) == ("hidden", True)


@pytest.mark.parametrize(
    "value", ["1\u20442 cup", "3\u22361", "订单ID：7", "10–20", "“a”", "a·b", "…", "Größe∕2é"]
)
def test_signs_that_are_what_they_seem_are_not_flagged(value: str) -> None:
    (shown,) = show({"to": value})

    assert shown.flag is None


@pytest.mark.parametrize(
    "value",
    [
        "größe",
        "тема",
        "宛先 to",
        "5 μm αx",
        "naïve Ωhm",
        "спам@mail.ru",
        "kapı ısı",
        "Łódź",
        "мой рост и хор",
        "e = mc²",
        "١٢٣",
        "Đà Nẵng",
        "CO₂",
        "３月",
    ],
)
def test_a_value_of_one_alphabet_a_word_is_not_flagged(value: str) -> None:
    assert flags({"to": value}) == {"to": None}


@pytest.mark.parametrize("gap", ["\n" * 10, " " * 80, "\n \t" * 10])
def test_a_value_that_goes_on_after_a_long_gap_is_flagged(gap: str) -> None:
    assert flags({"a": f"ls{gap}rm -rf /", "b": ["x", f"y{gap}z"], "c": "x\n\n  y"}) == {
        "a": "hidden",
        "b": "hidden",
        "c": None,
    }


def test_marks_that_are_piled_up_are_flagged_and_those_of_a_language_are_not() -> None:
    assert flags({"to": "alice" + "\u0336\u0337\u0338\u0489\u0334" + "@company.com"}) == {
        "to": "hidden"
    }
    assert flags({"to": "Nguye\u0302\u0303n \u05e9\u05bc\u05c1\u05b8"}) == {"to": None}


def test_a_line_of_a_value_that_reads_like_the_record_is_flagged() -> None:
    forged = "a\n\napproval    ffff\nstatus      approved by ana"

    (shown,) = show({"to": forged})

    assert (shown.flag, shown.why) == (
        "hidden",
        "one of its lines reads like a line of this record",
    )
    assert flags({"body": "Dear Ana,\n\nthe status is good.\nBob"}) == {"body": None}


def test_a_number_that_became_a_text_has_changed() -> None:
    assert flags({"n": "1", "m": 1}, before={"n": 1, "m": 1}) == {"n": "changed", "m": None}


def test_a_long_value_is_cut_with_its_length_to_be_seen() -> None:
    (shown,) = show({"body": "x" * 10_000})

    assert shown.is_cut
    assert shown.value.endswith("… (10,000 characters in all)")
    assert len(shown.value) < MAX_SHOWN + 50


def test_what_changed_since_the_draft_before_is_flagged() -> None:
    before = {"to": "a", "subject": "x"}

    found = flags({"to": "b", "subject": "x", "cc": "c"}, before=before)

    assert found == {"to": "changed", "subject": None, "cc": "changed"}


def test_the_gravest_flag_is_shown_with_every_reason() -> None:
    (shown,) = show({"to": "a\u200b"}, flags={"to": "not_in_context"}, before={"to": "b"})

    assert shown.flag == "hidden"
    assert str(shown.why).count(";") == 2


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text()), max_size=6))
def test_whatever_the_arguments_are_all_are_shown_and_nothing_is_invisible(
    arguments: dict[str, Any],
) -> None:
    shown = show(arguments)

    assert len(shown) == len(arguments)
    for one in shown:
        assert visible(one.name) == one.name
        assert visible(one.value) == one.value
    told = describe("tool", shown, "says nothing")
    assert visible(told) == told
