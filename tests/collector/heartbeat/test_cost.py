"""The benchmark of a cycle, over a store small enough for a test: what it runs, not how fast."""

from __future__ import annotations

from bench import heartbeat
from bench.evaluation_load import fill
from bench.processes import folder

_RUNS, _MEMORIES = 12, 40


def test_the_benchmark_measures_two_cycles_and_ingest_beside_one() -> None:
    figures = heartbeat.run(runs=_RUNS, memories=_MEMORIES, spans_beside=512, rounds=1)
    by_name = {one.what: one for one in figures}
    first = by_name["first cycle, 600 spans, 40 memories"]
    assert "claims judged: " in first.note
    assert by_name["second cycle, nothing new"].note == "0 claims judged"
    assert by_name["ingest beside a first cycle"].measured > 0


def test_a_second_cycle_reads_no_run_and_no_text_again() -> None:
    with folder() as data:
        fill(data, runs=_RUNS, memories=_MEMORIES)
        first, second = heartbeat.cycle(data), heartbeat.cycle(data)
    counts = [one.phases["evaluation"]["figures"] for one in (first, second)]
    assert counts[0]["runs"] == _RUNS
    assert counts[0]["texts"] > _MEMORIES
    assert (counts[1]["runs"], counts[1]["texts"]) == (0, 0)
