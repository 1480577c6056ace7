"""Annotations: notes, scores and tags on runs and steps, and the rows that hold them.

Nothing is overwritten. Of what ended the newest are stored, and the others counted. Functions that
write run inside a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import apsw
import orjson

from hansard_compiler.models.annotations import Kind
from hansard_store.database.stored_json import read_only
from hansard_store.steps.shared_span_ids import shared_side

MOST_ENDED: Final = 200  # replaced, and as many withdrawn, that are stored of one run or step
Origin = Literal["page", "api", "cli", "import", "otlp"]
State = Literal["current", "replaced", "withdrawn"]

_COLUMNS = """
annotation_id, span, trace_id, span_id, side, kind, name, value, label, text, expected, source,
author, origin, created_ns, removed, ended_ns, ended, ended_by, ended_reason
"""
ADD: Final = f"INSERT INTO annotation ({_COLUMNS}) VALUES ({', '.join('?' * 20)})"
_RESTORE = f"{ADD} ON CONFLICT (annotation_id) DO NOTHING"
# The step by the name it has elsewhere: `.server` only where a CLIENT span has its id, too.
_SHARED = shared_side("annotation")
SELECT: Final = f"SELECT id, {_COLUMNS}, {_SHARED} FROM annotation"
# A score has one author on a thing, a tag is there once, with any number of authors.
_SAME = f"""
{SELECT} INDEXED BY annotation_step
WHERE trace_id = :trace AND span_id = :span AND side = :side AND kind = :kind AND name = :name
  AND (kind = 'tag' OR author = :author AND source IS :source) AND ended_ns IS NULL
  AND span IS NULL
ORDER BY id DESC LIMIT 1
"""
_COUNT = """
SELECT count(*) FROM annotation INDEXED BY annotation_step
WHERE trace_id = :trace AND span_id = :span AND side = :side AND span IS NULL
  AND ended_ns IS NULL
"""
_END = """
UPDATE annotation SET ended_ns = :ended_ns, ended = :ended, ended_by = :by, ended_reason = :reason
WHERE id = :id
"""
_ADD_OF_SPAN = """
INSERT INTO annotation (
  span, trace_id, span_id, side, kind, name, value, label, text, source, author, origin, created_ns,
  removed
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'otlp', ?, '[]')
"""
_DROP_OF_SPAN = "DELETE FROM annotation WHERE span = ?"
# The newest that ended so are kept: the index goes by number within one thing.
_PRUNE = """
DELETE FROM annotation WHERE id IN (
  SELECT id FROM annotation INDEXED BY annotation_step
  WHERE trace_id = :trace AND span_id = :span AND side = :side AND ended = :ended
  ORDER BY id DESC LIMIT -1 OFFSET :kept
)
"""
_COUNT_PRUNED = """
INSERT INTO annotation_pruned (trace_id, span_id, side, count)
VALUES (:trace, :span, :side, :gone)
ON CONFLICT DO UPDATE SET count = count + excluded.count
"""
_DROP_COUNTS = "DELETE FROM annotation_pruned WHERE trace_id = :trace"
_DROP_OF_RUN = """
DELETE FROM annotation WHERE id IN (
  SELECT id FROM annotation INDEXED BY annotation_step WHERE trace_id = :trace LIMIT :most
)
"""
# So that open lists of runs hear of it. The run itself is as it was: its version stays.
_NEWS = """
UPDATE run SET change_seq = 1 + max(
  (SELECT max(change_seq) FROM run),
  coalesce((SELECT value FROM setting WHERE name = 'last_change'), 0))
WHERE trace_id = :trace
"""
_IS_STORED = """
SELECT 1 FROM run WHERE trace_id = :trace
AND NOT EXISTS (SELECT 1 FROM tombstone WHERE tombstone.trace_id = run.trace_id)
"""
# A SERVER span that is alone has the plain name of its step.
_SIDE = """
SELECT side FROM span WHERE trace_id = :trace AND span_id = :span AND side >= :side
ORDER BY side LIMIT 1
"""


class AnnotationTarget(NamedTuple):
    """What is annotated: a run, or a step of it."""

    trace_id: bytes
    span_id: bytes = b""
    side: int = 0

    @property
    def bindings(self) -> dict[str, Any]:
        """What statements call it."""
        return {"trace": self.trace_id, "span": self.span_id, "side": self.side}


class SpanPlace(NamedTuple):
    """A span that tells annotations, and when it ended."""

    trace_id: bytes
    span_id: bytes
    side: int
    at_ns: int


class AnnotationRow(NamedTuple):
    """An annotation as it is stored, in the order of the table; `removed` is a list here."""

    annotation_id: bytes | None
    span: int | None
    trace_id: bytes
    span_id: bytes  # empty: the run
    side: int
    kind: Kind
    name: str
    value: float | None
    label: str | None
    text: str | None
    expected: str | None
    source: str | None
    author: str
    origin: Origin
    created_ns: int
    removed: Sequence[str] = ()
    ended_ns: int | None = None
    ended: str | None = None
    ended_by: str | None = None
    ended_reason: str | None = None

    @property
    def target(self) -> AnnotationTarget:
        return AnnotationTarget(self.trace_id, self.span_id, self.side)

    @property
    def says(self) -> tuple[object, ...]:
        """The content, apart from its author and time."""
        return (self.name, self.value, self.label, self.text, self.expected)


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation, as it is read."""

    id: int
    row: AnnotationRow
    is_server: bool  # its step is `<trace>-<span>.server`

    @property
    def annotation_id(self) -> str | None:
        """None of a score that a span tells."""
        return None if self.row.annotation_id is None else self.row.annotation_id.hex()

    @property
    def run_id(self) -> str:
        return self.row.trace_id.hex()

    @property
    def step_id(self) -> str | None:
        """None for the annotation of a whole run."""
        if not self.row.span_id:
            return None
        return f"{self.run_id}-{self.row.span_id.hex()}{'.server' if self.is_server else ''}"

    @property
    def state(self) -> State:
        return "current" if self.row.ended is None else self.row.ended  # type: ignore[return-value] # one of two


