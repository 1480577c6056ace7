"""How many tokens a text takes: one estimator per provider's tokenizer, none needs a network.

`estimator_for` chooses; the estimator's `name` says which tokenizer it stands for, in which
version, and belongs in every receipt beside the number. OpenAI's vocabularies are public, so with
the extra `openai` (it brings `bpe-openai`) a text's count is exact. Anthropic publishes no
tokenizer since Claude 3, and local models have dozens: for those, and without the extra, the count
is an estimate by character class. `python -m bench tokens` prints what each was off by.
"""

from __future__ import annotations

import re
import string
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, metadata, util
from statistics import median
from typing import Any, Protocol

ESTIMATE_MARGIN_PCT = 15  # to keep free when a limit must hold and the count is an estimate
EXACT_MARGIN_PCT = 2  # texts are exact, the framing around them is not documented

_FEWEST_PAIRS = 5
_MULTIPLIERS = (0.5, 2.5)


class TokenEstimator(Protocol):
    """Counts the tokens of one text, the same in every process."""

    @property
    def name(self) -> str:
        """What counted, with its version: a part of every receipt."""
        ...

    @property
    def margin_pct(self) -> int:
        """How much to keep free where a limit must hold."""
        ...

    def count(self, text: str) -> int: ...


# --- by character class -----------------------------------------------------------------------

_LONG_WORD = re.compile(rb"a{8,}")
_DIGITS = re.compile(rb"0{1,3}")
_OPAQUE = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{20,}")
_HAS_LETTER_AND_DIGIT = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])")
_DENSE = re.compile(
    r"[\u0e00-\u0eff\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef]"
)
_OPAQUE_CHARACTERS = 1.45  # per token, measured on base64 against o200k_base
_DENSE_TOKENS = 0.75  # Chinese, Japanese, Korean, Thai
_WIDE_TOKENS = 0.35  # every other character outside ASCII
_PUNCTUATION_TOKENS = 0.7

_LETTER = bytes(string.ascii_letters, "ascii")
_DIGIT = bytes(string.digits, "ascii")
_PUNCTUATION = bytes(string.punctuation, "ascii")
_OTHER_SPACE = b"\t\n\r\f\v"


def _table(**members: bytes) -> bytes:
    """Return a table for `bytes.translate`: each member's bytes become its name, all else a dot."""
    table = bytearray(b"." * 256)
    for name, values in members.items():
        for value in values:
            table[value] = ord(name)
    return bytes(table)


# Counting in translated bytes runs in C: three times as fast as a regular expression a class.
_WORDS = _table(a=_LETTER)
_NUMBERS = bytes(ord("0") if byte in _DIGIT else ord(".") for byte in range(256))
_SPACES = _table(s=b" ", n=_OTHER_SPACE)
_MAYBE_OPAQUE = _table(o=_LETTER + _DIGIT + b"+/_=-")
_SHORTEST_OPAQUE = b"o" * 20


@dataclass(frozen=True, slots=True)
class ClassWeighted:
    """An estimate without a vocabulary: words, numbers, spaces and scripts each by their weight.

    The weights were set against `o200k_base`; `multiplier` moves them to another tokenizer. A
    megabyte takes about 40 ms.
    """

    label: str = "class-weighted/1"
    multiplier: float = 1.0
    margin_pct: int = ESTIMATE_MARGIN_PCT

    @property
    def name(self) -> str:
        return self.label if self.multiplier == 1.0 else f"{self.label}×{self.multiplier:g}"

    def count(self, text: str) -> int:
        if not text:
            return 0
        data = text.encode("utf-8", "surrogatepass")
        total = 0.0
        if _SHORTEST_OPAQUE in data.translate(_MAYBE_OPAQUE):
            opaque, data = _without_opaque(text)
            total = opaque / _OPAQUE_CHARACTERS
        total += _words(data.translate(_WORDS)) + _spaces(data.translate(_SPACES))
        total += len(_DIGITS.findall(data.translate(_NUMBERS)))
        total += _PUNCTUATION_TOKENS * (len(data) - len(data.translate(None, _PUNCTUATION)))
        total += _beyond_ascii(text)
        return max(1, round(total * self.multiplier))


def _words(classes: bytes) -> float:
    """A word of up to seven letters is one token, a longer one a token for five letters."""
    words = classes.count(b".a") + classes.startswith(b"a")
    return words + sum(len(word) / 5 - 1 for word in _LONG_WORD.findall(classes))


def _spaces(classes: bytes) -> int:
    """A single space belongs to its word; any other run of white space is one token."""
    runs = sum(map(classes.count, (b".n", b".ss", b".sn")))
    return runs + classes.startswith((b"n", b"ss", b"sn"))


def _without_opaque(text: str) -> tuple[int, bytes]:
    """Return how many characters are in opaque runs (base64, hashes, ids), and what is left."""
    size = 0

    def cut(found: re.Match[str]) -> str:
        nonlocal size
        if not _HAS_LETTER_AND_DIGIT.match(found[0]) or found[0].count("-") > len(found[0]) / 8:
            return found[0]
        size += len(found[0])
        return ""

    rest = _OPAQUE.sub(cut, text)
    return size, rest.encode("utf-8", "surrogatepass")


