"""Sentences of a text as tokens with their places, without what is only quoted or shown as code.

Linear in the text, and bounded: of a text the last 20,000 characters are read, of a sentence 80
tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

MOST_CHARS: Final = 20_000
MOST_TOKENS: Final = 80
MOST_SENTENCES: Final = 400

QUOTED: Final = "\u0001"  # stands where something was quoted
_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_INLINE_CODE: Final = re.compile(r"`([^`\n]{1,200})`")
_ONE_NAME: Final = re.compile(r"[\w.-]+\Z")
_QUOTES: Final = re.compile(
    r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|«[^»\n]{1,400}»|„[^“”\n]{1,400}[“”]|‘[^’\n]{1,400}’"
    r"|(?<!\w)'[^'\n]{2,400}'(?!\w)"
)
_LIST: Final = re.compile(r"\s*(?:[-*+•‣]|\d{1,3}[.)])\s+")
_OPEN_BOX: Final = re.compile(r"\s*(?:[-*+]\s+)?\[ \]")
_DONE_BOX: Final = re.compile(r"\s*(?:[-*+]\s+)?\[[xX]\]\s*")
_HEADING: Final = re.compile(r"\s*#{1,6}\s+")
_ENDS: Final = re.compile(r"[.!?…。！？]+(?=[\s\"”»)\]]|$)")
_REFUSED: Final = ("❌", "✗", "✘", "☐", "⬜")  # marks of what is not, or not yet, so
# A row of a table whose last cell says that its first one is not so.
_REFUSED_ROW: Final = re.compile(
    r"\|\s*(?:no|nein|non|false|fail(?:ed)?|todo|open|pending|n/a|not (?:yet|met))\s*\|?\s*$",
    re.IGNORECASE,
)
_ABBREVIATED: Final = ("e.g", "i.e", "etc", "vs", "z.b", "bzw", "p. ex", "approx")
_TOKEN: Final = re.compile(
    r"\u0001|[^\W_](?:[\w]|[-.'’/](?=\w))*|_\w(?:[\w]|[-.](?=\w))*|[,;:()–—|]|\s-\s|->"
)
_WORD: Final = re.compile(r"\w+")
_SPACED: Final = {at: " " for at in range(128) if not _WORD.match(chr(at))}
_APART: Final = {
    "n't": ("not",),
    "'ve": ("have",),
    "'ll": ("will",),
    "'re": ("are",),
    "'m": ("am",),
    "'d": ("would",),
    "'s": ("is",),
}
_WHOLE: Final = {
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("will", "not"),
    "let's": ("let", "us"),
    "i'd": ("i", "would"),
}
_ELIDED: Final = re.compile(r"(l|d|j|n|qu|c|s|m|t)'(.+)\Z")
_PRONOUNS: Final = frozenset(
    {"it", "that", "this", "there", "he", "she", "what", "everything", "here"}
)


def words_in(text: str) -> list[str]:
    """Return the words of a text in lower case, letters, digits and `_`; ASCII in half the time."""
    lower = text.lower()
    return lower.translate(_SPACED).split() if lower.isascii() else _WORD.findall(lower)


class ClaimToken(NamedTuple):
    """A word, lower case, or a mark between clauses; places are in the text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ClaimSentence:
    """One statement. `start` and `end` are places in the text it is of."""

    text: str
    tokens: tuple[ClaimToken, ...]
    start: int
    end: int
    heading: str = ""  # the line above a list that it is an entry of, lower case
    is_question: bool = False


def sentences(text: str, is_wanted: Callable[[Set[str]], bool]) -> Iterator[ClaimSentence]:
    """Yield the sentences of a text that are its author's own words.

    Only those are read whose words match: a quick look, before a sentence is taken apart.
    """
    offset = max(0, len(text) - MOST_CHARS)
    shown = text[offset:]
    plain = _blanked(shown)
    heading = ""
    count = 0
    for start, end in _lines(plain):
        line = plain[start:end]
        if not line.strip():
            continue
        if _HEADING.match(line):
            heading = line.strip(" #:*\t").lower()
            continue
        is_entry = _LIST.match(line) is not None or _DONE_BOX.match(line) is not None
        if not is_entry and line.rstrip(" *_").endswith(":"):
            heading = line.strip(" :*_\t").lower()
            continue
        if _OPEN_BOX.match(line) or any(mark in line for mark in _REFUSED):
            continue
        if "|" in line and _REFUSED_ROW.search(line):
            continue
        for one in _of_line(_Text(shown, plain, offset, is_wanted), start, end, heading):
            yield one
            count += 1
            if count == MOST_SENTENCES:
                return
        if not is_entry:
            heading = heading if heading and _is_section(plain, start) else ""


