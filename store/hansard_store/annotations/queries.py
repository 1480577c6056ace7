"""Annotations as pages, lists and exports read them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import apsw

from hansard_compiler.models.annotations import MOST_NAME, Kind, Source, clean_tag
from hansard_store.annotations.rows import (
    SELECT,
    Annotation,
    AnnotationRow,
    AnnotationTarget,
    State,
    annotation_of,
)
from hansard_store.bodies import Body, Description, body_of
from hansard_store.database.cursors import Page, decode_cursor, encode_cursor
from hansard_store.database.id_prefixes import find_key
from hansard_store.errors import InvalidQueryError
from hansard_store.times import time_text

# What runs and marked steps are narrowed by: tags and scores.
#
# A score is written `name`, `name:label`, `name>=0.5` or with another comparison. Each condition
# must be met by some annotation that stands.

MOST_CONDITIONS: Final = 8  # of tags, and of scores
_SCORE: Final = re.compile(
    r"(?P<name>[^:<>=]+)(?::(?P<label>.+)|(?P<sign>>=|<=|>|<|=)(?P<value>[+-]?\d{1,15}(?:\.\d{1,9})?))?"
)


@dataclass(frozen=True, slots=True)
class ScoreWanted:
    """A score by its name, and if given its label, or a comparison with its value."""

    name: str
    label: str | None = None
    sign: str = ""  # > >= < <= =
    value: float = 0.0


def read_tags(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return tags as they are kept; raises InvalidQueryError."""
    _check_count("tag", texts)
    try:
        return tuple(dict.fromkeys(clean_tag(text) for text in texts))
    except ValueError as error:
        raise InvalidQueryError("tag", str(error)) from None


def read_scores(texts: tuple[str, ...]) -> tuple[ScoreWanted, ...]:
    """Return what is wanted of scores; raises InvalidQueryError."""
    _check_count("score", texts)
    return tuple(map(_read_score, texts))


def _check_count(name: str, texts: tuple[str, ...]) -> None:
    if len(texts) > MOST_CONDITIONS:
        raise InvalidQueryError(
            name, f"{name} is given {len(texts)} times; {MOST_CONDITIONS} is most"
        )


def _read_score(text: str) -> ScoreWanted:
    found = _SCORE.fullmatch(text.strip())
    if found is None or len(text) > 4 * MOST_NAME:
        raise InvalidQueryError(
            "score", f"score is {text[:80]!r}; write name, name:label, name>=0.5 or name<0.5"
        )
    name, label = found["name"].strip(), found["label"]
    if label is not None:
        return ScoreWanted(name, label=label.strip())
    return ScoreWanted(name, sign=found["sign"] or "", value=float(found["value"] or 0))


@dataclass(frozen=True, slots=True)
class MarkCondition:
    """SQL over one annotation, with what it is bound to."""

    sql: str
    bindings: dict[str, object]


def mark_conditions(
    tags: tuple[str, ...], scores: tuple[ScoreWanted, ...]
) -> tuple[MarkCondition, ...]:
    """Return what annotations meet that are these; each must be met by some annotation.

    Bindings are numbered, so that conditions can stand in one statement.
    """
    return (
        *(
            MarkCondition(f"kind = 'tag' AND name = :tag_{number}", {f"tag_{number}": tag})
            for number, tag in enumerate(tags)
        ),
        *(_score_condition(number, one) for number, one in enumerate(scores)),
    )


def _score_condition(number: int, score: ScoreWanted) -> MarkCondition:
    sql = f"kind = 'score' AND name = :score_{number}"
    bindings: dict[str, object] = {f"score_{number}": score.name}
    if score.label is not None:
        sql += f" AND label = :label_{number}"
        bindings[f"label_{number}"] = score.label
    elif score.sign:
        sql += f" AND value {score.sign} :value_{number}"
        bindings[f"value_{number}"] = score.value
    return MarkCondition(sql, bindings)


