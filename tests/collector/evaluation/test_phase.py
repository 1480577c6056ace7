"""Evaluation as a phase of the heartbeat: results on the judged span, diagnostics, figures."""

from __future__ import annotations

import itertools

import pytest

from hansard_collector.heartbeat.cycle import Heartbeat
from hansard_collector.heartbeat.phase import Phase
from hansard_collector.heartbeat.phases import run_evaluation
from hansard_collector.judges import Judges
from tests.collector.evaluation.evaluating import START, Evaluating, says, tool


@pytest.mark.covers("EL-07", "EL-11", "EL-12")
def test_a_cycle_puts_its_verdicts_on_the_spans_that_it_judges(evaluating: Evaluating) -> None:
    run = evaluating.run(1, tool("run_tests", 2, error="1 failed"), says("All tests pass.", 3))
    clock = itertools.count(START + 3_600 * 10**9, 10**9)
    heartbeat = Heartbeat(
        evaluating.folder,
        Judges(),
        clock=lambda: next(clock),
        phases=(Phase("evaluation", run_evaluation),),
    )

    (phase,) = heartbeat.run().phases

    assert (phase.status, phase.figures["new"]["contradicted"]) == ("done", 1)
    rows = evaluating.ingesting.all(
        "SELECT lower(hex(trace_id)), span_id, name, value, label, text FROM annotation"
    )
    told = "said “All tests pass.”; the last run of tests (run_tests) failed"
    assert rows == [(run, bytes(7) + b"\3", "claim", None, "contradicted", told)]
    logged = evaluating.ingesting.all(
        "SELECT tool, level FROM diagnostics WHERE level = 'warning' ORDER BY time_ns"
    )
    assert logged == [("evaluation", "warning")]
    (again,) = heartbeat.run().phases
    assert (again.figures["runs"], again.figures["seen_again"]) == (0, 1)
