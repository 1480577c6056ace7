"""The contract of the audit log: each path leaves its events, no other path does."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard_store.approvals.service import ApprovalService
from hansard_store.audit import events
from hansard_store.audit.event_types import Event, EventType, StoredEvent
from tests.store.account_paths import WRITES, history, rules
from tests.store.accounts import Clock, account

# Of other stores of the same folder; they append these with rows of their own. Heads are accepted
# only where the log is held against one that it has not come by (test_anchors.py), and rows are
# sealed by the clock (test_seals.py). Of the schema: journeys/test_altered_schema.py.
OF_OTHERS = {
    EventType.HEAD_ACCEPTED,
    EventType.SCHEMA_ALTERED,
    EventType.SCHEMA_REPAIRED,
    EventType.RECORD_SEALED,
    EventType.MEMORY_WRITTEN,
    EventType.MEMORY_INVALIDATED,
    EventType.TRANSCRIPT_FOLDED,
    EventType.TASK_DECIDED,
    EventType.ERROR_GROUP_CHANGED,
    EventType.REPORT_WRITTEN,
    EventType.REPORT_REMOVED,
    EventType.REPORT_ACKNOWLEDGED,
    EventType.TOKEN_ADDED,
    EventType.TOKEN_REVOKED,
}


def walked(folder: Path) -> dict[str, list[str]]:
    """Take every path and return what it logged, after what its store was prepared with."""
    found = {}
    for number, (name, write) in enumerate(WRITES.items()):
        clock = Clock()
        with account(folder / str(number), clock, policy=rules) as desk:
            given = write.prepare(desk, clock)
            before = len(history(desk))
            write.act(desk, given)
            found[name] = history(desk)[before:]
    return found


def contract() -> dict[str, list[str]]:
    return {name: [str(one) for one in write.types] for name, write in WRITES.items()}


@pytest.mark.covers("EV-10", "EV-11")
def test_every_write_of_the_store_logs_what_the_contract_says_and_nothing_else(
    tmp_path: Path,
) -> None:
    found = walked(tmp_path)

    assert found == contract()
    assert {one for types in found.values() for one in types} == set(EventType) - OF_OTHERS


@pytest.mark.covers("EV-11")
@pytest.mark.parametrize("dropped", sorted(set(EventType) - OF_OTHERS))
def test_a_path_that_forgets_its_event_is_found(
    tmp_path: Path, dropped: EventType, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = events.SqliteEventLog.append

    def forgetful(log: events.SqliteEventLog, event: Event) -> int:
        return 0 if event.type is dropped else append(log, event)

    monkeypatch.setattr(events.SqliteEventLog, "append", forgetful)

    concerned = {name: one for name, one in WRITES.items() if dropped in one.types}
    assert concerned
    for number, (name, write) in enumerate(concerned.items()):
        clock = Clock()
        with account(tmp_path / str(number), clock, policy=rules) as desk:
            given = write.prepare(desk, clock)
            before = len(history(desk))
            write.act(desk, given)
            assert history(desk)[before:] != contract()[name]


@pytest.mark.covers("EV-18")
def test_an_event_names_its_step_though_no_span_was_ever_sent(tmp_path: Path) -> None:
    write, clock = WRITES["approve"], Clock()
    with account(tmp_path, clock, policy=rules) as desk:
        write.act(desk, write.prepare(desk, clock))
        found = list(desk.events())

    assert {one.trace_id.hex() for one in found if one.trace_id} == {
        "0af7651916cd43dd8448eb211c80319c"
    }
    assert all(one.span_id is not None for one in found)


@pytest.mark.covers("EV-14")
def test_an_events_body_holds_hashes_and_no_content(tmp_path: Path) -> None:
    for number, (name, write) in enumerate(WRITES.items()):
        clock = Clock()
        with account(tmp_path / str(number), clock, policy=rules) as desk:
            write.act(desk, write.prepare(desk, clock))
            bodies = "".join(one.body for one in desk.events(limit=500))

        for content in (
            "alice@company.com",
            "Q3 report",
            "see attached",
            "boom",
            "warmer",
            "outbox",
        ):
            assert content not in bodies, name


def test_what_happened_before_it_was_written_is_late(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        at_ns = desk.now_ns() - 5_000_000_000
        desk.tool_called("find", time_ns=at_ns)
        desk.tool_called("find")

        late, prompt = _in_order(desk)

    assert (late.time_ns, late.late, prompt.late) == (at_ns, True, False)


def _in_order(desk: ApprovalService) -> list[StoredEvent]:
    return list(desk.events())[::-1]
