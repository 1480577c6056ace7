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
# Letters of Latin alphabets are what they are, also where the table finds them alike: a dotless ı.
_LATIN_LETTERS: Final = range(0x00C0, 0x0250)


def imitating_word(text: str) -> str | None:
    """Return the first word that passes for plain letters or digits and is not; None for none.

    Such a word mixes look-alikes of other scripts with plain letters or digits, or consists of
    look-alikes alone beside plain ones (`раураl.com`), or is written in letters of another form
    (fullwidth, mathematical). Words of one script, and formulas (`αx`), are what they seem.
    """
    if text.isascii():
        return None
    for token in _TOKEN.findall(text):
        if token.isascii():
            continue
        has_plain = any(one.isascii() and one.isalnum() for one in token)
        for word in _WORD.findall(token):
            if not word.isascii() and _imitates(word, has_plain=has_plain):
                return str(word)
    return None


def imitating_separator(text: str) -> str | None:
    """Return the first word with a sign that passes for `.`, `/`, `:` or a backslash.

    All else in the word is plain, as in `http` before two division slashes. Fractions and ratios of
    digits, and the wide signs of texts that are written so, are what they seem.
    """
    if text.isascii():
        return None
    for token in _TOKEN.findall(text):
        if token.isascii() or not any(one.isascii() and one.isalpha() for one in token):
            continue
        if "".join(_separators().get(one, one) for one in token).isascii():
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
    table = _table()
    return "".join(table.get(one, one) for one in normal).casefold()


def _imitates(word: str, *, has_plain: bool) -> bool:
    if any(unicodedata.decomposition(one).startswith(_FORMS) for one in word):
        return unicodedata.normalize("NFKC", word).isascii()
    foreign = [one for one in word if one in _table()]
    if not foreign:
        return False
    plain = sum(one.isascii() and one.isalnum() for one in word)
    if plain:
        # One plain letter beside a Greek one is a formula.
        return plain > 1 or not all("GREEK" in unicodedata.name(one, "") for one in foreign)
    return has_plain and skeleton(word).isascii()


@cache
def _data() -> dict[str, Any]:
    made = json.loads(files("confusable_homoglyphs").joinpath("confusables.json").read_bytes())
    return dict(made)


@cache
def _separators() -> dict[str, str]:
    """Return the look-alikes of signs that part an address."""
    return {
        source: plain
        for source, alike in _data().items()
        if len(source) == 1 and not source.isascii() and not source.isalnum()
        if unicodedata.east_asian_width(source) not in "FW"
        for plain in [next((one["c"] for one in alike if one["c"] in _PARTING), "")]
        if plain
    }


@cache
def _table() -> dict[str, str]:
    """Return the look-alikes of single plain letters and digits."""
    return {
        source: plain
        for source, alike in _data().items()
        if len(source) == 1 and not source.isascii() and ord(source) not in _LATIN_LETTERS
        if source.isalnum()
        for plain in [next((one["c"] for one in alike if _is_plain(one["c"])), "")]
        if plain
    }


def _is_plain(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text.isalnum()
