"""The benchmark of pages: a store of thirty days is made once, and every page of it answers."""

from __future__ import annotations

import time
from pathlib import Path

import apsw
import pytest

from bench import month, pages
from hansard_web.ui.navigation import PLACES

SPANS = 600


@pytest.mark.slow
def test_every_page_of_a_month_is_measured_and_the_store_is_made_once(tmp_path: Path) -> None:
    pages.run(spans=SPANS, data=tmp_path, calls=1)
    figures = pages.run(spans=SPANS, data=tmp_path, calls=1)

    measured = {figure.what.split("  ")[-1] for figure in figures}
    assert measured >= {place.href for place in PLACES}
    assert count(tmp_path, "span") == SPANS


@pytest.mark.slow
def test_a_month_has_all_that_pages_are_narrowed_by(tmp_path: Path) -> None:
    month.fill(tmp_path, spans=SPANS)

    began_ns = time.time_ns() - 30 * 86_400 * 1_000_000_000
    assert count(tmp_path, "run", f"WHERE started_ns < {began_ns - 3_600 * 1_000_000_000}") == 0
    assert count(tmp_path, "run", "WHERE user_id IS NOT NULL") > 0
    assert count(tmp_path, "run", "WHERE error_count > 0") > 0
    assert count(tmp_path, "call", "WHERE tokens_cache_read > 0") > 0
    assert count(tmp_path, "annotation", "WHERE kind = 'tag'") > 0


def count(data: Path, table: str, where: str = "") -> int:
    connection = apsw.Connection(str(data / "hansard.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table} {where}").get)
    finally:
        connection.close()
