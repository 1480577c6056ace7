"""The root of every error Hansard raises on purpose; each floor adds its own branch.

HansardError
├── ConfigError          a setting that cannot work; the command line prints it and exits 2
├── NotFoundError        no such run, step or payload (HTTP 404)
├── AmbiguousIdError     an id prefix that fits more than one (HTTP 409)
├── compiler:  CompileError …    compile_errors.py
├── store:     StoreError …      hansard_store/errors.py
└── collector: IngestError …     hansard_collector/errors.py
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Self

MIN_PREFIX_DIGITS: Final = 8  # of an id, to be found by its beginning
_PUBLIC: Final = "hansard.errors"
_LONGEST_ID: Final = 128  # in a message
_FOUND_BY_BEGINNING: Final = frozenset(
    {"run", "step", "approval", "memory", "replay", "compilation", "annotation"}
)


class Code(StrEnum):
    """A closed list of codes, each with its meaning: `NAME = "code", "meaning"`."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


class HansardError(Exception):
    """Something Hansard refuses or cannot do, in a sentence a person understands."""

    __module__ = _PUBLIC  # where programs import it from: shown in tracebacks
    code = "error"


class ConfigError(HansardError):
    """A setting that cannot work, found before anything was started."""

    __module__ = _PUBLIC
    code = "invalid_config"


class NotFoundError(HansardError):
    """Nothing is stored under this id."""

    __module__ = _PUBLIC
    code = "not_found"

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(f"no {kind} {_bounded(identifier)!r}{_too_short(kind, identifier)}")
        self.kind = kind
        self.identifier = identifier


def _bounded(identifier: str) -> str:
    """Return an id as a message repeats it: a long one by its beginning."""
    return identifier if len(identifier) <= _LONGEST_ID else f"{identifier[:_LONGEST_ID]}…"


def _too_short(kind: str, identifier: str) -> str:
    """Return what to add where an id is abbreviated too far."""
    if kind == "step" and "-" not in identifier:
        return "; a step is named by its run and its span, as in 4bf92f35-00f067aa"
    is_hex = all(digit in "0123456789abcdefABCDEF" for digit in identifier)
    if kind not in _FOUND_BY_BEGINNING or not is_hex or len(identifier) >= MIN_PREFIX_DIGITS:
        return ""
    return f"; the beginning of an id needs {MIN_PREFIX_DIGITS} digits or more"


class AmbiguousIdError(HansardError):
    """A prefix that more than one id begins with."""

    __module__ = _PUBLIC
    code = "ambiguous_id"

    def __init__(self, kind: str, prefix: str, matches: Sequence[str]) -> None:
        super().__init__(
            f"{_bounded(prefix)!r} begins more than one {kind} ({', '.join(matches)}); "
            "give more digits"
        )
        self.kind = kind
        self.prefix = prefix
        self.matches = list(matches)