def _is_section(plain: str, start: int) -> bool:
    """Return whether a line is in the section that a heading began: no blank line before it."""
    return not plain.endswith("\n\n", 0, start)


def _blanked(text: str) -> str:
    """Return a text of the same length without code blocks, quotes and what others wrote."""
    out = _without_fences(text)
    out = _INLINE_CODE.sub(_code, out)
    out = _QUOTES.sub(_quote, out)
    lines = []
    for line in out.split("\n"):
        is_quote = line.lstrip().startswith(">")
        lines.append(" " * len(line) if is_quote else line)
    return "\n".join(lines).replace("*", " ").replace("’", "'") if lines else out


def _without_fences(text: str) -> str:
    parts, at = [], 0
    marks = [match.start() for match in _FENCE.finditer(text)]
    for begin, end in zip(marks[::2], [*marks[1::2], len(text)][: len(marks[::2])], strict=False):
        line_end = text.find("\n", end)
        stop = len(text) if line_end < 0 else line_end
        parts.append(text[at:begin])
        parts.append(re.sub(r"[^\n]", " ", text[begin:stop]))
        at = stop
    parts.append(text[at:])
    return "".join(parts)


def _code(match: re.Match[str]) -> str:
    inner = match[1]
    if _ONE_NAME.match(inner):
        return f" {inner} "
    return QUOTED + " " * (len(inner) + 1)


def _quote(match: re.Match[str]) -> str:
    whole = match[0]
    if len(whole.split()) == 1 and _ONE_NAME.match(whole[1:-1]):
        return f" {whole[1:-1]} "
    return QUOTED + " " * (len(whole) - 1)


def _lines(plain: str) -> Iterator[tuple[int, int]]:
    """Yield the places of lines; one that only goes on is of the line before it."""
    at = 0
    begun: int | None = None
    lines = plain.split("\n")
    for number, line in enumerate(lines):
        end = at + len(line)
        begun = at if begun is None else begun
        after = lines[number + 1] if number + 1 < len(lines) else ""
        goes_on = (
            line.strip() != ""
            and not line.rstrip().endswith((".", "!", "?", ":", ";"))
            and not _HEADING.match(line)
            and after[:1].islower()
            and not _LIST.match(after)
        )
        if not goes_on:
            yield begun, end
            begun = None
        at = end + 1


class _Text(NamedTuple):
    """A text as it is and without what is quoted; `offset` is what was left off before it."""

    shown: str
    plain: str
    offset: int
    is_wanted: Callable[[Set[str]], bool]


def _of_line(text: _Text, start: int, end: int, heading: str) -> Iterator[ClaimSentence]:
    plain = text.plain
    mark = _DONE_BOX.match(plain, start, end) or _LIST.match(plain, start, end)
    at = mark.end() if mark else start
    if mark and (box := _DONE_BOX.match(plain, at, end)):
        at = box.end()
    for match in _ENDS.finditer(plain, at, end):
        before = plain[max(at, match.start() - 6) : match.start()].lower()
        if match[0] == "." and before.endswith(_ABBREVIATED):
            continue
        one = _sentence(text, at, match.end(), heading, mark=match[0])
        at = match.end()
        if one is not None:
            yield one
    if (one := _sentence(text, at, end, heading)) is not None:
        yield one


def _sentence(
    text: _Text, start: int, end: int, heading: str, *, mark: str = ""
) -> ClaimSentence | None:
    if not text.is_wanted(frozenset(words_in(text.plain[start:end]))):
        return None
    tokens = tuple(_tokens(text.plain, start, end, text.offset))
    if not tokens or len(tokens) > MOST_TOKENS:
        return None
    words = " ".join(text.shown[start:end].split())
    is_question = "?" in mark or "？" in mark
    return ClaimSentence(
        words, tokens, text.offset + start, text.offset + end, heading, is_question
    )


def _tokens(plain: str, start: int, end: int, offset: int) -> Iterator[ClaimToken]:
    for match in _TOKEN.finditer(plain, start, end):
        word, at, until = match[0].lower().strip(), offset + match.start(), offset + match.end()
        for part in _parts(word):
            yield ClaimToken(part, at, until)


def _parts(word: str) -> tuple[str, ...]:
    if "'" not in word:
        return (word.replace("e-mail", "email"),)
    if word in _WHOLE:
        return _WHOLE[word]
    for ending, apart in _APART.items():
        if word.endswith(ending) and len(word) > len(ending):
            stem = word[: -len(ending)]
            if ending == "'s" and stem not in _PRONOUNS:
                return (stem,)  # somebody's
            return (stem, *apart)
    if elided := _ELIDED.match(word):
        return (f"{elided[1]}'", elided[2].replace("e-mail", "email"))
    return (word,)