class SpanAnnotation(NamedTuple):
    """A score that a span or one of its log records has, or a tag of its run."""

    name: str  # of the score; the tag itself
    value: float | None = None
    label: str | None = None
    explanation: str | None = None
    source: str | None = None
    author: str = ""
    is_of_run: bool = False  # of the whole run
    kind: Literal["score", "tag"] = "score"


def annotation_of(row: Sequence[Any]) -> Annotation:
    """Return the annotation of a row that SELECT found."""
    number, *columns, is_server = row
    columns[15] = read_only(orjson.loads(columns[15]))
    return Annotation(number, AnnotationRow(*columns), bool(is_server))


# ---- written here


def add(connection: apsw.Connection, row: AnnotationRow) -> int:
    """Add an annotation and return its number."""
    connection.execute(ADD, _bindings(row))
    return connection.last_insert_rowid()


def restore(connection: apsw.Connection, row: AnnotationRow) -> bool:
    """Add one that was written elsewhere; False where it is known."""
    connection.execute(_RESTORE, _bindings(row))
    return bool(connection.changes())


def end(
    connection: apsw.Connection,
    number: int,
    ended: Literal["replaced", "withdrawn"],
    *,
    by: str,
    reason: str | None,
    now_ns: int,
) -> None:
    """Say that an annotation does not stand any more."""
    parameters = {"id": number, "ended": ended, "by": by, "reason": reason, "ended_ns": now_ns}
    connection.execute(_END, parameters)


def prune(connection: apsw.Connection, target: AnnotationTarget, ended: str) -> None:
    """Delete the oldest that ended so on one thing, beyond MOST_ENDED, and count them."""
    connection.execute(_PRUNE, {**target.bindings, "ended": ended, "kept": MOST_ENDED})
    gone = connection.changes()
    if gone:
        connection.execute(_COUNT_PRUNED, {**target.bindings, "gone": gone})


def find_same(connection: apsw.Connection, row: AnnotationRow) -> Annotation | None:
    """Return the standing score of the same name by the same author, or the same tag of anybody."""
    about = {"kind": row.kind, "name": row.name, "author": row.author, "source": row.source}
    found = connection.execute(_SAME, {**row.target.bindings, **about}).fetchone()
    return None if found is None else annotation_of(found)


def count_standing(connection: apsw.Connection, target: AnnotationTarget) -> int:
    """Return how many annotations stand on one thing that were written here."""
    return int(connection.execute(_COUNT, target.bindings).get)


def find_target(connection: apsw.Connection, named: AnnotationTarget) -> AnnotationTarget | None:
    """Return the run or step that is meant; None for one that is not stored, or being deleted."""
    bindings = named.bindings
    if connection.execute(_IS_STORED, bindings).get is None:
        return None
    if not named.span_id:
        return named
    side = connection.execute(_SIDE, bindings).get
    return None if side is None else named._replace(side=side)


def tell_lists(connection: apsw.Connection, trace_id: bytes) -> None:
    """Make a run news for open lists."""
    connection.execute(_NEWS, {"trace": trace_id})


def release_annotations(connection: apsw.Connection, trace_id: bytes, *, most: int) -> int:
    """Delete some annotations of a run that is deleted; return how many."""
    connection.execute(_DROP_COUNTS, {"trace": trace_id})
    connection.execute(_DROP_OF_RUN, {"trace": trace_id, "most": most})
    return connection.changes()


# ---- received in spans


def add_of_span(
    connection: apsw.Connection,
    annotations: Sequence[SpanAnnotation],
    *,
    span: int,
    of: SpanPlace,
) -> None:
    """Add the scores and tags that a span has."""
    for one in annotations:
        subject = (b"", 0) if one.is_of_run else (of.span_id, of.side)
        fields = (one.kind, one.name, one.value, one.label, one.explanation, one.source, one.author)
        connection.execute(_ADD_OF_SPAN, (span, of.trace_id, *subject, *fields, of.at_ns))


def drop_of_span(connection: apsw.Connection, span: int) -> None:
    """Remove what was derived from a span."""
    connection.execute(_DROP_OF_SPAN, (span,))


def _bindings(row: AnnotationRow) -> tuple[Any, ...]:
    return tuple(row._replace(removed=orjson.dumps(list(row.removed)).decode()))
