"""Full text search: messages, names, arguments, results, errors, logs."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from hansard_store.content.texts import read_message, read_text, searched_words
from hansard_store.database.cursors import Page, decode_cursor, encode_cursor
from hansard_store.database.transactions import snapshot
from hansard_store.search.match_query import MatchQuery, SearchTerm, parse_match, pattern_of
from hansard_store.steps.queries import StepSkeleton, steps_by_number

# A few words of a text around what was looked for, with the places to highlight.

_SEARCHED_CHARS = 200_000  # of very long texts only the beginning is looked through
_BEFORE_CHARS = 60
_SNIPPET_CHARS = 200
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """One line of text; highlights are (start, end) offsets into it, in characters."""

    text: str
    highlights: tuple[tuple[int, int], ...]


def snippet(text: str, query: MatchQuery) -> Snippet:
    """Return what stands around the first place where a term of the query is found.

    A text in which none is found (cut off, or folded in another way) gives its beginning.
    """
    text = text[:_SEARCHED_CHARS]
    pattern = pattern_of([_folded(term) for term in query.required])
    found = pattern.search(fold(text))
    start = max(0, found.start() - _BEFORE_CHARS) if found else 0
    if start:
        # Begin at a word, unless the words there are as long as the window.
        space = text.find(" ", start, start + _BEFORE_CHARS // 2)
        start = space + 1 if space >= 0 else start
    line = _SPACE.sub(" ", text[start : start + 2 * _SNIPPET_CHARS]).strip()
    line = ("…" if start else "") + line
    if len(line) > _SNIPPET_CHARS:
        line = line[:_SNIPPET_CHARS].rstrip() + "…"
    return Snippet(line, tuple(match.span() for match in pattern.finditer(fold(line))))


def fold(text: str) -> str:
    """Return the text without diacritics, as long as before: as unicode61 compares words."""
    if text.isascii():
        return text
    return "".join(map(_fold_character, text))


def _fold_character(character: str) -> str:
    return character if character.isascii() else unicodedata.normalize("NFD", character)[0]


def _folded(term: SearchTerm) -> SearchTerm:
    return SearchTerm(tuple(map(fold, term.words)), is_prefix=term.is_prefix)


USES_COUNTED = 100
_FIRST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A text, in the step that carried it first."""

    text: int  # text.id, the order of first sight
    field: str  # message span_name error tool_arguments tool_result input output log
    role: str | None  # of a message
    step: StepSkeleton
    snippet: Snippet
    uses: int  # model calls a message was part of; of other texts, runs; USES_COUNTED at most


_FIND = """
SELECT text.id, text.field, text.role, text.first_span, text.body
FROM text_fts CROSS JOIN text ON text.id = text_fts.rowid
WHERE text_fts MATCH :match AND text_fts.rowid < :before AND {of_kind}
ORDER BY text_fts.rowid DESC LIMIT :limit
"""
_FOUND_IN = """EXISTS (
  SELECT 1 FROM text_use CROSS JOIN run ON run.id = text_use.run
  WHERE text_use.text = text.id AND (run.work_count > 0) = {works})"""
# Messages are in model calls, which only an agent's run has.
_FIND_OF = {
    None: _FIND.format(of_kind="1"),
    "agent": _FIND.format(of_kind=f"(text.field = 'message' OR {_FOUND_IN.format(works=1)})"),
    "other": _FIND.format(of_kind=_FOUND_IN.format(works=0)),
}
# The calls whose list of messages passes through a text: all nodes below its own.
_CALLS_WITH = """
WITH RECURSIVE down (id) AS (
  SELECT id FROM message_prefix WHERE text = :text
  UNION ALL
  SELECT child.id
  FROM down CROSS JOIN message_prefix AS child ON child.parent = down.id
  LIMIT :limit
)
SELECT call.span FROM down CROSS JOIN call ON call.input_prefix = down.id
UNION
SELECT call.span FROM down CROSS JOIN call ON call.output_prefix = down.id
LIMIT :limit
"""
_RUNS_WITH = "SELECT run FROM text_use WHERE text = :text LIMIT :limit"
_RUNS_OF_KIND_WITH = """
SELECT run.id FROM text_use CROSS JOIN run ON run.id = text_use.run
WHERE text_use.text = :text AND (run.work_count > 0) = :works LIMIT :limit
"""
_STEPS_OF_KIND = """
SELECT span.id FROM json_each(:spans) AS wanted
  CROSS JOIN span ON span.id = wanted.value CROSS JOIN run ON run.id = span.run
WHERE (run.work_count > 0) = :works
"""
_ROOT_OF = """
SELECT coalesce(run.root_span, (SELECT min(id) FROM span WHERE span.trace_id = run.trace_id))
FROM run WHERE run.id = :run
"""