def _beyond_ascii(text: str) -> float:
    if text.isascii():
        return 0.0
    wide = len(text) - len(text.encode("ascii", "ignore"))
    dense = len(_DENSE.findall(text))
    return dense * _DENSE_TOKENS + (wide - dense) * _WIDE_TOKENS


# --- with a vocabulary ------------------------------------------------------------------------

_PIECE_CHARACTERS = 200_000  # the library refuses a million and more at once


@dataclass(frozen=True, slots=True)
class BytePairs:
    """The exact count of a text under one of OpenAI's public vocabularies.

    Loading one takes 0.3 s and 90 MiB, on the first count. A text over 200,000 characters is
    counted in pieces cut at white space, which may add a token a piece.
    """

    encoding: str
    margin_pct: int = EXACT_MARGIN_PCT

    @property
    def name(self) -> str:
        return f"{self.encoding}/bpe-openai-{_bpe_version()}"

    def count(self, text: str) -> int:
        encode = _vocabulary(self.encoding).encode_ordinary
        if len(text) <= _PIECE_CHARACTERS:
            return len(encode(text))
        return sum(len(encode(piece)) for piece in _pieces(text))


def _pieces(text: str) -> list[str]:
    pieces, start = [], 0
    while start < len(text):
        end = min(start + _PIECE_CHARACTERS, len(text))
        cut = max(text.rfind(" ", start + 1, end), text.rfind("\n", start + 1, end))
        end = end if end == len(text) or cut <= start else cut
        pieces.append(text[start:end])
        start = end
    return pieces


@lru_cache(maxsize=4)
def _vocabulary(encoding: str) -> Any:
    with warnings.catch_warnings():
        # It reads its data through a function that Python calls deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module("bpe_openai").get_encoding(encoding)


@lru_cache(maxsize=1)
def _bpe_version() -> str:
    return metadata.version("bpe-openai")


@lru_cache(maxsize=1)
def has_vocabularies() -> bool:
    """Return whether the extra with OpenAI's vocabularies is installed."""
    return util.find_spec("bpe_openai") is not None


# --- which for whom ---------------------------------------------------------------------------

_OLD_OPENAI = re.compile(r"(?:gpt-3\.5|gpt-4(?![.o\d])|text-embedding-)")
_CLAUDE_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:-(\d{1,2}))?(?![0-9])")

# Two published figures make these: before Opus 4.7 a text takes about 1.2 times the tokens of
# o200k_base (between 1.16 for English and 1.3 for Python, third parties, 2025); since then about
# 30 % more again (Anthropic's page on token counting, 2026).
_CLAUDE = ClassWeighted("claude-class-weighted/1", 1.2)
_CLAUDE_SINCE_OPUS_4_7 = ClassWeighted("claude-class-weighted/1", 1.56)


def estimator_for(provider: str, model: str) -> TokenEstimator:
    """Return the estimator of a model's tokenizer; unknown ones get the general estimate.

    What a model's name says counts more than the provider: gateways serve anyone's models. Local
    ones (Llama, Qwen, Mistral) get the general estimate.
    """
    name = model.lower().rpartition("/")[2]
    if "claude" in name or (provider == "anthropic" and not name.startswith("gpt")):
        return _claude(name)
    if provider in ("openai", "azure.ai.openai") or re.match(r"gpt-|chatgpt|o\d", name):
        encoding = "cl100k_base" if _OLD_OPENAI.match(name) else "o200k_base"
        return BytePairs(encoding) if has_vocabularies() else ClassWeighted()
    return ClassWeighted()


def _claude(name: str) -> TokenEstimator:
    found = _CLAUDE_VERSION.search(name)
    if not found:
        return _CLAUDE_SINCE_OPUS_4_7
    version = (int(found[1]), int(found[2] or 0))
    is_new = version >= (5, 0) or (version >= (4, 7) and version[0] == 4)
    return _CLAUDE_SINCE_OPUS_4_7 if is_new else _CLAUDE


# --- learned from bills -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scaled:
    """An estimator whose counts are multiplied by what bills taught."""

    base: TokenEstimator
    multiplier: float

    @property
    def name(self) -> str:
        return f"{self.base.name}~{self.multiplier:g}"

    @property
    def margin_pct(self) -> int:
        return self.base.margin_pct

    def count(self, text: str) -> int:
        counted = self.base.count(text)
        return max(1, round(counted * self.multiplier)) if counted else 0


def learned_multiplier(pairs: Sequence[tuple[int, int]]) -> float:
    """Return what to multiply estimates by, from pairs of (estimated, billed) of one model.

    The median ratio, so that a few odd calls change nothing, to two digits, so that it does not
    move with every call; 1.0 before five usable pairs; never below 0.5 or above 2.5.
    """
    ratios = [billed / estimated for estimated, billed in pairs if estimated > 0 and billed > 0]
    if len(ratios) < _FEWEST_PAIRS:
        return 1.0
    lowest, highest = _MULTIPLIERS
    return round(min(highest, max(lowest, median(ratios))), 2)
