"""JSON bodies of records: what the API, the commands and the SDK's own store answer.

A body is declared once, as a `TypedDict`: OpenAPI describes it, mypy checks what is read from it,
and `body_of` takes the names of its fields from it. The dictionary is sent as it is, so nothing is
copied or validated a second time; decision 126 has the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, Final, Literal, TypeVar

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from hansard_store.times import time_text

BodyT = TypeVar("BodyT", bound=Mapping[str, Any])
_Read = Callable[[Any], Any]
_NANO = 1_000_000_000


@with_config(ConfigDict(extra="forbid"))
class Body(TypedDict):
    """A part of an answer: nothing but what is described."""


class Answer(Body):
    """An answer of the API as a whole; the version is added when it is sent."""

    schema_version: Literal["1"]


class Page(Answer):
    """One page of a list; `next_cursor` null = the last one."""

    next_cursor: str | None


def ns_text(ns: int | None) -> str | None:
    """Return nanoseconds as a string: they exceed what a JSON number is exact for."""
    return None if ns is None else str(ns)


def milliseconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1_000_000


def usd(nano: int | None) -> float | None:
    return None if nano is None else nano / _NANO


# By the ending of a field: the ending of the record's own field, and how it is written.
_ENDINGS: Final[Mapping[str, tuple[str, _Read]]] = {
    "_at": ("_ns", time_text),
    "_ns": ("_ns", ns_text),
    "_ms": ("_ns", milliseconds),
    "_usd": ("_usd_nano", usd),
}


def body_of(kind: type[BodyT], record: object = None, /, **made: Any) -> BodyT:
    """Return the body of a record: fields in `made`, and every other from the record.

    `started_at`, `started_ns` and `duration_ms` are read from fields in nanoseconds, `cost_usd`
    from one in billionths; tuples become lists; every other is the record's field of that name.
    Optional fields are left out unless they are in `made`.

    Raises TypeError for a name in `made` that the body does not have, AttributeError for a field
    that neither has.
    """
    body: Any = {
        name: made[name] if read is None else read(record)
        for name, read in _readers(kind, tuple(made))
    }
    return body  # type: ignore[no-any-return]


@cache
def _readers(kind: Any, made: tuple[str, ...]) -> tuple[tuple[str, _Read | None], ...]:
    fields = kind.__annotations__
    if unknown := [name for name in made if name not in fields]:
        raise TypeError(f"{kind.__name__} has no field {', '.join(unknown)}")
    return tuple(
        (name, None if name in made else _reader(name))
        for name in fields
        if name in made or not (name == "schema_version" or _is_optional(fields[name]))
    )


def _is_optional(annotation: Any) -> bool:
    """Return whether an annotation, which is text here, says NotRequired."""
    return str(getattr(annotation, "__forward_arg__", "")).startswith("NotRequired[")


def _reader(name: str) -> _Read:
    for ending, (stored, write) in _ENDINGS.items():
        if name.endswith(ending):
            get = attrgetter(name.removesuffix(ending) + stored)
            return lambda record: write(get(record))
    own = attrgetter(name)

    def read(record: object) -> Any:
        value = own(record)
        return list(value) if type(value) is tuple else value

    return read
