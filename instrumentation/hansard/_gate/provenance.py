"""Arguments that are in nothing the agent was shown: perhaps the model invented them.

A hint for the approver, and never a reason to block. Only what can be looked up is judged: a short
value as a whole; of a longer text its e-mail addresses, links, ids and numbers.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

_MAX_CHARS: Final = 4_000_000  # of remembered texts; the oldest are forgotten
_MAX_WORDS: Final = 4  # a longer text is the model's own words
_MIN_CHARS: Final = 3
_SPACE: Final = re.compile(r"\s+")
_MARKS: Final = re.compile(r"[^\s<>\"'(),;]+")
_DISTINCTIVE: Final = re.compile(
    r"@|://|\d{3}|[A-Za-z]\d|\d[A-Za-z]"
)  # of an address, a link, an id
_DIGITS: Final = re.compile(r"[\s.,+()/-]")
_NUMBER: Final = re.compile(r"\+?\d[\d.,()/ -]*\d|\d")


class SeenValues:
    """The texts that the agent was shown. One thread or task at a time adds to it."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self._chars = 0

    def add(self, *shown: Any) -> None:
        """Add texts, or values that hold texts: messages, tool results, JSON."""
        for text in (one for value in shown for one in texts_in(value)):
            folded = _folded(text)
            self._texts.append(folded)
            self._chars += len(folded)
        while self._chars > _MAX_CHARS:
            self._chars -= len(self._texts.popleft())

    def __bool__(self) -> bool:
        return bool(self._texts)

    def missing(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the names of arguments whose value was not shown; none if nothing was shown."""
        if not self._texts:
            return []
        return [
            name
            for name, value in arguments.items()
            if not all(self._holds(mark) for text in texts_in(value) for mark in marks_in(text))
        ]

    def _holds(self, mark: str) -> bool:
        folded = _folded(mark)
        whole = re.compile(rf"(?<!\w){re.escape(folded)}(?!\w)")
        texts = list(self._texts)
        if any(folded in text and whole.search(text) for text in texts):
            return True
        digits = _DIGITS.sub("", folded)  # 1,200 and 1200; +49 151 …
        if not digits.isdigit():
            return False
        return any(
            digits == _DIGITS.sub("", one) for text in texts for one in _NUMBER.findall(text)
        )


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text and number of a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int | float):
        yield str(value)
    elif isinstance(value, Mapping):
        for child in value.values():
            yield from texts_in(child)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from texts_in(child)


def marks_in(text: str) -> Iterator[str]:
    """Yield what of a text can be looked up."""
    text = text.strip()
    if len(text) < _MIN_CHARS:
        return
    if len(text.split()) <= _MAX_WORDS:
        yield text
        return
    for found in _MARKS.findall(text):
        mark = found.strip(".:!?")
        if len(mark) >= _MIN_CHARS and _DISTINCTIVE.search(mark):
            yield mark


def _folded(text: str) -> str:
    return _SPACE.sub(" ", text).strip().casefold()
