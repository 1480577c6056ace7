"""Each row of the mapping table: every source works alone, and the earlier one wins."""

from __future__ import annotations

import pytest

from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_collector.dialects.engine.normalisation import MessageCache, normalise
from hansard_collector.dialects.mappings import table
from tests.collector.dialects import rows_of_calls, rows_of_numbers, rows_of_steps
from tests.collector.dialects.maker import span
from tests.collector.dialects.rows import Given, Row

_ROWS = [*rows_of_steps.ROWS, *rows_of_calls.ROWS, *rows_of_numbers.ROWS]
_CASES = [(row, at) for row in _ROWS for at in range(len(row.sources))]
_IDS = [f"{row.name} / {next(iter(row.sources[at].attributes), 'event')}" for row, at in _CASES]


def _shown(row: Row, *given: Given) -> Normalised:
    attributes = dict(row.context)
    for source in reversed(given):
        attributes |= source.attributes
    events = [event for source in given for event in source.events]
    logs = [log for source in given for log in source.logs]
    return normalise(span(attributes, events=events, logs=logs, **row.span), MessageCache())


@pytest.mark.parametrize(("row", "at"), _CASES, ids=_IDS)
def test_each_source_of_a_row_is_read_where_it_stands_alone(row: Row, at: int) -> None:
    source = row.sources[at]

    assert row.get(_shown(row, source)) == source.expected


# Rows whose sources lie in one event list or whose value is a sum have an order of their own.
_UNORDERED = {"cost parts", "system instructions", "display name", "prompt template"}


@pytest.mark.parametrize(
    ("row", "at"),
    [(row, at) for row, at in _CASES if row.name not in _UNORDERED],
    ids=[name for name, (row, _) in zip(_IDS, _CASES, strict=True) if row.name not in _UNORDERED],
)
def test_a_source_wins_over_all_that_stand_after_it_in_the_row(row: Row, at: int) -> None:
    shown = _shown(row, *row.sources[at:])

    assert row.get(shown) == row.sources[at].expected


@pytest.mark.parametrize("group", ["every", "content", "lesser_content", "retrieval"])
def test_what_these_rows_read_is_named_as_the_fields_of_the_normal_form(group: str) -> None:
    assert table.GROUPS[group].keys() <= set(Normalised._fields)
