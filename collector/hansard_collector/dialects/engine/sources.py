"""A source: where a field may stand, and how it is read from there.

The evidence of a source is an attribute key, a family of flat keys (its prefix, ending in a dot),
or `event <name>` for a span event or log record. `needs` restricts it to spans that speak one
dialect: keys as plain as `model` or `error` mean something on Claude Code's spans only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from hansard_collector.dialects.engine import values, vocabulary
from hansard_collector.dialects.engine.span_reader import Reading

Read: TypeAlias = Callable[[Reading, str], Any]  # the evidence is passed on; None = not usable


class Source(NamedTuple):
    evidence: str
    read: Read
    label: str = ""  # named in `sources`; the evidence where empty
    needs: str = ""  # the dialect that a span must speak

    @property
    def name(self) -> str:
        return self.label or self.evidence


Rows: TypeAlias = Mapping[str, tuple[Source, ...]]  # a field and its sources, in order


def each(keys: tuple[str, ...], read: Read, needs: str = "") -> tuple[Source, ...]:
    """One reader for several pieces of evidence."""
    return tuple(Source(key, read, needs=needs) for key in keys)


def _read_text(reading: Reading, key: str) -> str | None:
    return values.text(reading.view.attributes[key])


def _read_count(reading: Reading, key: str) -> int | None:
    return values.count(reading.view.attributes[key])


def _read_real(reading: Reading, key: str) -> float | None:
    return values.real(reading.view.attributes[key])


def _read_flag(reading: Reading, key: str) -> bool | None:
    return values.flag(reading.view.attributes[key])


def _read_texts(reading: Reading, key: str) -> tuple[str, ...] | None:
    return values.texts(reading.view.attributes[key]) or None


def _read_value(reading: Reading, key: str) -> Any:
    """Any content, JSON opened."""
    if not values.is_content(reading.view.attributes[key]):
        return None
    return reading.opened(key)


def _read_sent(reading: Reading, key: str) -> Any:
    """Any content as sent, but for a text that was quoted as JSON."""
    value = values.of_bytes(reading.view.attributes[key])
    if not values.is_content(value):
        return None
    return reading.opened(key) if isinstance(value, str) and value[:1] == '"' else value


def texts_of(*keys: str, needs: str = "") -> tuple[Source, ...]:
    return tuple(Source(key, _read_text, needs=needs) for key in keys)


def counts_of(*keys: str, needs: str = "") -> tuple[Source, ...]:
    return tuple(Source(key, _read_count, needs=needs) for key in keys)


def reals_of(*keys: str, needs: str = "") -> tuple[Source, ...]:
    return tuple(Source(key, _read_real, needs=needs) for key in keys)


def flags_of(*keys: str, needs: str = "") -> tuple[Source, ...]:
    return tuple(Source(key, _read_flag, needs=needs) for key in keys)


def lists_of(*keys: str, needs: str = "") -> tuple[Source, ...]:
    return tuple(Source(key, _read_texts, needs=needs) for key in keys)


def values_of(*keys: str, needs: str = "") -> tuple[Source, ...]:
    """Content with its JSON opened: arguments and results of tools."""
    return tuple(Source(key, _read_value, needs=needs) for key in keys)


def sent_of(*keys: str, needs: str = "") -> tuple[Source, ...]:
    """Content as sent: generic inputs and outputs, which may be large and are not looked into."""
    return tuple(Source(key, _read_sent, needs=needs) for key in keys)


def roles_of(key: str, roles: Mapping[str, str]) -> tuple[Source, ...]:
    """The role that a dialect's word means; unknown words say nothing."""

    def read(reading: Reading, evidence: str) -> str | None:
        word = reading.view.attributes[evidence]
        return roles.get(word.lower()) if isinstance(word, str) else None

    return (Source(key, read),)


def constant(value: str) -> Read:
    """A reader for evidence that says all by being there."""
    return lambda reading, evidence: value


def _read_provider(reading: Reading, key: str) -> str | None:
    name = values.text(reading.view.attributes[key])
    return None if name is None else vocabulary.provider(name)


def provider_named(*keys: str) -> tuple[Source, ...]:
    """A provider's name in one spelling; names of frameworks say nothing."""
    return tuple(Source(key, _read_provider) for key in keys)


def within(
    key: str, *path: str, read: Callable[[Any], Any] = values.text, needs: str = ""
) -> Source:
    """A value inside the JSON of an attribute."""

    def find(reading: Reading, evidence: str) -> Any:
        value: Any = reading.opened(evidence)
        for name in path:
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return None if value is None else read(value)

    return Source(key, find, label=f"{key}{{{'.'.join(path)}}}", needs=needs)
