"""Scores that spans and their log records tell stand beside those that people gave."""

from __future__ import annotations

from typing import Any

import pytest

from hansard_collector.derivation.rebuild import rebuild
from hansard_collector.derivation.rows import MOST_SCORES, scores_of
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_store.annotations.queries import read_scores, standing_on
from hansard_store.annotations.rows import Annotation, AnnotationTarget
from hansard_store.annotations.service import AnnotationService
from hansard_store.database.connections import open_for_maintenance
from hansard_store.runs.filters import RunFilter
from hansard_store.runs.queries import list_runs
from hansard_store.steps.flags import SpanFlag
from tests.collector.ingesting import TRACE, Ingesting, log, logs, span, span_id, traces

RESULT = "gen_ai.evaluation.result"
JUDGED = {
    "gen_ai.evaluation.name": "relevance",
    "gen_ai.evaluation.score.value": 0.9,
    "gen_ai.evaluation.score.label": "relevant",
    "gen_ai.evaluation.explanation": "it is on topic",
}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
BY_PEOPLE = {
    "openinference.span.kind": "LLM",
    "evaluations.0.evaluation.name": "tone",
    "evaluations.0.evaluation.label": "kind",
    "evaluations.0.evaluation.annotator_kind": "HUMAN",
    "evaluations.0.evaluation.identifier": "ana",
    "trace.evaluations.0.evaluation.name": "done",
    "trace.evaluations.0.evaluation.score": 1,
}


def told(ingesting: Ingesting, number: int | None = None) -> list[tuple[Any, ...]]:
    """Return name, value, label, text, source and author of what stands on a span, or the run."""
    place = b"" if number is None else span_id(number)
    found = standing_on(ingesting.db, AnnotationTarget(TRACE, place), limit=99)
    return [_said(one) for one in reversed(found)]


def _said(one: Annotation) -> tuple[Any, ...]:
    row = one.row
    assert (one.annotation_id, row.origin, one.state) == (None, "otlp", "current")
    return row.name, row.value, row.label, row.text, row.source, row.author


@pytest.mark.parametrize("log_first", [True, False])
def test_an_evaluation_stands_on_its_step_whichever_came_first(
    ingesting: Ingesting, log_first: bool
) -> None:
    result = log(1, event_name=RESULT, attributes=JUDGED)
    sent = [traces([span(1, attributes=CHAT)]), logs([result])]
    for request in reversed(sent) if log_first else sent:
        ingesting.send(request)

    assert told(ingesting, 1) == [("relevance", 0.9, "relevant", "it is on topic", None, "")]
    wanted = RunFilter(score=read_scores(("relevance>=0.9",)))
    assert len(list_runs(ingesting.db, wanted, now_ns=0).items) == 1


def test_a_dialect_tells_who_judged_and_what_is_of_the_whole_trace(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1, attributes=BY_PEOPLE)]))

    assert told(ingesting, 1) == [("tone", None, "kind", None, "human", "ana")]
    assert told(ingesting) == [("done", 1.0, None, None, None, "")]


def test_a_span_that_comes_again_and_a_rebuild_tell_nothing_twice(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1, attributes=BY_PEOPLE)]))
    ingesting.send(traces([span(1, attributes=BY_PEOPLE | {"more": 1})]))
    book = AnnotationService(ingesting.folder)
    book.write_json({"run_id": TRACE.hex(), "kind": "tag", "tag": "kept"})
    book.close()
    rows = "SELECT span, trace_id, span_id, kind, name, value, label FROM annotation ORDER BY name"
    before = ingesting.all(rows)
    connection = open_for_maintenance(ingesting.folder)
    connection.execute("UPDATE annotation SET name = 'spoilt' WHERE span IS NOT NULL")
    connection.close()

    rebuild(ingesting.folder)

    assert ingesting.all(rows) == before
    assert [row[4] for row in before] == ["done", "kept", "tone"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"name": "a", "score": True}, [("a", None, "true")]),
        ({"score": 1}, [("judge", 1.0, None)]),
        ({"name": "a", "score": "high"}, [("a", None, "high")]),
        ({"name": "a" * 999, "label": "b" * 999}, [("a" * 200, None, "b" * 200)]),
        ({"name": "\ud800", "score": 10**400, "label": "x"}, [("?", None, "x")]),
        ({"name": "a", "score": float("nan")}, []),
        ({"name": "a", "explanation": "x"}, []),
        ({"name": 7, "label": ["x"], "score": {"a": 1}}, []),
    ],
)
def test_nothing_that_is_sent_fails(sent: dict[str, Any], kept: list[tuple[Any, ...]]) -> None:
    normal = Normalised(evaluations=(sent,))

    assert [one[:3] for one in scores_of(normal, "judge")] == kept
    many = Normalised(evaluations=({"score": 1},) * 999)
    assert len(scores_of(many, "judge")) == MOST_SCORES


def test_results_add_what_deriving_the_span_again_adds(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1, attributes={**CHAT, "tag.tags": ["a", "b"]})]))
    before = _derived(ingesting)
    again = {**JUDGED, "gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "kind"}
    ingesting.send(logs([log(1, event_name=RESULT, attributes=JUDGED)]))
    ingesting.send(logs([log(1, event_name=RESULT, attributes=again)]))
    scored, scores = _derived(ingesting), told(ingesting, 1)
    assert [one[0] for one in scores] == ["relevance", "tone"]
    assert scored == (before[0] | SpanFlag.HAS_LOGS, *before[1:])
    rebuild(ingesting.folder)
    assert (_derived(ingesting), told(ingesting, 1)) == (scored, scores)


@pytest.mark.parametrize("key", ["session.id", "prompt.id"])
def test_a_result_of_a_session_is_read_with_its_span(ingesting: Ingesting, key: str) -> None:
    ingesting.send(traces([span(1, attributes=CHAT)]))
    ingesting.send(logs([log(1, event_name=RESULT, attributes={**JUDGED, key: "s-1"})]))
    column = "conversation_id" if key == "session.id" else "prompt_id"
    assert ingesting.db.execute(f"SELECT {column} FROM run").get == "s-1"
    assert [one[0] for one in told(ingesting, 1)] == ["relevance"]


def _derived(ingesting: Ingesting) -> tuple[Any, ...]:
    sql = "SELECT flags, role, dialect, label, model, summary, notes, derived_version FROM span"
    row: Any = ingesting.db.execute(sql).fetchone()
    return tuple(row)
