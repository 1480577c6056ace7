"""Recent memory that topics come from: decisions, notes and corrections, without diagnostics."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_collector.heartbeat.notes import AGENT, DIAGNOSTIC
from hansard_collector.interests.topics import Entry
from hansard_compiler.compile.models import EXTERNAL
from hansard_compiler.redaction.redactor import Redactor
from hansard_store.memory.queries import MemoryFilter, list_memories
from hansard_store.memory.records import Memory

TYPES: Final = ("decision", "note", "correction")
WINDOW_NS: Final = 14 * 24 * 3_600 * 10**9
MOST_OF_TYPE: Final = 200  # the last written
MOST_NAMESPACES: Final = 20  # those written to last
_LONGEST: Final = 4_000  # characters of an entry that are looked at
# What writes about the work of Hansard itself, or copies what strangers wrote.
_ORIGINS: Final = frozenset({DIAGNOSTIC, EXTERNAL, "evaluation", "maintenance", "interests"})
_WRITERS: Final = ("heartbeat:", "scanner:")
# Notes of older systems that have no origin.
PREFIXES: Final = ("[log-review]", "[evaluation]", "[longitudinal]", "[peep]")

Place = tuple[str, str, str]  # project, user, agent; "" for none


@dataclass(frozen=True, slots=True)
class RecentEntries:
    """What was read, by namespace, those written to last first."""

    by_place: dict[Place, list[Entry]]
    excluded: dict[str, int]  # how many were left out: diagnostic, external

    @property
    def count(self) -> int:
        return sum(map(len, self.by_place.values()))

    @property
    def types(self) -> dict[str, int]:
        """How many there are of each type."""
        counts = dict.fromkeys(TYPES, 0)
        for found in self.by_place.values():
            for one in found:
                counts[one.memory_type] += 1
        return counts

    @property
    def digest(self) -> str:
        """Names the set of entries: equal ones give the same topics."""
        names = sorted(one.memory_id for found in self.by_place.values() for one in found)
        return hashlib.sha256("\n".join(names).encode()).hexdigest()[:32]


def recent_entries(
    connection: apsw.Connection, redactor: Redactor, *, now_ns: int, since_ns: int
) -> RecentEntries:
    """Return the current decisions, notes and corrections written since a time.

    Diagnostics and what came from outside are left out and counted, by origin and writer, and by
    the prefixes of notes that have no origin. These reads do not count as retrievals.
    """
    found: list[Memory] = []
    for memory_type in TYPES:
        wanted = MemoryFilter(memory_type=memory_type)
        page = list_memories(connection, wanted, now_ns=now_ns, limit=MOST_OF_TYPE)
        found += [one for one in page.items if one.created_ns >= since_ns]
    found.sort(key=lambda one: -one.id)
    by_place: dict[Place, list[Entry]] = defaultdict(list)
    excluded = {DIAGNOSTIC: 0, EXTERNAL: 0}
    for one in found:
        reason = excluded_as(one)
        if reason is not None:
            excluded[reason] += 1
            continue
        by_place[one.project, one.user, one.agent].append(_entry(one, redactor))
    return RecentEntries(dict(list(by_place.items())[:MOST_NAMESPACES]), excluded)


def excluded_as(one: Memory) -> str | None:
    """Return why a record is no source of interests, `diagnostic` or `external`; None: it is."""
    origin = one.metadata.get("origin")
    by = one.written_by or ""
    if origin == EXTERNAL or EXTERNAL in one.tags or by.startswith("scanner:"):
        return EXTERNAL
    is_noise = (isinstance(origin, str) and origin in _ORIGINS) or by.startswith(_WRITERS)
    said = [text.lstrip().lower() for text in texts_of(one.content)]
    is_old = any(text.startswith(PREFIXES) for text in said)
    return DIAGNOSTIC if is_noise or is_old or one.agent == AGENT else None


def texts_of(content: Any) -> list[str]:
    """Return the texts of a content; of an object its values, without their names."""
    if isinstance(content, str):
        return [content]
    if isinstance(content, Mapping):
        content = list(content.values())
    if isinstance(content, list | tuple):
        return [text for one in content for text in texts_of(one)]
    return []


def _entry(one: Memory, redactor: Redactor) -> Entry:
    said = "\n".join(texts_of(one.content))[:_LONGEST]
    clean = [redactor.redact_text(text).text for text in (one.subject, said)]
    return Entry(one.memory_id, one.memory_type, *clean)
