"""A source: where a field may be, and how it is read from there.

The evidence of a source is an attribute key, a family of flat keys (its prefix, ending in a dot),
or `event <name>` for a span event or log record. `needs` restricts it to spans that speak one
dialect: keys as plain as `model` or `error` mean something on Claude Code's spans only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from hansard_collector.dialects.engine import values, vocabulary
from hansard_collector.dialects.engine.span_reader import Reading

Read: TypeAlias = Callable[[Reading, str], Any]  # the evidence is passed on; None = not usable


class FieldSource(NamedTuple):
    evidence: str
    read: Read
    label: str = ""  # named in `sources`; the evidence where empty
    needs: str = ""  # the dialect that a span must speak

    @property
    def name(self) -> str:
        return self.label or self.evidence


Rows: TypeAlias = Mapping[str, tuple[FieldSource, ...]]  # a field and its sources, in order


def each(
    keys: tuple[str, ...], read: Read, needs: str = "", *, fact: str = ""
) -> tuple[FieldSource, ...]:
    """One reader for several pieces of evidence; `fact` is what it finds inside of each."""
    return tuple(FieldSource(key, read, f"{key}{{{fact}}}" if fact else "", needs) for key in keys)


class _MakeSources(Protocol):
    def __call__(self, *keys: str, needs: str = "") -> tuple[FieldSource, ...]: ...


def _sources(read: Read) -> _MakeSources:
    """Return what makes the sources of some keys that are all read in one way."""

    def make(*keys: str, needs: str = "") -> tuple[FieldSource, ...]:
        return each(keys, read, needs)

    return make


def _converted(convert: Callable[[Any], Any]) -> Read:
    return lambda reading, key: convert(reading.view.attributes[key])


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


texts_of = _sources(_converted(values.text))
counts_of = _sources(_converted(values.count))
reals_of = _sources(_converted(values.real))
flags_of = _sources(_converted(values.flag))
lists_of = _sources(_converted(lambda value: values.texts(value) or None))
values_of = _sources(_read_value)  # content with its JSON opened: arguments and results of tools
# Content as sent: generic inputs and outputs, which may be large and are not looked into.
sent_of = _sources(_read_sent)


def _content(value: Any) -> Any:
    return value if values.is_content(value) else None


def members_of(
    names: Mapping[str, str], needs: str = "", *, read: Callable[[Any], Any] = _content
) -> tuple[FieldSource, ...]:
    """Attributes that are one member each of a mapping, under the names that they have in it."""

    def find(reading: Reading, key: str) -> Mapping[str, Any] | None:
        value = read(reading.view.attributes[key])
        return None if value is None else {names[key]: value}

    return each(tuple(names), find, needs)


def means(key: str, meanings: Mapping[str, Any], needs: str = "") -> FieldSource:
    """What a dialect's word means, to the letter; None for unknown words."""

    def read(reading: Reading, evidence: str) -> Any:
        word = reading.view.attributes[evidence]
        return meanings.get(word) if isinstance(word, str) else None

    return FieldSource(key, read, needs=needs)


def roles_of(key: str, roles: Mapping[str, str], needs: str = "") -> tuple[FieldSource, ...]:
    """The role that a dialect's word means, in any case; None for unknown words."""

    def read(reading: Reading, evidence: str) -> str | None:
        word = reading.view.attributes[evidence]
        return roles.get(word.lower()) if isinstance(word, str) else None

    return (FieldSource(key, read, needs=needs),)


def same(*roles: str) -> dict[str, str]:
    """Return the words of a dialect that are the names of our roles."""
    return {role: role for role in roles}


def constant(value: Any) -> Read:
    """A reader for evidence whose presence is enough."""
    return lambda reading, evidence: value


def read_mapping(reading: Reading, key: str) -> Mapping[str, Any] | None:
    """An attribute that holds an object; None for an empty one."""
    return reading.mapping(key) or None


def read_family(reading: Reading, prefix: str) -> Mapping[str, Any] | None:
    """The free keys under a prefix: metadata."""
    return reading.rest(prefix) or None


def first_record(
    names: tuple[str, ...], *keys: str, read: Callable[[Any], Any] = values.opened
) -> Read:
    """A reader of the first event or log of some names with content under the first of its keys."""

    def find(reading: Reading, _: str) -> Any:
        for record in reading.records(*names):
            value = values.first(record.attributes, keys)
            if values.is_content(value):
                return read(value)
        return None

    return find


def provider_of(value: Any) -> str | None:
    """A provider's name in one spelling; names of frameworks say nothing."""
    name = values.text(value)
    return None if name is None else vocabulary.provider(name)


provider_named = _sources(_converted(provider_of))


def within(
    key: str,
    *path: str,
    read: Callable[[Any], Any] = values.text,
    needs: str = "",
    label: str = "",
) -> FieldSource:
    """A value inside the JSON of an attribute."""

    def find(reading: Reading, evidence: str) -> Any:
        value: Any = reading.opened(evidence)
        for name in path:
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return None if value is None else read(value)

    return FieldSource(key, find, label or f"{key}{{{'.'.join(path)}}}", needs)
