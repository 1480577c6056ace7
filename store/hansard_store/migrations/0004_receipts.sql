-- Compilations and their receipts: what a compile did with every candidate, and why (DESIGN §10).
-- All three tables are derived from spans `hansard.compile`, and from the stored result where the
-- span holds only the first 4,000 receipts.

-- One compile. Digests are text as sent: `sha256:…`, or `hmac-sha256:…` where content is withheld.
CREATE TABLE compilation (
  span               INTEGER PRIMARY KEY REFERENCES span (id),
  run                INTEGER NOT NULL,
  id                 TEXT NOT NULL,       -- hansard.compilation.id; the same compile twice has one
  hash               TEXT,
  stable_prefix_hash TEXT,
  volatile_suffix_hash TEXT,
  provider           TEXT,
  model              TEXT,
  budget_tokens      INTEGER,             -- NULL: not told
  budget_reserve     INTEGER,
  budget_used        INTEGER,
  counter            TEXT,                -- how tokens were counted
  ports              TEXT,                -- what the compile was given beside its request: policy,
                                          -- relevance, compressor, renderer; NULL: nothing, or not told
  request_ref        TEXT,
  result_ref         TEXT,
  schema_version     TEXT,                -- of hansard.*, where the sender tells another than ours
  started_ns         INTEGER NOT NULL,
  item_total         INTEGER NOT NULL,    -- candidates, as told
  receipt_count      INTEGER NOT NULL,    -- rows of `receipt`
  included           INTEGER NOT NULL,    -- of those rows
  excluded           INTEGER NOT NULL,
  compressed         INTEGER NOT NULL,
  redacted           INTEGER NOT NULL,
  notes              TEXT                 -- a line each: what was missing, malformed or left out
) STRICT;
CREATE INDEX compilation_id ON compilation (id, span);                   -- by id or its beginning
CREATE INDEX compilation_run ON compilation (run, span);                 -- of a run; deletion
CREATE INDEX compilation_cut ON compilation (result_ref)
  WHERE receipt_count < item_total;                                      -- who waits for a result

-- What became of one candidate. An exclusion without a reason is none, nor an inclusion without a
-- source: such rows are left out, counted in compilation.notes, and refused here.
-- One item or file in all compiles is found by attribute_fts, which has the compile spans' arrays of
-- ids and sources: an index of our own would write a page for every candidate of every compile.
CREATE TABLE receipt (
  span          INTEGER NOT NULL,         -- of its compilation
  ordinal       INTEGER NOT NULL,         -- from 0, in the order in which the candidates came
  item_id       TEXT NOT NULL,
  kind          TEXT,
  decision      TEXT NOT NULL,            -- include exclude compress redact, or what a later SDK says
  pass          TEXT,                     -- of the compiler
  reason        TEXT NOT NULL,            -- a code of hansard_compiler/compile/reasons.py, or a later one
  source_type   TEXT,
  source        TEXT,                     -- where, of that type; NULL: only the type is known
  section       TEXT,
  tokens_before INTEGER,                  -- NULL: not known
  tokens_after  INTEGER,
  score_nano    INTEGER,                  -- billionths of a point; NULL: it left before it had one
  missed_tokens INTEGER,                  -- tokens that were lacking
  missed_score_nano INTEGER,              -- points that were lacking
  related       TEXT,                     -- item id: the winner, the kept copy, what is missing
  rule_ids      TEXT,                     -- separated by commas
  original_ref  BLOB,                     -- payload digest; NULL: withheld, or not told
  final_ref     BLOB,                     -- of what was sent, where it differs from the original
  PRIMARY KEY (span, ordinal),
  CHECK (decision <> '' AND reason <> '' AND (decision = 'exclude' OR source_type IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- What the receipts of a compile are narrowed by, each value once a compile: kind is one of
-- decision kind pass reason rule source_type.
CREATE TABLE receipt_facet (
  kind  TEXT NOT NULL,
  value TEXT NOT NULL,
  span  INTEGER NOT NULL,
  PRIMARY KEY (kind, value, span)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipt_facet_span ON receipt_facet (span);                 -- deletion
