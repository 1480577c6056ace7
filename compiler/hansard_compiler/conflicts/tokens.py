"""A sentence as typed tokens: words, amounts with units, dates, times, identifiers.

Amounts are brought to one unit, so that 30 seconds and half a minute are one value. What cannot be
read as one of these stays a word, and a difference in it is never a difference in a value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from hansard_compiler.conflicts.lexicon import (
    DAYS,
    GROUPS,
    MONTHS,
    MULTIPLIERS,
    NUMBERS,
    UNITS,
)

Kind = Literal["word", "number", "date", "time", "day", "id", "group", "mark"]
TYPED: Final[frozenset[str]] = frozenset({"number", "date", "time", "day", "id", "group"})

_TOKEN: Final = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # an address
    r"|\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?"
    r"|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    r"|\d{1,2}:\d{2}(?::\d{2})?"
    r"|[$€£]\s?\d[\d,]*(?:\.\d+)?"
    r"|(?:[^\W\d_]+[-_/.])+\d[\w./-]*\w|(?:[^\W\d_]+[-_/.])+\d"  # INC-1042, eu-west-1
    r"|\d[\d,]*(?:\.\d+)*%?(?![\w-]*[A-Za-z])"
    r"|\d[\w./-]*\w"
    r"|\#\d+"
    r"|[^\W_](?:[\w'’+/-]*[\w+])?"
    r"|[=:,()/?\"]"
)
_DATE: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_SHORT_DATE: Final = re.compile(r"\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_TIME: Final = re.compile(r"(\d{1,2}):(\d{2})(?::\d{2})?")
_NUMBER: Final = re.compile(r"([$€£])?\s?(\d[\d,]*(?:\.\d+)?)(%)?")
_ORDINAL: Final = re.compile(r"(\d{1,2})(?:st|nd|rd|th)")
_ATTACHED: Final = re.compile(r"(\d[\d,]*(?:\.\d+)?)-?([a-zA-Zµ]+)")
_HALF_DAY: Final = {"am": 0, "a.m": 0, "pm": 12, "p.m": 12}
_YEARS: Final = (1800, 2200)
_CURRENCIES: Final = ("eur", "usd", "gbp")  # also before their amount: `EUR 300`


class Token(NamedTuple):
    """One token. `value` is what it is compared by; of a number `unit` is its dimension."""

    kind: Kind
    value: object
    text: str
    unit: str = ""
    is_name: bool = False  # begins with a capital letter, or is an identifier

    @property
    def type(self) -> str:
        """What another value must be to be of the same sort: `number:second`, `day`."""
        return f"{self.kind}:{self.unit}"


def read(sentence: str) -> list[Token]:
    """Return a sentence's tokens, amounts joined with their units and dates with their parts."""
    return _joined([_token(found) for found in _TOKEN.findall(sentence)])


@lru_cache(maxsize=32_768)
def _token(text: str) -> Token:
    plain = text.lower().replace("’", "'").removesuffix("'s").rstrip("'")
    first = text[0]
    if first.isdigit() or first in "$€£#":
        return _of_digits(text, plain)
    if not (first.isalpha()):
        return Token("mark", plain, text)
    if any(map(str.isdigit, text)) or "@" in text or "_" in text:
        return Token("id", plain, text, is_name=True)
    if plain in DAYS:
        return Token("day", DAYS[plain], text)
    if plain in GROUPS:
        return Token("group", _CANONICAL.get(plain, plain), text, GROUPS[plain])
    if plain in NUMBERS:
        return Token("number", float(NUMBERS[plain]), text)
    return Token("word", plain, text, is_name=first.isupper())


_CANONICAL: Final = {"canceled": "cancelled", "grey": "gray", "annually": "yearly",
                     "biweekly": "fortnightly"}  # fmt: skip


def _of_digits(text: str, plain: str) -> Token:
    if found := _DATE.fullmatch(plain):
        year, month, day = map(int, found.groups())
        return Token("date", (month, day, year), text)
    if _SHORT_DATE.fullmatch(plain):
        return Token("date", plain.replace("/", "."), text)
    if found := _TIME.fullmatch(plain):
        return Token("time", int(found[1]) * 60 + int(found[2]), text)
    if found := _ORDINAL.fullmatch(plain):
        return Token("id", plain, text, is_name=True)
    if found := _NUMBER.fullmatch(plain):
        unit = UNITS[found[1]][0] if found[1] else UNITS["%"][0] if found[3] else ""
        return Token("number", float(found[2].replace(",", "")), text, unit)
    if (found := _ATTACHED.fullmatch(plain)) and found[2] in UNITS:
        unit, factor = UNITS[found[2]]
        return Token("number", round(float(found[1].replace(",", "")) * factor, 9), text, unit)
    if (found := _ATTACHED.fullmatch(plain)) and found[2] in _HALF_DAY:
        return Token("time", _clock(float(found[1].replace(",", "")), found[2]), text)
    return Token("id", plain, text, is_name=True)


def _clock(hour: float, half: str) -> int:
    return (int(hour) % 12 + _HALF_DAY[half]) * 60


