"""The hour, the day and the weeks against their own baselines, over a real store."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from hansard_collector.trends.model import Trend, trend_text, trends_of
from hansard_collector.trends.recent import review
from hansard_collector.trends.weekly import compare_weeks, read_days, rolling
from hansard_store.ingest.derived_rows import SpanProjection
from tests.store.maker import NOW, SECOND, StoreMaker
from tests.store.memory_maker import MemoryMaker
from tests.store.plans import QueryPlans

HOUR_S, DAY_S = 3_600, 86_400


class Life:
    """Calls spread over days before NOW, each day alike unless said."""

    def __init__(self, path: Path) -> None:
        self.store = StoreMaker(path)
        self._source = random.Random(7)
        self._made = 0

    def calls(
        self,
        count: int,
        *,
        failed: int,
        from_s: float,
        to_s: float,
        tool: str = "search",
        seconds: float = 0.2,
        message: str = "timeout",
        role: str = "tool",
    ) -> None:
        """Store calls that began between two times before now, in seconds."""
        with self.store.batch():
            for number in range(count):
                self._made += 1
                ago_s = self._source.uniform(to_s + 1, from_s)
                is_bad = number < failed
                self.store.span(
                    f"call {self._made}",
                    run=f"run {self._made}",
                    start_s=HOUR_S - ago_s,
                    duration_s=seconds * self._source.uniform(0.8, 1.2),
                    status=2 if is_bad else 1,
                    texts=[("error", message)] if is_bad else [],
                    projection=SpanProjection(
                        role=role,
                        dialect="otel",
                        tool_name=tool if role == "tool" else None,
                        model=tool if role == "llm" else None,
                        agent_name=tool if role == "agent" else None,
                        summary=message if is_bad else None,
                    ),
                )

    def steady(self, days: int, *, a_day: int = 40, failed: int = 1, **more: object) -> None:
        for day in range(days):
            self.calls(
                a_day, failed=failed, from_s=(day + 1) * DAY_S, to_s=max(day * DAY_S, HOUR_S),
                **more,  # type: ignore[arg-type]
            )  # fmt: skip


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    made = Life(tmp_path / "data")
    yield made
    made.store.close()


def told(trends: object) -> list[tuple[str, str, str, str]]:
    return [
        (one.what, one.period, one.subject_kind, one.subject)
        for one in trends  # type: ignore[attr-defined]
    ]


@pytest.mark.covers("HB-07")
@pytest.mark.parametrize("role", ["tool", "llm", "agent"])
def test_a_burst_of_errors_is_found_within_the_hour(life: Life, role: str) -> None:
    life.steady(8, role=role)
    before = review(life.store.db, now_ns=NOW).trends
    life.calls(12, failed=9, from_s=HOUR_S / 2, to_s=0, role=role)

    found = [one for one in review(life.store.db, now_ns=NOW).trends if one.period == "hour"]

    kind = {"llm": "model"}.get(role, role)
    assert before == ()
    assert told(found) == [("error_rate", "hour", kind, "search")]
    assert (found[0].now, found[0].calls) == (0.75, 12)
    assert found[0].before == pytest.approx(1 / 40, abs=0.01)


@pytest.mark.covers("HB-07")
def test_a_day_that_is_worse_is_found_where_no_hour_is(life: Life) -> None:
    life.steady(8)
    life.calls(40, failed=12, from_s=DAY_S, to_s=HOUR_S)

    found = review(life.store.db, now_ns=NOW).trends

    assert told(found) == [("error_rate", "day", "tool", "search")]


@pytest.mark.covers("HB-07")
def test_a_new_kind_of_error_and_a_slower_tool_are_found(life: Life) -> None:
    life.steady(8)
    life.calls(40, failed=3, from_s=HOUR_S, to_s=0, seconds=2, message="disk is full")

    found = review(life.store.db, now_ns=NOW).trends

    assert ("new_error", "hour", "tool", "search") in told(found)
    (slow,) = [one for one in found if one.what == "latency"]
    assert slow.before == pytest.approx(2e8, rel=0.3)
    assert slow.now == pytest.approx(2e9, rel=0.3)


def test_the_first_hour_of_a_store_is_compared_with_nothing(life: Life) -> None:
    life.calls(9, failed=9, from_s=HOUR_S, to_s=0)
    few = review(life.store.db, now_ns=NOW).trends
    life.calls(30, failed=30, from_s=HOUR_S, to_s=0)

    (found,) = review(life.store.db, now_ns=NOW).trends

    assert few == ()
    assert (found.before, found.now) == (None, 1.0)


@pytest.mark.covers("HB-06")
def test_two_weeks_are_compared_in_errors_use_and_memory(life: Life, tmp_path: Path) -> None:
    for day in range(14):
        is_new = day < 7
        at = {"from_s": (day + 1) * DAY_S, "to_s": day * DAY_S}
        life.calls(30, failed=9 if is_new else 2, **at)
        life.calls(40 if is_new else 10, failed=0, tool="read", **at)
    memory = MemoryMaker(tmp_path / "data")
    for number in range(6):
        memory.now_ns = NOW - (number + 5) * DAY_S * SECOND
        memory.write(f"fact {number}", subject=f"subject {number}")
    memory.close()

    days = read_days(life.store.db, now_ns=NOW)
    found = compare_weeks(life.store.db, days, now_ns=NOW)

    rows = {(row["kind"], row["name"]): row for row in found.json()["rows"]}
    search = rows["tool", "search"]
    assert (search["calls"], search["errors"], search["errors_before"]) == (210, 63, 14)
    assert search["error_rate_delta"] == pytest.approx(49 / 210, abs=1e-3)
    assert rows["tool", "read"]["share_delta"] == pytest.approx(40 / 70 - 10 / 40, abs=1e-3)
    assert (found.memories, found.memories_before) == (2, 4)
    assert ("error_rate", "week", "tool", "search") in told(found.trends)
    assert ("usage", "week", "tool", "read") in told(found.trends)


@pytest.mark.covers("HB-08")
def test_the_rolling_test_finds_in_days_what_began_in_the_middle_of_a_week(life: Life) -> None:
    for day in range(20):
        life.calls(100, failed=25 if day < 2 else 4, from_s=(day + 1) * DAY_S, to_s=day * DAY_S)

    found = rolling(read_days(life.store.db, now_ns=NOW), now_ns=NOW)

    assert {one.subject for one in found} == {"", "search"}
    assert {one.since_ns for one in found} == {NOW - 2 * DAY_S * SECOND}


def test_no_query_reads_a_whole_table(life: Life) -> None:
    life.steady(3)
    plans = QueryPlans()

    with plans.watch(life.store.db):
        review(life.store.db, now_ns=NOW)
        compare_weeks(life.store.db, read_days(life.store.db, now_ns=NOW), now_ns=NOW)

    assert plans.lines
    assert plans.scans() == []


def test_a_trend_is_told_in_a_sentence_and_survives_its_json() -> None:
    one = Trend("error_rate", "hour", "tool", "x", None, 0.4, 100)

    (back,) = trends_of({"trends": [one.json(), {"what": "other"}, 3, {"what": "usage"}]})

    assert back == one
    assert trend_text(one, "`x`") == (
        "the tool `x` fails in 40 % of 100 calls in the last hour, no calls before"
    )