_ABOVE_ALL: Final = (1 << 63) - 1
_BY_ID = f"{SELECT} WHERE annotation_id = ?"
# Of a run with the annotations of its steps, or of one thing alone.
_OF_RUN = f"""
{SELECT} INDEXED BY annotation_step WHERE trace_id = :trace AND ended_ns IS NULL
ORDER BY id LIMIT :limit
"""
_OF_TARGET = f"""
{SELECT} INDEXED BY annotation_step
WHERE trace_id = :trace AND span_id = :span AND side = :side AND ended_ns IS {{ended}}
ORDER BY id DESC LIMIT :limit
"""
# Apart, so that a long history of what was replaced hides nothing of what stands.
_STANDING_ON, _ENDED_ON = (_OF_TARGET.format(ended=one) for one in ("NULL", "NOT NULL"))
_PRUNED_OF_RUN = "SELECT coalesce(sum(count), 0) FROM annotation_pruned WHERE trace_id = :trace"
_PRUNED_OF_TARGET = f"{_PRUNED_OF_RUN} AND span_id = :span AND side = :side"
_WRITTEN = f"""
{SELECT} WHERE id > :after AND span IS NULL ORDER BY id LIMIT :limit
"""
_WRITTEN_OF_RUN = f"""
{SELECT} INDEXED BY annotation_step WHERE trace_id = :trace AND span IS NULL ORDER BY id
"""
_HAS_ANY = """
SELECT run.id, run.trace_id FROM json_each(:runs) AS wanted CROSS JOIN run ON run.id = wanted.value
WHERE EXISTS (
  SELECT 1 FROM annotation INDEXED BY annotation_run
  WHERE annotation.trace_id = run.trace_id AND ended_ns IS NULL)
"""
# Of one run, in the order of the index: those of the run itself, then of its steps.
_SUMS = """
SELECT kind, name, count(*) FILTER (WHERE span_id = x''), count(*),
  avg(value) FILTER (WHERE span_id = x''), avg(value),
  min(label) FILTER (WHERE span_id = x''), min(label),
  max(label) FILTER (WHERE span_id = x''), max(label)
FROM annotation INDEXED BY annotation_run
WHERE trace_id = :trace AND ended_ns IS NULL GROUP BY kind, name
"""
_NEXT_NAME = """
SELECT min(name) FROM annotation INDEXED BY annotation_name
WHERE kind = :kind AND name > :after AND ended_ns IS NULL
"""
# The calls whose input and output stand for a marked run.
_CALLS = """
SELECT span.id FROM call INDEXED BY call_run CROSS JOIN span ON span.id = call.span
WHERE call.run = :run AND call.counted = 1 AND span.role = 'llm'
ORDER BY span.sort_ns {way}, span.id {way} LIMIT 1
"""
_TAGS = """
SELECT annotation.name, count(DISTINCT run.id) AS runs
FROM json_each(:runs) AS wanted CROSS JOIN run ON run.id = wanted.value
  CROSS JOIN annotation INDEXED BY annotation_run
    ON annotation.trace_id = run.trace_id AND annotation.kind = 'tag'
WHERE annotation.ended_ns IS NULL
GROUP BY annotation.name ORDER BY runs DESC, annotation.name LIMIT :limit
"""
# What stands, thing by thing in the order of its ids; runs before their steps.
_MARKED = """
SELECT DISTINCT trace_id, span_id, side FROM annotation INDEXED BY annotation_step
WHERE trace_id >= :trace AND (trace_id, span_id, side) > (:trace, :span, :side)
  AND ended_ns IS NULL{of_run}{conditions}
ORDER BY trace_id, span_id, side LIMIT :limit
"""
_MEETS = """
  AND EXISTS (SELECT 1 FROM annotation AS mark INDEXED BY annotation_step
    WHERE mark.trace_id = annotation.trace_id AND mark.span_id = annotation.span_id
      AND mark.side = annotation.side AND mark.ended_ns IS NULL AND {sql})
"""


@dataclass(frozen=True, slots=True)
class ScoreSum:
    """The scores of one name in a run: those of the run itself, else those of its steps."""

    name: str
    value: float | None  # their mean
    label: str | None  # None where they differ
    count: int


@dataclass(frozen=True, slots=True)
class RunMarks:
    """What a list shows of the annotations of a run."""

    tags: tuple[str, ...] = ()
    scores: tuple[ScoreSum, ...] = ()
    note_count: int = 0


NO_MARKS: Final = RunMarks()


def get_annotation(connection: apsw.Connection, annotation_id: str) -> Annotation:
    """Return an annotation by its id, or a unique beginning or end of it of 8 digits or more.

    Raises NotFoundError or AmbiguousIdError.
    """
    key = find_key(connection, "annotation", annotation_id)
    row: Any = connection.execute(_BY_ID, (key,)).fetchone()
    return annotation_of(row)


def annotations_in_run(
    connection: apsw.Connection, trace_id: bytes, *, limit: int
) -> list[Annotation]:
    """Return what stands of a run and of its steps, the oldest first."""
    rows = connection.execute(_OF_RUN, {"trace": trace_id, "limit": limit})
    return [annotation_of(row) for row in rows]


def standing_on(
    connection: apsw.Connection, target: AnnotationTarget, *, limit: int
) -> list[Annotation]:
    """Return the annotations of one run or one step alone, the newest first."""
    return _on(connection, _STANDING_ON, target, limit)


