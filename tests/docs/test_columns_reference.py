"""docs/columns.md: every column of the store, as its schema has it."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.docs.columns_reference import columns_page
from tests.docs.write_reference import COLUMNS, DATA_MODEL
from tests.store.empty import empty_store


@pytest.mark.covers("DC-03")
def test_every_column_is_listed_as_the_schema_has_it(tmp_path: Path) -> None:
    connection = apsw.Connection(str(empty_store(tmp_path / "data").database))
    page = columns_page(connection, DATA_MODEL.read_text(encoding="utf-8"))
    columns = connection.execute(
        "SELECT count(*) FROM pragma_table_list AS list, pragma_table_xinfo(list.name) AS one "
        "WHERE list.schema = 'main' AND list.type <> 'shadow' AND list.name NOT LIKE 'sqlite%' "
        "AND one.hidden <> 1"
    ).get
    connection.close()

    assert page.count("\n| `") == columns > 600
    assert COLUMNS.read_text(encoding="utf-8") == page, "out of date: run `make reference`"
