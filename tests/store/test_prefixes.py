"""Ids found by their beginning, whatever they are of."""

from __future__ import annotations

import apsw
import pytest

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.database.id_prefixes import find_row

_SQL = "SELECT id, name FROM thing WHERE id BETWEEN :low AND :high ORDER BY id LIMIT :limit"
_FIRST, _SECOND = "ab" * 16, "ab" * 15 + "cd"


@pytest.fixture
def things() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE thing (id BLOB PRIMARY KEY, name TEXT)")
    rows = [(bytes.fromhex(one), one[-2:]) for one in (_FIRST, _SECOND)]
    connection.executemany("INSERT INTO thing VALUES (?, ?)", rows)
    return connection


def test_a_whole_id_and_a_beginning_that_one_has_find_its_row(things: apsw.Connection) -> None:
    assert find_row(things, _SQL, "run", _FIRST)[1] == "ab"
    assert find_row(things, _SQL, "run", _SECOND[:31].upper())[1] == "cd"


def test_a_beginning_of_several_names_them(things: apsw.Connection) -> None:
    with pytest.raises(AmbiguousIdError) as error:
        find_row(things, _SQL, "run", _FIRST[:8])

    assert list(error.value.matches) == [_FIRST, _SECOND]


@pytest.mark.parametrize(
    "prefix",
    ["", "abababa", "c" * 8, "xy" * 8, _FIRST + "a", "ａｂ" * 4, "\ud800" * 8, "abab abab"],
)
def test_what_begins_no_id_finds_nothing(things: apsw.Connection, prefix: str) -> None:
    with pytest.raises(NotFoundError):
        find_row(things, _SQL, "run", prefix)


_ENDING = """
SELECT id, name FROM thing WHERE substr(hex(id), -8) = :tail AND hex(id) LIKE :ending LIMIT :limit
"""


def test_an_end_that_one_id_has_finds_its_row(things: apsw.Connection) -> None:
    assert find_row(things, _SQL, "task", "ABababcd", ending=_ENDING)[1] == "cd"


def test_an_id_that_begins_and_ends_so_is_found_once(things: apsw.Connection) -> None:
    with pytest.raises(AmbiguousIdError) as error:
        find_row(things, _SQL, "task", "ab" * 4, ending=_ENDING)

    assert list(error.value.matches) == [_FIRST, _SECOND]


def test_without_its_sql_an_end_finds_nothing(things: apsw.Connection) -> None:
    with pytest.raises(NotFoundError):
        find_row(things, _SQL, "run", _SECOND[-9:])