def ended_on(
    connection: apsw.Connection, target: AnnotationTarget, *, limit: int
) -> list[Annotation]:
    """Return its replaced and withdrawn annotations, the newest first."""
    return _on(connection, _ENDED_ON, target, limit)


def count_pruned(
    connection: apsw.Connection, target: AnnotationTarget, *, with_steps: bool = False
) -> int:
    """Return how many that ended on it are not stored any more; `with_steps`: of a whole run."""
    sql = _PRUNED_OF_RUN if with_steps else _PRUNED_OF_TARGET
    return int(connection.execute(sql, target.bindings).get)


def _on(
    connection: apsw.Connection, sql: str, target: AnnotationTarget, limit: int
) -> list[Annotation]:
    bindings = {**target.bindings, "limit": limit}
    return [annotation_of(row) for row in connection.execute(sql, bindings)]


def list_annotations(
    connection: apsw.Connection,
    *,
    target: AnnotationTarget | None = None,
    with_steps: bool = False,
    kind: Kind | None = None,
    name: str | None = None,
    author: str | None = None,
    with_ended: bool = False,
    limit: int,
    cursor: str | None = None,
) -> Page[Annotation]:
    """Return annotations that meet every condition, the newest first.

    `with_steps`: of a run, those of its steps, too. Raises InvalidCursorError.
    """
    (before,) = decode_cursor("annotations", cursor, count=1) if cursor else (_ABOVE_ALL,)
    conditions = ["id < :before"]
    bindings: dict[str, Any] = {"before": before, "limit": limit + 1}
    columns: dict[str, Any] = {"kind": kind, "name": name, "author": author}
    for column, value in columns.items():
        if value is not None:
            conditions.append(f"{column} = :{column}")
            bindings[column] = value
    if target is not None:
        conditions.append("trace_id = :trace")
        bindings["trace"] = target.trace_id
        if not with_steps:
            conditions.append("span_id = :span AND side = :side")
            bindings |= {"span": target.span_id, "side": target.side}
    if not with_ended:
        conditions.append("ended_ns IS NULL")
    sql = f"{SELECT} {_index(target, kind)} WHERE {' AND '.join(conditions)}"
    rows = connection.execute(f"{sql} ORDER BY id DESC LIMIT :limit", bindings).fetchall()
    items = [annotation_of(row) for row in rows[:limit]]
    more = len(rows) > limit
    return Page(tuple(items), encode_cursor("annotations", items[-1].id) if more else None)


def _index(target: AnnotationTarget | None, kind: str | None) -> str:
    if target is not None:
        return "INDEXED BY annotation_step"
    return "INDEXED BY annotation_kind" if kind is not None else "NOT INDEXED"


def written_annotations(connection: apsw.Connection, *, after: int, limit: int) -> list[Annotation]:
    """Return the next annotations that were written here, ended ones included, in order."""
    rows = connection.execute(_WRITTEN, {"after": after, "limit": limit})
    return [annotation_of(row) for row in rows]


def written_in_run(connection: apsw.Connection, trace_id: bytes) -> list[Annotation]:
    """Return those of a run and its steps, in order."""
    return [annotation_of(row) for row in connection.execute(_WRITTEN_OF_RUN, {"trace": trace_id})]


def marks_of_runs(connection: apsw.Connection, runs: Sequence[int]) -> dict[int, RunMarks]:
    """Return what lists show of the annotations of runs, by number; runs without any are left out.

    Most runs have none, and cost one look at an index.
    """
    rows: list[Any] = connection.execute(_HAS_ANY, {"runs": json.dumps(list(runs))}).fetchall()
    return {run: _marks(connection, trace_id) for run, trace_id in rows}


def _marks(connection: apsw.Connection, trace_id: bytes) -> RunMarks:
    tags: list[str] = []
    scores: list[ScoreSum] = []
    notes = 0
    rows: Any = connection.execute(_SUMS, {"trace": trace_id})
    for kind, name, own, every, own_mean, mean, own_low, low, own_high, high in rows:
        if kind == "tag":
            tags.append(name)
        elif kind == "note":
            notes += every
        elif own:
            label = own_low if own_low == own_high else None
            scores.append(ScoreSum(name, own_mean, label, own))
        else:
            scores.append(ScoreSum(name, mean, low if low == high else None, every))
    return RunMarks(tuple(tags), tuple(scores), notes)


def tag_counts(
    connection: apsw.Connection, runs: Sequence[int], *, limit: int
) -> list[tuple[str, int]]:
    """Return the most frequent tags of some runs, with how many of the runs have each."""
    bindings = {"runs": json.dumps(list(runs)), "limit": limit}
    rows: list[Any] = connection.execute(_TAGS, bindings).fetchall()
    return [(name, count) for name, count in rows]


