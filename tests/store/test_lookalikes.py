"""Look-alikes of plain letters, digits and signs, and honest words that are none."""

from __future__ import annotations

import unicodedata

import pytest

from hansard_store.lookalikes import imitating_separator, imitating_word, skeleton


@pytest.mark.parametrize(
    "text",
    [
        "example\u0660com",  # the package's table has it between direction marks
        "example\u0701com",
        "example\u06d4com",  # a full stop that the table finds alike to a hyphen
        "example\u0589com/a",
        "10.0.0.0\u20448",
        "http:\u2044\u2044example.com",
    ],
)
def test_a_sign_that_passes_for_a_plain_one_is_found(text: str) -> None:
    assert imitating_separator(text) == text
    assert imitating_separator(f"go to {text} now") == text


@pytest.mark.parametrize(
    "word",
    [
        "\u246000",  # a circled 1
        "a\u03b8ice",
        "microsof\u03c4",
        "micro\u0455oft",
        "pa\u0561pal",  # an Armenian letter that no table names
        "goo\u05e1le",  # a Hebrew one between plain letters
        "al\u0131ce@example.com",
        "paypa\u0131.com",
        "https://b\u0131ll.example/pay",
    ],
)
def test_a_word_with_a_letter_of_another_script_is_found(word: str) -> None:
    assert imitating_word(word) == word or imitating_word(word) in word.split("/")
    assert imitating_word(f"pay {word} today") is not None


@pytest.mark.parametrize(
    "text",
    [
        "Größe und Straße, Übung macht den Meister",
        "l’été où le garçon a vu la façade du cœur naïf",
        "Ελληνικά: το κόστος της Αθήνας, όχι αύριο",
        "Привет, мир: сосна, ресурс, хорошо",
        "ışık kadın kıymet sıhhiye ılık İstanbul Iğdır yapı",
        "größe.de naïve.txt café@müller.de",
        "αx Δt kΩ μs λmax m² 1½ 3∶4 (1\u20442) 24\u20447 ①",
        "① Öffnen ② Schließen",
        "iPhoneを使う 使用xyz的abc 日本。",
        "السعر ٢٠٢٤ دولار۔ وGmail",
        "وקראתי בGmail",
        "OK۔",
    ],
)
def test_honest_words_are_not_flagged(text: str) -> None:
    for form in (text, unicodedata.normalize("NFD", text)):
        assert imitating_word(form) is None, form
        assert imitating_separator(form) is None, form


def test_a_dotless_i_reads_like_one_where_names_are_compared() -> None:
    assert skeleton("al\u0131ce") == "alice"
