"""What is refused and what is repaired (otlp.md §9 and §12)."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.pipeline.validation import refuse_span, repair_span, span_times
from hansard_store.steps.flags import SpanFlag
from tests.collector.ingesting import START_NS, TRACE, Ingesting, span, traces

YEAR_2000_NS = 946_684_800 * 10**9
DAY_NS = 86_400 * 10**9


@pytest.mark.parametrize(
    ("trace_id", "span_id", "reason"),
    [
        (TRACE, b"12345678", None),
        (b"", b"12345678", "a trace id has 16 bytes, not 0"),
        (bytes(16), b"12345678", "a trace id is all zero"),
        (TRACE, b"1234567", "a span id has 8 bytes, not 7"),
        (TRACE, bytes(8), "a span id is all zero"),
    ],
)
def test_a_span_without_sound_ids_is_refused(
    trace_id: bytes, span_id: bytes, reason: str | None
) -> None:
    assert refuse_span(Span(trace_id=trace_id, span_id=span_id)) == reason


@pytest.mark.parametrize(
    ("parent", "kept", "flags"),
    [
        (b"12345678", b"12345678", 0),
        (b"", b"", 0),
        (bytes(8), b"", 0),  # a way to write "no parent"
        (b"123", b"", SpanFlag.PARENT_REPAIRED),
    ],
)
def test_an_invalid_parent_is_emptied_and_told(parent: bytes, kept: bytes, flags: int) -> None:
    one = Span(parent_span_id=parent)

    found, notes = repair_span(one)

    assert (one.parent_span_id, found, bool(notes)) == (kept, flags, bool(flags))


def test_links_with_invalid_ids_are_dropped_and_the_others_kept_in_order() -> None:
    one = Span()
    for number, trace_id in enumerate((TRACE, b"bad", TRACE, bytes(16)), start=1):
        one.links.add(trace_id=trace_id, span_id=bytes([number] * 8), trace_state=f"s={number}")

    flags, notes = repair_span(one)

    assert [link.trace_state for link in one.links] == ["s=1", "s=3"]
    assert flags == SpanFlag.LINK_DROPPED
    assert notes == ["2 links with invalid ids were dropped"]


@pytest.mark.parametrize(("bits", "remote"), [(0x300, True), (0x200, False), (0x100, False)])
def test_a_remote_parent_is_known_only_when_the_sender_says_that_it_knows(
    bits: int, remote: bool
) -> None:
    flags, _ = repair_span(Span(flags=bits))

    assert bool(flags & SpanFlag.PARENT_REMOTE) is remote


ODD, HUGE = SpanFlag.TIME_ODD, SpanFlag.TIME_ODD | SpanFlag.TIME_HUGE


@pytest.mark.parametrize(
    ("start", "end", "columns", "flags"),
    [
        (START_NS, START_NS + 5, (START_NS, START_NS + 5, START_NS), 0),
        (START_NS, START_NS, (START_NS, START_NS, START_NS), 0),
        (START_NS, 0, (START_NS, None, START_NS), 0),
        (0, START_NS, (None, START_NS, START_NS), ODD),
        (0, 0, (None, None, START_NS), ODD),
        (START_NS, START_NS - 1, (START_NS, START_NS - 1, START_NS), ODD),
        (START_NS // 1000, START_NS // 1000, (START_NS // 1000,) * 3, ODD),  # µs sent as ns
        (YEAR_2000_NS, START_NS, (YEAR_2000_NS, START_NS, YEAR_2000_NS), 0),
        (START_NS + DAY_NS + 1, 0, (START_NS + DAY_NS + 1, None, START_NS + DAY_NS + 1), ODD),
        (START_NS, 2**63, (START_NS, None, START_NS), HUGE),
        (2**64 - 1, 2**64 - 1, (None, None, START_NS), HUGE),
    ],
)
def test_times_become_columns_that_can_be_stored_and_ordered(
    start: int, end: int, columns: tuple[Any, ...], flags: int
) -> None:
    one = Span(start_time_unix_nano=start, end_time_unix_nano=end)

    times = span_times(one, received_ns=START_NS)

    assert (times.start_ns, times.end_ns, times.sort_ns) == columns
    assert times.flags == flags


def test_odd_times_stretch_a_run_only_while_there_are_no_sane_ones(ingesting: Ingesting) -> None:
    sane = "SELECT started_ns, ended_ns FROM run"
    ingesting.send(traces([span(1, start_s=-START_NS / 1e9 + 1)]))
    assert ingesting.one(sane) == (10**9, 2 * 10**9)

    ingesting.send(traces([span(2), span(3, start_s=-START_NS / 1e9 + 5)]))

    assert ingesting.one(sane) == (START_NS + 2 * 10**9, START_NS + 3 * 10**9)


def test_what_was_repaired_is_told_of_the_step_and_counted_in_the_run(
    ingesting: Ingesting,
) -> None:
    for number in (1, 2):
        one = span(number)
        one.parent_span_id = b"odd"
        ingesting.send(traces([one]))

    assert ingesting.one("SELECT notes FROM run") == '{"a parent id was invalid and emptied": 2}'
    assert ingesting.all("SELECT DISTINCT notes FROM span") == [
        ("a parent id was invalid and emptied",)
    ]
