"""Questions in SQL: what may be read, what may not, and what takes too long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hansard_store.approvals.records import Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.sql_console import VIEWS, read_sql
from hansard_store.errors import InvalidQueryError, QueryLimitError
from tests.store.empty import empty_store


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFolder]:
    made = empty_store(tmp_path_factory.mktemp("sql") / "data")
    store = ApprovalService(made)
    store.propose(Proposal(tool="send", arguments={"to": "kim", "text": "x" * 5_000}))
    yield made
    store.close()


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_every_view_can_be_read_and_counted(folder: DataFolder, view: str) -> None:
    assert read_sql(folder, f"SELECT * FROM {view}").columns
    ((count,),) = read_sql(folder, f"SELECT count(*) FROM {view}").rows
    assert count == (1 if view == "pending_actions" else 0)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT tool FROM pending_actions",
        "WITH waiting AS (SELECT tool FROM pending_actions) SELECT tool FROM waiting",
        "SELECT p.tool FROM pending_actions p LEFT JOIN runs USING (run_id)",
        "SELECT tool FROM pending_actions WHERE description LIKE '%kim%' OR tool = 'send'",
    ],
)
def test_a_select_over_views_is_answered(folder: DataFolder, sql: str) -> None:
    assert read_sql(folder, sql).rows == [("send",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM approval",
        "SELECT value FROM setting",
        "SELECT (SELECT value FROM setting) FROM pending_actions",
        # A name of a view given to something else opens nothing.
        "WITH runs AS (SELECT * FROM event) SELECT * FROM runs",
        "SELECT * FROM (SELECT * FROM event) AS pending_actions",
        "SELECT body FROM event_content",
        "SELECT sql FROM sqlite_master",
        "SELECT * FROM pragma_table_list",
        "SELECT * FROM json_each('[1]')",
        "SELECT load_extension('x')",
        "EXPLAIN SELECT * FROM runs",
        "PRAGMA user_version",
        "DELETE FROM approval",
        "UPDATE approval SET status = 'approved'",
        "INSERT INTO setting VALUES ('a', 'b')",
        "CREATE TEMP VIEW runs AS SELECT * FROM event",
        "ATTACH '/etc/passwd' AS other",
        "VACUUM INTO '/tmp/copy.db'",
        "BEGIN IMMEDIATE",
        "SELECT 1; SELECT 2",
        "SELECT 1; DELETE FROM approval",
        "SELECT zeroblob(500000000)",
        "SELECT nothing",
        "SELECT '\ud800'",
        "\0",
        "SELECT 1\0; DELETE FROM approval",
        "-- nothing",
        " ",
        "SELECT 1 -- " + "x" * 10_000,
    ],
)
def test_anything_else_is_refused_with_a_sentence(folder: DataFolder, sql: str) -> None:
    with pytest.raises(InvalidQueryError) as refused:
        read_sql(folder, sql)

    assert len(str(refused.value)) > 20
    assert read_sql(folder, "SELECT status FROM pending_actions").rows == [("awaiting",)]


def test_what_takes_too_long_is_stopped(folder: DataFolder) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n"

    with pytest.raises(QueryLimitError):
        read_sql(folder, endless, timeout_ms=50)


def test_rows_and_values_are_bounded_and_that_is_said(folder: DataFolder) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"

    many = read_sql(folder, numbers, limit=7)
    long = read_sql(folder, "SELECT arguments, x'00ff' FROM pending_actions")

    assert ([row[0] for row in many.rows], many.is_more) == ([1, 2, 3, 4, 5, 6, 7], True)
    assert (len(str(long.rows[0][0])), long.cut_cells, long.is_more) == (2_000, 1, False)
    assert long.rows[0][1] == "00ff"


def test_a_limit_that_cannot_be_meant_is_refused(folder: DataFolder) -> None:
    with pytest.raises(InvalidQueryError):
        read_sql(folder, "SELECT 1", limit=0)


def test_the_file_is_not_written(folder: DataFolder, tmp_path: Path) -> None:
    before = folder.database.read_bytes()

    read_sql(folder, "SELECT * FROM runs ORDER BY random()")

    assert folder.database.read_bytes() == before
