"""Tokens and cost of a period by a dimension, as a file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Final

from hansard_store.figures.records import Figures
from hansard_store.runs.status import TokenSums
from hansard_web.exports.table import Row, Source, Table
from hansard_web.overview.page import TIMEOUT_MS
from hansard_web.overview.state import DIMENSIONS
from hansard_web.overview.table import FIGURE_FILTERS, read_filters, usd
from hansard_web.usage.page import DEFAULT_PERIOD, read_sums, usage_windows


def _rows(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    now_ns = time.time_ns()
    state, wanted = read_filters(
        filters, DIMENSIONS, now_ns=now_ns, default_period=DEFAULT_PERIOD, path="/usage"
    )
    with source.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        window, _ = usage_windows(connection, state, now_ns=now_ns)
        sums = read_sums(connection, window, (state.by,), wanted, merge_models=not state.is_dated)
    for key, one in sums.of[state.by]:
        yield {"by": state.by, "key": key, **_cells(one)}


def _cells(one: Figures) -> Row:
    tokens = one.tokens or TokenSums()
    return {
        "runs": one.runs,
        "model_calls": one.model_calls,
        "unpriced_calls": one.unpriced_calls,
        "input_tokens": tokens.input,
        "cached_tokens": tokens.cache_read,
        "output_tokens": tokens.output,
        "reasoning_tokens": tokens.reasoning,
        "cost_usd": usd(one.cost_usd_nano),
    }


TABLE: Final = Table(
    name="usage",
    columns=("by", "key", *_cells(Figures())),
    filters=FIGURE_FILTERS,
    rows=_rows,
)
