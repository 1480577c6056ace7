"""The audit log: append-only, gapless, chained; and read by what people ask."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.canonical import canonical_bytes
from hansard_store.audit.event_types import EMPTY_HEAD, Actor, Event, EventFilter, EventType, Head
from hansard_store.audit.events import (
    append,
    events_query,
    head,
    read_events,
    verify_events,
)
from hansard_store.audit.hash_chain import content_of
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import transaction
from tests.store.accounts import chained
from tests.store.by_hand import triggers_dropped


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    opened = open_for_ingest(DataFolder(tmp_path / "data"))
    yield opened
    opened.close()


def event(number: int = 1, **changes: Any) -> Event:
    told: dict[str, Any] = {
        "type": EventType.TOOL_CALLED,
        "actor": Actor.AGENT,
        "action": "send_email",
        "source": "test",
        "subject": "tool:send_email",
        "time_ns": number * 10**9,
        "body": {"call_id": f"c{number}"},
    }
    return Event(**{**told, **changes})


def filled(connection: apsw.Connection, count: int = 5) -> None:
    with transaction(connection):
        for number in range(1, count + 1):
            append(connection, event(number))


@pytest.mark.covers("EV-01")
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE event SET action = 'x' WHERE seq = 2",
        "DELETE FROM event WHERE seq = 5",
        "DELETE FROM event",
        "INSERT OR REPLACE INTO event SELECT * FROM event WHERE seq = 5",
        "INSERT OR REPLACE INTO event SELECT seq, 1, late, type, actor, who, action, source, "
        "subject, approval_id, trace_id, span_id, body, prev_hash, hash FROM event WHERE seq = 2",
        "INSERT INTO event SELECT seq + 7, time_ns, late, type, actor, who, action, source, "
        "subject, approval_id, trace_id, span_id, body, hash, hash FROM event WHERE seq = 5",
        "UPDATE event_content SET body = '1'",
        "DELETE FROM event_content",
        "INSERT OR REPLACE INTO event_content VALUES (6, 'note', x'00', '1')",
    ],
)
def test_the_database_itself_refuses_to_alter_the_log(
    connection: apsw.Connection, sql: str
) -> None:
    filled(connection)
    with transaction(connection):
        append(connection, event(6, contents=(content_of("note", "shorter"),)))
    before = connection.execute("SELECT * FROM event").fetchall()

    with pytest.raises(apsw.ConstraintError, match="append-only"):
        connection.execute(sql)

    assert connection.execute("SELECT * FROM event").fetchall() == before


@pytest.mark.covers("EV-10")
def test_a_type_that_is_not_of_the_list_is_refused(connection: apsw.Connection) -> None:
    with pytest.raises(TypeError, match="no type of event"), transaction(connection):
        append(connection, event(type="tool.guessed"))

    assert head(connection) == Head(0, bytes(32))


@pytest.mark.covers("EV-12", "EV-13")
def test_an_event_knows_who_did_what_from_where_and_to_what(connection: apsw.Connection) -> None:
    filled(connection, 1)
    (found,) = read_events(connection)
    assert (found.actor, found.action, found.source, found.subject) == (
        "agent", "send_email", "test", "tool:send_email",
    )  # fmt: skip

    for column in ("actor", "action", "source", "subject"):
        with pytest.raises(apsw.ConstraintError):
            connection.execute(
                f"INSERT INTO event SELECT 2, 1, 0, type, "
                f"{', '.join('NULL' if one == column else one for one in _MIDDLE)}, "
                "NULL, NULL, NULL, '{}', hash, zeroblob(32) FROM event"
            )
    with pytest.raises(ValueError, match="robot"):
        Actor("robot")


_MIDDLE = ("actor", "who", "action", "source", "subject")


@pytest.mark.covers("EV-02")
@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (EventFilter(actor="me"), [3]),
        (EventFilter(action="pay"), [2]),
        (EventFilter(type="failure"), [7, 4]),
        (EventFilter(source="cli"), [3]),
        (EventFilter(subject="tool:pay"), [2]),
        (EventFilter(approval_id=b"a" * 16), [5]),
        (EventFilter(trace_id=b"t" * 16), [4]),
        (EventFilter(who="ann"), [3]),
        (EventFilter(who="look"), [7, 6]),
        (EventFilter(who="look", type="tool.returned"), [6]),
        (EventFilter(who="look", action="look"), [6]),
        (EventFilter(type="tool.returned"), [6]),
        (EventFilter(type="tool.called", since_ns=2 * 10**9), [5, 3, 2]),
        (EventFilter(since_ns=2 * 10**9, until_ns=4 * 10**9), [3, 2]),
        (EventFilter(actor="agent", since_ns=2 * 10**9), [5, 4, 2]),
        (EventFilter(actor="tool"), [7, 6]),
    ],
)
def test_events_are_found_by_each_of_their_facts(
    connection: apsw.Connection, wanted: EventFilter, numbers: list[int], plans: Any
) -> None:
    with transaction(connection):
        append(connection, event(1))
        append(connection, event(2, action="pay", subject="tool:pay"))
        append(connection, event(3, actor=Actor.ME, who="ann", source="cli"))
        append(connection, event(4, type=EventType.FAILURE, trace_id=b"t" * 16))
        append(connection, event(5, approval_id=b"a" * 16))
        returned = {"type": EventType.TOOL_RETURNED, "actor": Actor.TOOL, "who": "look"}
        append(connection, event(6, action="look", **returned))
        append(connection, event(7, **{**returned, "type": EventType.FAILURE}))

    with plans.watch(connection):
        found = read_events(connection, wanted)

    assert [one.seq for one in found] == numbers
    assert (plans.scans(), plans.sorts()) == ([], [])


@pytest.mark.parametrize(
    "name", ["approval_id", "trace_id", "subject", "type", "actor", "source", "action"]
)
def test_a_filtered_list_of_events_is_served_by_its_index(
    connection: apsw.Connection, name: str
) -> None:
    value: Any = b"x" if name.endswith("_id") else "x"
    sql, given = events_query(EventFilter(**{name: value}))

    bindings = {**given, "before": 9, "limit": 5}
    plan = [str(step[3]) for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]

    assert plan[0].startswith("SEARCH event USING INDEX event_")


def test_what_somebody_did_is_merged_from_two_indexes_and_sorted_by_none(
    connection: apsw.Connection,
) -> None:
    sql, given = events_query(EventFilter(who="ann"))

    bindings = {**given, "before": 9, "limit": 5}
    plan = [str(step[3]) for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]

    searched = [step.partition(" (")[0] for step in plan if step.startswith("SEARCH")]
    assert searched == [f"SEARCH event USING INDEX event_{name}" for name in ("who_else", "action")]
    assert not [step for step in plan if "TEMP B-TREE" in step or step.startswith("SCAN")]


@pytest.mark.parametrize("name", ["actor", "source", "type"])
def test_what_nearly_all_events_have_is_found_by_walking_back(
    connection: apsw.Connection, name: str
) -> None:
    usual = {"actor": "agent", "source": "sdk", "type": "tool.called"}
    with transaction(connection):
        append(connection, event(1, source="sdk"))
        append(connection, event(2, actor=Actor.ME, source="cli", type=EventType.FAILURE))

    [found] = read_events(connection, EventFilter(**{name: usual[name]}))

    assert found.seq == 1


@given(text=st.text(), late=st.booleans(), time_ns=st.integers(-(1 << 70), 1 << 70))
def test_an_events_hash_is_that_of_the_canonical_json_of_its_columns(
    text: str, late: bool, time_ns: int
) -> None:
    made = chained(event(who=text, late=late, time_ns=time_ns), EMPTY_HEAD)

    columns = [
        "hansard.event/1", 1, time_ns, int(late), "tool.called", "agent", text, "send_email",
        "test", "tool:send_email", None, None, None, made.body, bytes(32).hex(),
    ]  # fmt: skip
    assert made.hash == hashlib.sha256(canonical_bytes(columns)).digest()


def tampered(connection: apsw.Connection, sql: str) -> None:
    """Do what the triggers forbid, as somebody with the file in hand could."""
    connection.pragma("foreign_keys", value=False)
    with triggers_dropped(connection):
        connection.execute(sql)


@pytest.mark.covers("RC-30")
@pytest.mark.parametrize(
    ("sql", "seq", "problem"),
    [
        ("UPDATE event SET action = 'send_emaiI' WHERE seq = 3", 3, "altered"),
        ("UPDATE event SET body = replace(body, 'c3', 'c4') WHERE seq = 3", 3, "altered"),
        ("UPDATE event SET time_ns = time_ns + 1 WHERE seq = 5", 5, "altered"),
        ("UPDATE event SET late = 1 WHERE seq = 1", 1, "altered"),
        ("UPDATE event SET trace_id = zeroblob(16) WHERE seq = 2", 2, "altered"),
        ("UPDATE event SET prev_hash = zeroblob(32) WHERE seq = 4", 4, "does not continue"),
        ("DELETE FROM event WHERE seq = 2", 3, "removed"),
        ("DELETE FROM event WHERE seq = 1", 2, "removed"),
        ("UPDATE event SET seq = seq + 1 WHERE seq = 5", 6, "removed"),
        (
            "UPDATE event_content SET body = '\"longer\"' WHERE event = 6",
            6,
            "another note than was written",
        ),
        ("DELETE FROM event_content WHERE event = 6", 6, "has lost its note"),
        (
            "INSERT INTO event_content VALUES (2, 'note', x'00', '1')",
            2,
            "note that was added later",
        ),
    ],
)
def test_the_first_broken_row_is_named(
    connection: apsw.Connection, sql: str, seq: int, problem: str
) -> None:
    filled(connection)
    if "content" in sql:
        with transaction(connection):
            append(connection, event(6, contents=(content_of("note", "shorter"),)))
    assert verify_events(connection).is_sound

    tampered(connection, sql)
    report = verify_events(connection)

    assert report.broken is not None
    assert report.broken.seq == seq
    assert problem in report.broken.problem
    assert report.checked == min(seq - 1, 5 if "content" in sql else seq - 1) - (
        1 if problem == "removed" else 0
    )


def test_a_cut_end_and_a_log_written_anew_are_seen_with_an_anchor(
    connection: apsw.Connection,
) -> None:
    filled(connection)
    kept = head(connection)
    assert verify_events(connection, anchor=kept).is_sound
    tampered(connection, "DELETE FROM event WHERE seq > 3")

    assert verify_events(connection).is_sound  # the limit of a chain without an anchor
    cut = verify_events(connection, anchor=kept).broken
    with transaction(connection):
        for number in (4, 5):
            append(connection, event(number, action="pay"))
    anew = verify_events(connection, anchor=kept).broken

    assert cut is not None
    assert (cut.seq, "its end was removed" in cut.problem) == (4, True)
    assert anew is not None
    assert (anew.seq, "written anew" in anew.problem) == (5, True)


def test_texts_that_are_hard_to_write_are_chained_too(connection: apsw.Connection) -> None:
    with transaction(connection):
        odd = {"broken": "\ud800", "large": 10**400, "nan": float("nan")}
        append(connection, event(1, body=odd, contents=(content_of("draft", odd),)))

    assert verify_events(connection).is_sound
    assert read_events(connection)[0].contents["draft"]["large"] == 10**400
