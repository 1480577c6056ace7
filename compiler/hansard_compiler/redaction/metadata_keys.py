"""What the text under an attribute name is taken for: the allow-list is `metadata_keys.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache

from hansard_compiler.renamed import current_attribute


class KeyKind(Enum):
    CONTENT = "content"  # withheld
    NAME = "name"  # short text without line breaks
    NUMBERS = "numbers"  # a JSON object of numbers
    DIGEST = "digest"  # a hash of content: stored as its HMAC


_SEGMENTS = {"#": r"[0-9]+", "*": r"[^.]+", "**": r".+"}
_LONGEST_KEY = 256


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Compile names with their wildcards; without nested repetition, hence linear."""
    spelled = (
        r"\.".join(_SEGMENTS.get(segment, re.escape(segment)) for segment in name.split("."))
        for name in names
    )
    return re.compile("|".join(spelled))


@lru_cache(maxsize=1)
def _kinds() -> tuple[tuple[KeyKind, re.Pattern[str]], ...]:
    """Return the names of each kind; a name of two has the first one."""
    with open(__file__.removesuffix(".py") + ".toml", "rb") as file:
        listed = tomllib.load(file)
    return (
        (KeyKind.DIGEST, _pattern(listed["digest"].split())),
        (KeyKind.NUMBERS, _pattern(listed["numbers"].split())),
        (KeyKind.NAME, _pattern(" ".join(listed["name"].values()).split())),
    )


@lru_cache(maxsize=16_384)
def _known_kind(key: str) -> KeyKind:
    name = current_attribute(key)
    return next((kind for kind, names in _kinds() if names.fullmatch(name)), KeyKind.CONTENT)


def kind_of(key: str) -> KeyKind:
    """Return what the text under an attribute name is taken for."""
    return _known_kind(key) if len(key) <= _LONGEST_KEY else KeyKind.CONTENT
