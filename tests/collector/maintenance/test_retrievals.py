"""Staleness by real retrievals, and what a write is to the memory before it."""

from __future__ import annotations

import pytest

from hansard_collector.judges import Judges
from hansard_collector.maintenance import result_json
from hansard_compiler.models.memory import UnsupersedeMemory
from hansard_store.memory.queries import MemoryFilter, list_memories
from tests.collector.maintenance.maintaining import Upkeep
from tests.store.memory_maker import SECOND

DAY = 86_400 * SECOND


@pytest.mark.covers("MM-07")
def test_what_nobody_retrieves_for_thirty_days_is_counted_as_stale(upkeep: Upkeep) -> None:
    read, unread = upkeep.write("Ada prefers tea.", "Ada"), upkeep.write("CI runs 3.12.", "CI")
    upkeep.memory.now_ns += 20 * DAY
    upkeep.memory.read(subject="Ada")  # by an agent
    list_memories(upkeep.memory.connection, MemoryFilter(), now_ns=upkeep.memory.now_ns)  # a look
    upkeep.memory.now_ns += 11 * DAY

    found = upkeep.run(Judges()).stale
    upkeep.memory.now_ns += 20 * DAY
    later = upkeep.run(Judges()).stale

    assert (found.count, found.never_read, found.longest) == (1, 1, (unread,))
    assert (later.count, later.never_read, later.longest) == (2, 1, (unread, read))
    assert set(upkeep.states().values()) == {"current"}


@pytest.mark.covers("MM-07")
def test_what_was_written_lately_is_not_stale_and_days_are_a_setting(upkeep: Upkeep) -> None:
    upkeep.write("Ada prefers tea.", "Ada")
    upkeep.memory.now_ns += 2 * DAY

    assert upkeep.run(Judges()).stale.count == 0
    told = result_json(upkeep.run(Judges(), stale_ns=DAY))
    assert (told["stale_entries"], told["stale"]["days"]) == (1, 1)


@pytest.mark.covers("MM-13")
def test_a_write_is_classified_as_add_update_delete_or_ignore(upkeep: Upkeep) -> None:
    added = upkeep.tell("Ada uses dark mode.", "Ada", attribute="theme")
    same = upkeep.tell("Ada uses dark mode.", "Ada", attribute="theme")
    other = upkeep.tell("Ada uses light mode.", "Ada", attribute="theme")
    denied = upkeep.tell("Ada no longer uses light mode.", "Ada", attribute="theme")
    older = upkeep.tell(
        "Ada uses blue mode.", "Ada", attribute="theme", freshness_ts="2020-01-01T00:00:00Z"
    )

    told = [(one["change"], one["outcome"]) for one in (added, same, other, denied, older)]

    assert told == [
        ("add", "current"), ("ignore", "repeat"), ("update", "current"), ("delete", "current"),
        ("ignore", "superseded"),
    ]  # fmt: skip
    assert upkeep.memory.contents() == ["Ada no longer uses light mode."]


@pytest.mark.covers("MM-13")
def test_what_a_write_deleted_is_brought_back(upkeep: Upkeep) -> None:
    stood = upkeep.write({"value": "dark"}, "Ada", attribute="theme")
    gone = upkeep.tell({"value": None}, "Ada", attribute="theme")

    assert (gone["change"], gone["superseded"]) == ("delete", [stood])
    upkeep.memory.book.unsupersede(UnsupersedeMemory(memory_id=stood, by="noor"))
    assert upkeep.memory.contents() == [{"value": "dark"}]


@pytest.mark.covers("MM-13")
def test_a_write_that_contradicts_a_record_without_attribute_is_told_as_an_update(
    upkeep: Upkeep,
) -> None:
    upkeep.write("The port of the staging server is 8080.")
    new = upkeep.tell("The port of the staging server is 9090.")

    assert (new["change"], new["outcome"], new["superseded"]) == ("update", "current", [])
    assert [one["is_certain"] for one in new["conflicts"]] == [True]
    assert len(upkeep.run().applied) == 1
