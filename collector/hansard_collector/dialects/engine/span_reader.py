"""A span while it is read: its values, opened once, and its keys grouped once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar

from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.dialects.engine.item_views import EventView, LogView, SpanView, Value
from hansard_collector.dialects.engine.values import opened

_Built = TypeVar("_Built")
_LONGEST_INDEX = 9  # digits; a longer one is no index
_DEEPEST_KEY = 12  # segments that are separate in one flat key


class ReadRecord(NamedTuple):
    """A span event or a log record that carries the span's ids."""

    name: str
    time_ns: int
    attributes: Mapping[str, Value]
    body: Value


Pair: TypeAlias = tuple[str, Value]  # what follows the index in a flat key, and the value


@dataclass(slots=True)
class Reading:
    """One span and what has been found in it so far.

    `families` are the keys that no table names one by one, grouped by prefix: flat messages,
    tools and documents, and the free keys of metadata. `notes` collects what a
    person should know.
    """

    view: SpanView
    cache: MessageCache
    families: Mapping[str, Sequence[str]]
    marks: frozenset[str]  # the dialects the span speaks
    role: str
    notes: list[str]
    _opened: dict[str, Any]
    _records: list[ReadRecord] | None

    @property
    def attributes(self) -> Mapping[str, Value]:
        return self.view.attributes

    def opened(self, key: str) -> Any:
        """Return an attribute with its JSON opened, once for all who ask."""
        if key not in self._opened:
            self._opened[key] = opened(self.view.attributes.get(key))
        return self._opened[key]

    def mapping(self, key: str) -> Mapping[str, Any]:
        """Return an attribute that holds an object; an empty one for anything else."""
        found = self.opened(key)
        return found if isinstance(found, dict) else {}

    def flat(self, prefix: str) -> list[tuple[int, list[Pair]]]:
        """Return the attributes `<prefix><index>.<rest>` by index, sorted as numbers.

        Indices may have holes. Segments that are no index (`gen_ai.prompt.prompt_filter_results`)
        are not part of the list.
        """
        attributes = self.view.attributes
        at = len(prefix)
        rows: dict[str, list[Pair]] = {}
        for key in self.families.get(prefix, ()):
            index, dot, rest = key[at:].partition(".")
            if dot and index.isdecimal() and len(index) <= _LONGEST_INDEX:
                pair = (rest, attributes[key])
                row = rows.get(index)
                if row is None:
                    rows[index] = [pair]
                else:
                    row.append(pair)
        return sorted(((int(index), row) for index, row in rows.items()), key=itemgetter(0))

    def built(
        self, prefix: str, kind: str, build: Callable[[list[Pair]], _Built]
    ) -> Iterator[_Built]:
        """Yield what `build` makes of each row of `flat`, from the cache where it was made before.

        `kind` separates what different builders make of one row.
        """
        for _, pairs in self.flat(prefix):
            key = (kind, *pairs)
            try:
                cached: _Built | None = self.cache.find(key)
            except TypeError:  # a list or an object where a text belongs: not hashable
                yield build(pairs)
                continue
            if cached is None:
                cached = build(pairs)
                sizes = (len(value) if isinstance(value, str) else 16 for _, value in pairs)
                self.cache.keep(key, cached, size_bytes=sum(sizes))
            yield cached

    def rest(self, prefix: str) -> dict[str, Value]:
        """Return the attributes of a family by what follows the prefix."""
        attributes = self.view.attributes
        return {key[len(prefix) :]: attributes[key] for key in self.families.get(prefix, ())}

    def records(self, *names: str) -> list[ReadRecord]:
        """Return the span's events and logs with one of the names, by time, then position."""
        if self._records is None:
            self._records = sorted(
                [*map(_of_event, self.view.events), *map(_of_log, self.view.logs)],
                key=lambda record: record.time_ns,
            )
        return [record for record in self._records if record.name in names]


def start_reading(
    view: SpanView,
    cache: MessageCache,
    *,
    families: Mapping[str, Sequence[str]],
    marks: frozenset[str],
) -> Reading:
    return Reading(view, cache, families, marks, "other", [], {}, None)


def nested(pairs: Iterable[Pair]) -> dict[str, Any]:
    """Return flat pairs as a tree of dicts; where a leaf and a branch collide the first stays."""
    tree: dict[str, Any] = {}
    for rest, value in pairs:
        *path, leaf = rest.split(".", _DEEPEST_KEY)
        branch: Any = tree
        for segment in path:
            branch = branch.setdefault(segment, {})
            if not isinstance(branch, dict):
                break
        else:
            branch.setdefault(leaf, value)
    return tree


def rows(tree: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the numbered children of a branch of such a tree, sorted as numbers."""
    branch = tree.get(key)
    if not isinstance(branch, dict):
        return []
    numbered = [
        (int(index), child)
        for index, child in branch.items()
        if index.isdecimal() and len(index) <= _LONGEST_INDEX and isinstance(child, dict)
    ]
    return [child for _, child in sorted(numbered, key=itemgetter(0))]


def _of_event(event: EventView) -> ReadRecord:
    return ReadRecord(event.name, event.time_ns, event.attributes, None)


def _of_log(log: LogView) -> ReadRecord:
    return ReadRecord(log.event_name, log.time_ns, log.attributes, log.body)