def _joined(tokens: Sequence[Token]) -> list[Token]:
    """Join what is one value: `30 seconds`, `12 May 2025`, `3 to 5 days`, `3 pm`."""
    out: list[Token] = []
    at = 0
    while at < len(tokens):
        made, taken = _one(tokens, at)
        if made.kind == "number" and _is_range(out, made):
            low = out[-2]
            out[-2:] = [made._replace(value=(low.value, made.value), text=low.text + made.text)]
        else:
            out.append(made)
        at += taken
    return out


def _is_range(out: Sequence[Token], high: Token) -> bool:
    return (
        len(out) >= 2
        and out[-1].value in ("to", "and")
        and out[-2].kind == "number"
        and out[-2].unit in ("", high.unit)
        and isinstance(out[-2].value, float)
        and (out[-1].value == "to" or (len(out) >= 3 and out[-3].value == "between"))
    )


def _one(tokens: Sequence[Token], at: int) -> tuple[Token, int]:
    token = tokens[at]
    following = tokens[at + 1 : at + 4]
    if token.kind == "word" and token.value in MONTHS and _is_month(tokens, at):
        return _month_first(token, following)
    if token.kind == "id" and (found := _ORDINAL.fullmatch(str(token.value))):
        if following and following[0].value in MONTHS:
            return _day_first(int(found[1]), token, following)
        return token, 1
    if token.kind == "time" and following and following[0].value in _HALF_DAY:
        minutes = int(str(token.value))
        half = _HALF_DAY[str(following[0].value)] * 60
        return token._replace(value=minutes % 720 + half), 2
    if token.value in _CURRENCIES and following and following[0].type == "number:":
        return following[0]._replace(unit=UNITS[str(token.value)][0]), 2
    if token.kind != "number" or not isinstance(token.value, float):
        return token, 1
    if following and following[0].value in MONTHS and token.value.is_integer():
        return _day_first(int(token.value), token, following)
    return _amount(token, following)


def _amount(token: Token, following: Sequence[Token]) -> tuple[Token, int]:
    amount, taken = float(str(token.value)), 1
    if following and following[0].value in MULTIPLIERS:
        amount, taken = amount * MULTIPLIERS[str(following[0].value)], 2
        following = following[1:]
    if following and following[0].value in _HALF_DAY and not token.unit:
        hour, _, minutes = token.text.partition(".")
        half = str(following[0].value)
        return Token("time", _clock(float(hour), half) + int(minutes or 0), token.text), 2
    if following and not token.unit and following[0].value in UNITS:
        unit, factor = UNITS[str(following[0].value)]
        return Token("number", round(amount * factor, 9), token.text, unit), taken + 1
    is_year = len(token.text) == 4 and token.text.isdigit() and not token.unit
    if is_year and taken == 1 and _YEARS[0] <= amount <= _YEARS[1]:
        return Token("date", (None, None, int(amount)), token.text), 1
    return token._replace(value=amount), taken


def _is_month(tokens: Sequence[Token], at: int) -> bool:
    """`may` and `march` are words too: a month has a capital letter, or stands beside a number."""
    beside = [*tokens[max(0, at - 1) : at], *tokens[at + 1 : at + 2]]
    by_number = any(one.kind in ("number", "id") for one in beside)
    return tokens[at].is_name and (by_number or (at > 0 and len(tokens[at].text) > 3))


def _month_first(token: Token, following: Sequence[Token]) -> tuple[Token, int]:
    month, rest = MONTHS[str(token.value)], [one for one in following if one.value != ","]
    skipped = len(following) - len(rest)
    if not rest or rest[0].text[0:1] not in "0123456789":
        return Token("date", (month, None, None), token.text), 1
    number = _whole(rest[0])
    if number is None:
        return Token("date", (month, None, None), token.text), 1
    if number > 31:
        return Token("date", (month, None, number), token.text), 2
    year = _whole(rest[1]) if len(rest) > 1 else None
    if year is not None and year > 31:
        return Token("date", (month, number, year), token.text), 3 + skipped
    return Token("date", (month, number, None), token.text), 2


def _day_first(day: int, token: Token, following: Sequence[Token]) -> tuple[Token, int]:
    month = MONTHS[str(following[0].value)]
    year = _whole(following[1]) if len(following) > 1 else None
    if year is not None and year > 31:
        return Token("date", (month, day, year), token.text), 3
    return Token("date", (month, day, None), token.text), 2


def _whole(token: Token) -> int | None:
    if token.kind == "number" and isinstance(token.value, float) and token.value.is_integer():
        return int(token.value)
    found = _ORDINAL.fullmatch(str(token.value))
    return int(found[1]) if found else None


def may_be_one(a: Token, b: Token) -> bool:
    """Return whether two values of one type can be the same one: 12 May and 12 May 2025 can."""
    if a.value == b.value:
        return True
    one, other = a.value, b.value
    if a.kind == "date":
        if isinstance(one, str) or isinstance(other, str):
            return isinstance(one, str) != isinstance(other, str)  # 03.04.25 is read in two ways
        assert isinstance(one, tuple)
        assert isinstance(other, tuple)
        pairs = zip(one, other, strict=True)
        return all(first is None or second is None or first == second for first, second in pairs)
    if a.kind == "time":
        # Ten o'clock is ten in the evening too, where it is not said which.
        return abs(int(str(one)) - int(str(other))) == 720
    # A range and an amount.
    return a.kind == "number" and isinstance(one, tuple) != isinstance(other, tuple)
