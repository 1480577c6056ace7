"""Pairs of records that may contradict each other: found by the full-text index, in SQL alone.

The first stage of contradiction detection. Words are compared by their Porter stems. A pair has to
be of one namespace and scope, and to have a structural key in common: the subject, the attribute,
or rare words above a threshold. Cost: some milliseconds for one new record among 10,000, about a
second where all of them are new.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_store.database.stored_json import json_text

# What states something that a newer record can contradict. Corrections are linked, notes and
# interests state nothing about the world.
COMPARED_TYPES: Final = (
    "durable", "session_summary", "fact", "preference", "constraint", "artifact_index", "decision",
)  # fmt: skip
# Origins whose records neither supersede nor are superseded.
LEFT_ORIGINS: Final = ("diagnostic", "external", "evaluation")

_DROP: Final = """
DROP TABLE IF EXISTS temp.entry; DROP TABLE IF EXISTS temp.new_fts;
DROP TABLE IF EXISTS temp.new_instance; DROP TABLE IF EXISTS temp.stem_instance;
DROP TABLE IF EXISTS temp.new_term; DROP TABLE IF EXISTS temp.posting;
DROP TABLE IF EXISTS temp.weight; DROP TABLE IF EXISTS temp.overlap;
DROP TABLE IF EXISTS temp.place; DROP TABLE IF EXISTS temp.total;
"""
_ENTRIES: Final = """
CREATE TEMP TABLE place (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TEMP TABLE entry (
  doc INTEGER PRIMARY KEY, place INTEGER, subject TEXT, attribute TEXT, is_new INTEGER
);
"""
_ENTRY_ROWS: Final = """
SELECT memory.id AS doc,
  json_array(memory.project, memory.user, memory.agent, body.scope) AS name,
  trim(lower(body.subject)) AS subject, trim(lower(body.attribute)) AS attribute,
  compared.memory IS NULL AS is_new
FROM memory INDEXED BY memory_state
CROSS JOIN memory_body AS body ON body.memory = memory.id
LEFT JOIN memory_compared AS compared
  ON compared.memory = memory.id AND compared.judge = :judge
WHERE memory.state = 'current' AND memory.memory_type IN (SELECT value FROM json_each(:types))
  AND (memory.expires_ns IS NULL OR memory.expires_ns > :now)
  AND coalesce(json_extract(body.metadata, '$.origin'), '') NOT IN (
    SELECT value FROM json_each(:origins))
"""
_PLACES: Final = f"INSERT OR IGNORE INTO temp.place (name) SELECT name FROM ({_ENTRY_ROWS})"
_ADD_ENTRIES: Final = f"""
INSERT INTO temp.entry
SELECT doc, place.id, subject, attribute, is_new FROM ({_ENTRY_ROWS}) JOIN temp.place USING (name)
"""
_INDEX_ENTRIES: Final = "CREATE INDEX temp.entry_subject ON entry (place, subject)"
_COUNTS: Final = "SELECT count(*), coalesce(sum(is_new), 0) FROM temp.entry"
# The stems of new records, by an index of their own: the large one has no list of a record's words.
_NEW_TERMS: Final = """
CREATE VIRTUAL TABLE temp.new_fts USING fts5 (body, content = '', tokenize = 'porter unicode61');
INSERT INTO temp.new_fts (rowid, body)
  SELECT doc, body.subject || char(10) || body.attribute || char(10) || body.content
  FROM temp.entry JOIN memory_body AS body ON body.memory = doc WHERE is_new;
CREATE VIRTUAL TABLE temp.new_instance USING fts5vocab (temp, new_fts, instance);
CREATE TEMP TABLE new_term AS
  SELECT DISTINCT entry.place, new_instance.term, new_instance.doc
  FROM temp.new_instance JOIN temp.entry ON entry.doc = new_instance.doc;
"""
# Every record with one of those stems, and what the stem weighs in its namespace.
_POSTINGS: Final = """
CREATE VIRTUAL TABLE temp.stem_instance USING fts5vocab (main, memory_stem_fts, instance);
CREATE TEMP TABLE posting (
  place INTEGER, term TEXT, doc INTEGER, is_new INTEGER, PRIMARY KEY (place, term, doc)
) WITHOUT ROWID;
INSERT OR IGNORE INTO temp.posting
  SELECT entry.place, wanted.term, entry.doc, entry.is_new
  FROM (SELECT DISTINCT term FROM temp.new_term) AS wanted
  CROSS JOIN temp.stem_instance AS found ON found.term = wanted.term
  CROSS JOIN temp.entry ON entry.doc = found.doc;
CREATE TEMP TABLE weight (
  place INTEGER, term TEXT, held INTEGER, weight REAL, PRIMARY KEY (place, term)
) WITHOUT ROWID;
INSERT INTO temp.weight
  SELECT posting.place, term, count(*), ln(1.0 + size.entries * 1.0 / count(*))
  FROM temp.posting
  JOIN (SELECT place, count(*) AS entries FROM temp.entry GROUP BY place) AS size USING (place)
  GROUP BY posting.place, term;
CREATE TEMP TABLE total AS
  SELECT new_term.doc, sum(weight.weight) AS weight FROM temp.new_term
  JOIN temp.weight USING (place, term) GROUP BY new_term.doc;
CREATE UNIQUE INDEX temp.total_doc ON total (doc);
"""
# What a new record shares with others: the weight of common rare stems. A pair of two new records
# is in once, as the later one's.
_OVERLAPS: Final = """
CREATE TEMP TABLE overlap (mine INTEGER, other INTEGER, weight REAL, PRIMARY KEY (mine, other))
  WITHOUT ROWID;
"""
_ADD_OVERLAPS: Final = """
INSERT INTO temp.overlap
  SELECT mine.doc, other.doc, sum(weight.weight)
  FROM temp.weight
  CROSS JOIN temp.posting AS mine
    ON mine.place = weight.place AND mine.term = weight.term AND mine.is_new
  CROSS JOIN temp.posting AS other
    ON other.place = weight.place AND other.term = weight.term AND other.doc <> mine.doc
  WHERE weight.held BETWEEN 2 AND :rare AND (other.doc < mine.doc OR NOT other.is_new)
  GROUP BY 1, 2
"""
# The gate: a subject or an attribute in common, or more common rare words.
_PAIRS: Final = """
WITH near AS (
  SELECT mine, other FROM temp.overlap
  UNION
  SELECT mine.doc, other.doc
  FROM temp.entry AS mine CROSS JOIN temp.entry AS other INDEXED BY entry_subject
    ON other.place = mine.place AND other.subject = mine.subject AND other.doc <> mine.doc
  WHERE mine.is_new AND mine.subject <> '' AND (other.doc < mine.doc OR NOT other.is_new)
), gated AS (
  SELECT near.mine, near.other,
    mine.subject = other.subject AND mine.subject <> '' AS same_subject,
    mine.attribute = other.attribute AND mine.attribute <> '' AS same_attribute,
    coalesce(overlap.weight, 0.0) / max(total.weight, 1e-9) AS share
  FROM near
  JOIN temp.entry AS mine ON mine.doc = near.mine
  JOIN temp.entry AS other ON other.doc = near.other
  JOIN temp.total ON total.doc = near.mine
  LEFT JOIN temp.overlap ON overlap.mine = near.mine AND overlap.other = near.other
), ranked AS (
  SELECT *, row_number() OVER (
    PARTITION BY mine ORDER BY same_subject DESC, share DESC, other DESC) AS place
  FROM gated
  WHERE same_subject AND share >= :of_subject OR same_attribute AND share >= :of_attribute
    OR share >= :of_words
)
SELECT min(mine, other), max(mine, other)
FROM ranked WHERE place <= :most ORDER BY 2, 1
"""
_RARE: Final = 40  # records of a namespace; a stem in more of them tells nothing apart
_MOST_OF_ENTRY: Final = 10  # pairs of one new record, the nearest
# The share of a new record's weight of words that the other one has.
_OF_SUBJECT: Final = 0.0
_OF_ATTRIBUTE: Final = 0.2
_OF_WORDS: Final = 0.3


Pair = tuple[int, int]  # numbers of two records, the lower first


@dataclass(frozen=True, slots=True)
class Prefiltered:
    """What the first stage found."""

    pairs: Sequence[Pair]
    entries: int  # records that were considered
    new: int  # those among them that were not compared before
    took_ms: float  # in SQL


def prefilter(connection: apsw.Connection, *, judge: str, now_ns: int) -> Prefiltered:
    """Return the pairs of records not yet compared for a judge, ordered by the later record.

    Needs a connection that may write temporary tables, outside of a transaction.
    """
    began = time.perf_counter()
    parameters = _entry_parameters(judge, now_ns)
    connection.execute(_DROP)
    try:
        connection.execute(_ENTRIES)
        connection.execute(_PLACES, parameters)
        connection.execute(_ADD_ENTRIES, parameters)
        counted: Any = connection.execute(_COUNTS).fetchone()
        pairs = _pairs(connection) if counted[1] else []
    finally:
        connection.execute(_DROP)
    return Prefiltered(pairs, counted[0], counted[1], (time.perf_counter() - began) * 1_000)


def new_entries(connection: apsw.Connection, *, judge: str, now_ns: int) -> list[int]:
    """Return the numbers of the records that a judge has not compared, the oldest first."""
    parameters = _entry_parameters(judge, now_ns)
    rows: Any = connection.execute(
        f"SELECT doc FROM ({_ENTRY_ROWS}) WHERE is_new ORDER BY 1", parameters
    )
    return [number for (number,) in rows]


def _entry_parameters(judge: str, now_ns: int) -> dict[str, Any]:
    types, origins = json_text(COMPARED_TYPES), json_text(LEFT_ORIGINS)
    return {"judge": judge, "now": now_ns, "types": types, "origins": origins}


def _pairs(connection: apsw.Connection) -> list[Pair]:
    for sql in (_INDEX_ENTRIES, _NEW_TERMS, _POSTINGS, _OVERLAPS):
        connection.execute(sql)
    connection.execute(_ADD_OVERLAPS, {"rare": _RARE})
    parameters = {
        "most": _MOST_OF_ENTRY,
        "of_subject": _OF_SUBJECT,
        "of_attribute": _OF_ATTRIBUTE,
        "of_words": _OF_WORDS,
    }
    return [*connection.execute(_PAIRS, parameters)]
