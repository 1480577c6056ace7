"""Characters that look like plain letters, digits and signs, by Unicode's table of confusables.

The table is that of Unicode Technical Standard #39, as the package `confusable-homoglyphs` ships
it. It is read on the first text that is not ASCII (0.1 s, once a process).
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from importlib.resources import files
from typing import Any, Final

_WORD: Final = re.compile(r"\w+")
_TOKEN: Final = re.compile(r"\S+")
_MARKS: Final = 4  # combining marks on one letter; no script needs so many
_PARTING: Final = frozenset("./:\\")
_FORMS: Final = ("<font>", "<wide>")  # of letters and digits, in Unicode's data
_NUMBER_FORMS: Final = ("<circle>", "<compat>")  # a circled 1 beside digits reads as one of them
# Letters of Latin alphabets are what they are, also where the table finds them alike: a dotless ı.
_LATIN_LETTERS: Final = range(0x00C0, 0x0250)
# In an address a letter is compared with plain ones: no name of a host or a mailbox is Turkish.
_ADDRESS: Final = re.compile(r"@|://|\w\.[A-Za-z]{2,}(?:[/:?#,;)\]]|$)")
# Scripts that are written beside Latin words without a space, or are not taken for Latin.
_NEIGHBOURS: Final = (
    "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "THAI", "LAO", "KHMER", "MYANMAR", "LATIN",
)  # fmt: skip
_NEAR_LATIN: Final = ("GREEK", "CYRILLIC", "ARMENIAN", "COPTIC", "CHEROKEE", "LISU")
# A fraction or a ratio means what it means with a plain sign.
_FRACTION: Final = re.compile(r"[\W_]*\d+[^\w\s]\d+[\W_]*")
# What Unicode names a full stop of another script, but for wide ones.
_FULL_STOPS: Final = (
    "\u0589\u06d4\u0701\u0702\u1362\u166e\u1803\u1809\u2cf9\u2cfe\u2e3c\ua4ff\ua60e\ua6f3\uff61"
)
_RIGHT_TO_LEFT: Final = ("R", "AL", "AN")
_DIRECTION_MARK: Final = "\u200e"  # around right-to-left characters, in the package's file


def imitating_word(text: str) -> str | None:
    """Return the first word that passes for plain letters or digits and is not; None for none.

    Such a word mixes look-alikes of other scripts with plain letters or digits, or consists of
    look-alikes alone beside plain ones (`раураl.com`), or is written in letters of another form
    (fullwidth, mathematical), or has a letter of another script after a small plain one, whether
    the table knows it or not (`aθice`). Words of one script, and formulas (`αx`), are what they
    seem, and a dotless ı is, but for addresses.
    """
    if text.isascii():
        return None
    for token in _TOKEN.findall(text):
        if token.isascii():
            continue
        has_plain = any(one.isascii() and one.isalnum() for one in token)
        if _ADDRESS.search(token) and any(one in _latin_table() for one in token):
            return str(token)
        for word in _WORD.findall(token):
            if not word.isascii() and _imitates(word, has_plain=has_plain):
                return str(word)
    return None


def imitating_separator(text: str) -> str | None:
    """Return the first word with a sign that passes for `.`, `/`, `:` or a backslash.

    All else in the word is plain, as in `http` before two division slashes. Fractions and ratios of
    two numbers, a full stop that ends the word, and the wide signs of texts that are written so,
    are what they seem.
    """
    if text.isascii():
        return None
    for token in _TOKEN.findall(text):
        if token.isascii() or not any(one.isascii() and one.isalnum() for one in token):
            continue
        if _FRACTION.fullmatch(token):
            continue
        name = token.rstrip(_FULL_STOPS)
        if not name.isascii() and "".join(_separators().get(one, one) for one in name).isascii():
            return str(token)
    return None


def has_stacked_marks(text: str) -> bool:
    """Whether marks are piled on a letter, as they are to cover what stands around it."""
    if text.isascii():
        return False
    piled = 0
    for one in text:
        piled = piled + 1 if unicodedata.category(one).startswith("M") else 0
        if piled >= _MARKS:
            return True
    return False


def skeleton(text: str) -> str:
    """Return what a text reads like: look-alikes as plain characters, case folded."""
    normal = unicodedata.normalize("NFKC", text)
    if normal.isascii():
        return normal.casefold()
    return "".join(_all().get(one, one) for one in normal).casefold()


def _imitates(word: str, *, has_plain: bool) -> bool:
    if any(_has_form(one, _FORMS) for one in word):
        return unicodedata.normalize("NFKC", word).isascii()
    plain = sum(one.isascii() and one.isalnum() for one in word)
    if plain and any(one.isnumeric() and _has_form(one, _NUMBER_FORMS) for one in word):
        return unicodedata.normalize("NFKC", word).isascii()
    if plain > 1 and _has_foreign_letter(word):
        return True
    foreign = [one for one in word if one in _table()]
    if not foreign:
        return False
    if plain:
        # One plain letter beside a Greek one is a formula.
        return plain > 1 or not all("GREEK" in unicodedata.name(one, "") for one in foreign)
    return has_plain and skeleton(word).isascii()


def _has_form(one: str, forms: tuple[str, ...]) -> bool:
    return unicodedata.decomposition(one).startswith(forms)


def _has_foreign_letter(word: str) -> bool:
    """Whether a letter of another script follows a small plain one, or stands between two."""
    for at, one in enumerate(word):
        if one.isascii() or not one.isalpha() or not word[at - 1 : at].islower():
            continue
        script = unicodedata.name(one, "").partition(" ")[0]
        is_after_plain = word[at - 1].isascii()
        is_before_plain = word[at + 1 : at + 2].isascii() and word[at + 1 : at + 2].islower()
        if script in _NEAR_LATIN and is_after_plain:
            return True
        if script not in _NEIGHBOURS and is_after_plain and is_before_plain:
            return True
    return False


@cache
def _data() -> dict[str, Any]:
    made = json.loads(files("confusable_homoglyphs").joinpath("confusables.json").read_bytes())
    return {source.strip(_DIRECTION_MARK) or source: alike for source, alike in made.items()}


@cache
def _separators() -> dict[str, str]:
    """Return the look-alikes of signs that part an address, and the full stops of all scripts."""
    return dict.fromkeys(_FULL_STOPS, ".") | {
        source: plain
        for source, alike in _data().items()
        if len(source) == 1 and not source.isascii() and not source.isalpha()
        if unicodedata.east_asian_width(source) not in "FW"
        for plain in [next((one["c"] for one in alike if one["c"] in _PARTING), "")]
        if plain
    }


@cache
def _table() -> dict[str, str]:
    """Return the look-alikes of single plain letters and digits, in other alphabets."""
    return {one: plain for one, plain in _all().items() if ord(one) not in _LATIN_LETTERS}


@cache
def _latin_table() -> dict[str, str]:
    """Return those of Latin alphabets."""
    return {one: plain for one, plain in _all().items() if ord(one) in _LATIN_LETTERS}


@cache
def _all() -> dict[str, str]:
    return {
        source: plain
        for source, alike in _data().items()
        if len(source) == 1 and not source.isascii() and source.isalnum()
        if unicodedata.bidirectional(source) not in _RIGHT_TO_LEFT
        for plain in [next((one["c"] for one in alike if _is_plain(one["c"])), "")]
        if plain
    }


def _is_plain(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text.isalnum()
