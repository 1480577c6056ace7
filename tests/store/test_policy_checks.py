"""Policy checks in the store: filtered by index, told once, removed with their run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import transaction
from hansard_store.policy.checks import (
    CheckRow,
    add_check,
    checks_query,
    list_checks,
    record_check,
    release_checks,
)
from tests.store.empty import empty_store

TRACE, SPAN = b"\x01" * 16, b"\x02" * 8


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    opened = open_for_ingest(empty_store(tmp_path / "data"))
    yield opened
    opened.close()


def row(**changes: str) -> CheckRow:
    made = CheckRow(
        1, "do", "allow", "rule", "why", "r1", "set", "1", [], [], "clerk", "pay", {}, "hash"
    )
    return made._replace(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["trace_id", "rule_id", "agent", "effect"])
def test_a_filtered_list_of_checks_is_served_by_its_index(
    connection: apsw.Connection, name: str
) -> None:
    sql, given = checks_query({name: TRACE if name == "trace_id" else "x"})

    bindings = {**given, "before": 9, "limit": 5}
    plan = [str(step[3]) for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]

    assert plan[0].startswith("SEARCH policy_check USING INDEX policy_check_")


def test_a_check_of_a_step_is_kept_once_whoever_tells_it(connection: apsw.Connection) -> None:
    with transaction(connection):
        add_check(connection, row(), trace_id=TRACE, span_id=SPAN)
        add_check(connection, row(effect="deny"), trace_id=TRACE, span_id=SPAN, span=7)
        add_check(connection, row(effect="deny"), trace_id=TRACE, span_id=SPAN, ordinal=1, span=7)

    found = list_checks(connection, trace_id=TRACE)

    assert [(one.row.effect, one.is_derived) for one in found] == [("deny", True), ("allow", False)]


def test_every_check_made_about_a_step_is_kept(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    connection = open_for_ingest(folder)

    numbers = [record_check(folder, row(), trace_id=TRACE, span_id=SPAN) for _ in range(3)]

    assert [one.id for one in list_checks(connection)] == numbers[::-1] == [3, 2, 1]
    connection.close()


def test_checks_without_a_run_are_all_kept(connection: apsw.Connection) -> None:
    with transaction(connection):
        for _ in range(3):
            add_check(connection, row(), trace_id=None, span_id=None)

    assert len(list_checks(connection)) == 3


def test_checks_of_a_run_are_removed_in_slices(connection: apsw.Connection) -> None:
    with transaction(connection):
        for ordinal in range(5):
            add_check(connection, row(), trace_id=TRACE, span_id=SPAN, ordinal=ordinal)
        add_check(connection, row(), trace_id=b"\x09" * 16, span_id=SPAN)

    with transaction(connection):
        removed = [release_checks(connection, TRACE, most=3) for _ in range(3)]

    assert removed == [3, 2, 0]
    assert len(list_checks(connection)) == 1