def outer_calls(connection: apsw.Connection, run: int) -> tuple[int | None, int | None]:
    """Return the numbers of the first and the last model call of a run; None where it made none."""
    first, last = (
        connection.execute(_CALLS.format(way=way), {"run": run}).get for way in ("ASC", "DESC")
    )
    return first, last


def known_names(connection: apsw.Connection, kind: Kind, *, limit: int) -> list[str]:
    """Return the first names of scores, or tags, in the order of the alphabet: one search each."""
    found: list[str] = []
    while len(found) < limit:
        after = found[-1] if found else ""
        name = connection.execute(_NEXT_NAME, {"kind": kind, "after": after}).get
        if name is None:
            break
        found.append(name)
    return found


def marked_targets(
    connection: apsw.Connection,
    conditions: Sequence[MarkCondition],
    *,
    run: bytes | None = None,
    after: AnnotationTarget | None = None,
    limit: int,
) -> list[AnnotationTarget]:
    """Return the next runs and steps on which something stands that meets every condition."""
    last = after or AnnotationTarget(run or b"", side=-1)
    bindings: dict[str, Any] = {**last.bindings, "limit": limit, "run": run}
    for one in conditions:
        bindings |= one.bindings
    sql = _MARKED.format(
        of_run="" if run is None else " AND trace_id = :run",
        conditions="".join(_MEETS.format(sql=one.sql) for one in conditions),
    )
    return [
        AnnotationTarget(trace_id, span_id, side)
        for trace_id, span_id, side in connection.execute(sql, bindings)
    ]


# Annotations as programs read them: one JSON for the API, the commands and exports.

_MOST_STANDING: Final = 1_000


class AnnotationScore(Body):
    """gen_ai.evaluation.score.value and .label"""

    value: float | None
    label: str | None


class AnnotationEnd(Body):
    at: str
    ns: str
    by: str | None
    reason: str | None


class AnnotationBody(Body):
    """A note, a score or a tag. One that a span tells has no id, and nobody can withdraw it."""

    annotation_id: str | None
    run_id: str
    step_id: Annotated[str | None, Description("null: it is on the whole run")]
    kind: Literal["note", "score", "tag"]
    name: Annotated[str | None, Description("of a score; the tag itself")]
    score: AnnotationScore | None
    explanation: Annotated[str | None, Description("of a score: why")]
    text: Annotated[str | None, Description("of a note")]
    expected: Annotated[str | None, Description("what the output should have been")]
    source: Source | None
    author: str | None
    origin: Annotated[str, Description("page, api, cli, import; otlp: a span tells it")]
    created_at: str
    created_ns: str
    state: State
    ended: AnnotationEnd | None
    removed: Annotated[list[str], Description("rule:fingerprint of every secret cut out")]


class ScoreSumBody(Body):
    """The scores of one name: of the run itself, else of its steps."""

    name: str
    value: Annotated[float | None, Description("their mean")]
    label: Annotated[str | None, Description("null where they differ")]
    count: int


class MarksBody(Body):
    """What lists of runs say of annotations."""

    tags: list[str]
    scores: list[ScoreSumBody]


def annotation_json(one: Annotation) -> AnnotationBody:
    """Return everything that is known of an annotation."""
    row = one.row
    is_score = row.kind == "score"
    return body_of(
        AnnotationBody,
        row,
        annotation_id=one.annotation_id,
        run_id=one.run_id,
        step_id=one.step_id,
        name=row.name or None,
        score=body_of(AnnotationScore, row) if is_score else None,
        explanation=row.text if is_score else None,
        text=row.text if row.kind == "note" else None,
        author=row.author or None,
        state=one.state,
        ended=None if row.ended_ns is None else _end_body(row, row.ended_ns),
        removed=list(row.removed),
    )


def _end_body(row: AnnotationRow, ended_ns: int) -> AnnotationEnd:
    at, by = time_text(ended_ns), row.ended_by or None
    return body_of(AnnotationEnd, at=at, ns=str(ended_ns), by=by, reason=row.ended_reason)


def standing_json(connection: apsw.Connection, target: AnnotationTarget) -> list[AnnotationBody]:
    """Return what stands on one run or step, the oldest first."""
    found = standing_on(connection, target, limit=_MOST_STANDING)
    return [annotation_json(one) for one in reversed(found)]


def marks_json(marks: RunMarks) -> MarksBody:
    """Return what lists of runs say of annotations."""
    return body_of(MarksBody, marks, scores=[body_of(ScoreSumBody, one) for one in marks.scores])