def search_texts(
    connection: apsw.Connection,
    q: str,
    *,
    kind: str | None = None,
    now_ns: int,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[SearchHit]:
    """Return texts that meet a search, newest first by the span that first carried them.

    With a kind, those that a run of this kind says, in a step of such a run. Raises
    InvalidSearchError for a search that cannot be meant, InvalidCursorError for a broken cursor.
    """
    query = parse_match(q)
    before = decode_cursor("search", cursor, count=1)[0] if cursor else _FIRST
    parameters = {"match": query.expression, "before": before, "limit": limit + 1}
    with snapshot(connection):
        rows: list[Any] = connection.execute(_FIND_OF[kind], parameters).fetchall()
        hits = _hits(connection, rows[:limit], query, kind=kind, now_ns=now_ns)
    more = len(rows) > limit
    return Page(tuple(hits), encode_cursor("search", rows[limit - 1][0]) if more else None)


def _hits(
    connection: apsw.Connection,
    rows: Sequence[Any],
    query: MatchQuery,
    *,
    kind: str | None,
    now_ns: int,
) -> list[SearchHit]:
    uses = [_uses(connection, text, field, kind) for text, field, *_ in rows]
    first_steps = _of_kind(connection, [row[3] for row in rows], kind)
    steps = steps_by_number(connection, first_steps, now_ns=now_ns)
    hits = []
    for (text, field, role, first, body), used in zip(rows, uses, strict=True):
        step = steps.get(first) or _other_carrier(connection, field, used, now_ns=now_ns)
        if step is not None:
            found = snippet(_plain(connection, field, body), query)
            hits.append(SearchHit(text, field, role, step, found, len(used)))
    return hits


def _of_kind(connection: apsw.Connection, spans: Sequence[int], kind: str | None) -> Sequence[int]:
    """Return those of some spans that are in runs of a kind."""
    if kind is None:
        return spans
    parameters = {"spans": json.dumps(list(spans)), "works": int(kind == "agent")}
    return [span for (span,) in connection.execute(_STEPS_OF_KIND, parameters)]


def _uses(connection: apsw.Connection, text: int, field: str, kind: str | None) -> list[int]:
    """Return what uses a text: span.ids of calls for a message, else run.ids (of the kind)."""
    parameters = {"text": text, "limit": USES_COUNTED, "works": int(kind == "agent")}
    sql = _RUNS_WITH if kind is None else _RUNS_OF_KIND_WITH
    sql = _CALLS_WITH if field == "message" else sql
    return [row[0] for row in connection.execute(sql, parameters)]


def _other_carrier(
    connection: apsw.Connection, field: str, uses: Sequence[int], *, now_ns: int
) -> StepSkeleton | None:
    """Find a step for a text whose first one was deleted; None when nothing carries it any more."""
    for use in uses:
        span = use if field == "message" else connection.execute(_ROOT_OF, {"run": use}).get
        step = steps_by_number(connection, [span], now_ns=now_ns).get(span)
        if step is not None:
            return step
    return None


def _plain(connection: apsw.Connection, field: str, body: bytes) -> str:
    if field != "message":
        return read_text(connection, body)
    return "\n".join(searched_words(read_message(connection, body)))
