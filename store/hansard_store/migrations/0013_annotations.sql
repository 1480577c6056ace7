-- Annotations: notes, scores and tags on runs and steps. What people and programs say here is
-- primary, and nothing of it is overwritten: a newer score of the same author replaces the older,
-- a withdrawn one stays with its reason. Scores that spans and their log records tell
-- (gen_ai.evaluation.*) stand beside them, with the number of their span, and are derived from it.

CREATE TABLE annotation (
  id            INTEGER PRIMARY KEY,      -- in the order of writing
  annotation_id BLOB UNIQUE,              -- 16 bytes; NULL: told by a span
  span          INTEGER REFERENCES span (id), -- the span that tells it; NULL: written here
  trace_id      BLOB NOT NULL,            -- what it is on: a run,
  span_id       BLOB NOT NULL,            -- or, unless it is empty, one of its steps
  side          INTEGER NOT NULL,         -- of a step: span.side
  kind          TEXT NOT NULL,            -- note score tag
  name          TEXT NOT NULL,            -- of a score; the tag itself; '' of a note
  value         REAL,                     -- of a score
  label         TEXT,                     -- of a score: pass, fail, …
  text          TEXT,                     -- the note; of a score, why
  expected      TEXT,                     -- what the output should have been
  source        TEXT,                     -- human code llm; NULL: a program that does not say
  author        TEXT NOT NULL,            -- a name, as told; '' unknown
  door          TEXT NOT NULL,            -- page api cli import otlp: how it came
  created_ns    INTEGER NOT NULL,
  removed       TEXT NOT NULL,            -- JSON: `rule:fingerprint` of every secret cut out
  ended_ns      INTEGER,                  -- NULL: it stands
  ended         TEXT,                     -- replaced withdrawn
  ended_by      TEXT,
  ended_reason  TEXT
) STRICT;
CREATE INDEX annotation_step ON annotation (trace_id, span_id, side, id); -- of a run or step; deletion
CREATE INDEX annotation_run ON annotation (trace_id, kind, name, span_id, value, label)
  WHERE ended_ns IS NULL;                                                -- has a run this tag, this score
CREATE INDEX annotation_name ON annotation (kind, name, value, label, trace_id)
  WHERE ended_ns IS NULL;                                                -- runs with a tag or score
CREATE INDEX annotation_kind ON annotation (kind, id);                   -- lists of one kind
CREATE INDEX annotation_span ON annotation (span) WHERE span IS NOT NULL; -- derived again; deletion

CREATE VIEW annotations AS SELECT
  lower(hex(annotation_id)) AS annotation_id, lower(hex(trace_id)) AS run_id,
  iif(span_id = x'', NULL, lower(hex(trace_id)) || '-' || lower(hex(span_id))) AS step_id, kind, name, value, label, text,
  expected, source, author, created_ns, ended_ns, ended FROM annotation;
