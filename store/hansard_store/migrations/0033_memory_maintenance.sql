-- Maintenance of memory: what superseded what and why, verdicts that need not be asked for again,
-- vectors, and an index of word stems.

-- Each supersession, applied or proposed. A proposal waits for a person; an undone one stays.
CREATE TABLE memory_supersession (
  id             INTEGER PRIMARY KEY,
  older          INTEGER NOT NULL,        -- memory.id of what is superseded
  newer          INTEGER NOT NULL,        -- memory.id of what it is superseded by
  cause          TEXT NOT NULL CHECK (cause IN ('version', 'accepted', 'contradiction', 'correction')),
  state          TEXT NOT NULL CHECK (state IN ('proposed', 'refused', 'lapsed', 'applied', 'undone')),
                                          -- lapsed: approved when one of both did not stand any more
  rationale      TEXT NOT NULL,           -- the rule or the words that decided, no recorded content
  score          REAL,                    -- 0 to 1, of the classifier or embedder; NULL: none asked
  judge          TEXT NOT NULL,           -- name of the classifier, embedder or writer
  task           BLOB,                    -- of a proposal: task_id of the task for review
  created_ns     INTEGER NOT NULL,
  span           TEXT,                    -- step id: the step that did it
  decided_by     TEXT,                    -- of a decided proposal: the person
  decided_method TEXT,                    -- how decided_by is known
  decided_ns     INTEGER,
  undone_by      TEXT,
  undone_method  TEXT,
  undone_ns      INTEGER,
  undone_reason  TEXT
) STRICT;
-- No foreign keys: durable memory is never deleted, and working memory, which is, would be looked
-- for here row by row.
CREATE INDEX memory_supersession_older ON memory_supersession (older, id); -- the history of a record
CREATE INDEX memory_supersession_newer ON memory_supersession (newer, id); -- links of a correction
CREATE INDEX memory_supersession_task ON memory_supersession (task)        -- what a decision applies
  WHERE task IS NOT NULL;

-- What a classifier said of a pair, so that it is not asked again.
CREATE TABLE memory_pair (
  first      INTEGER NOT NULL,            -- memory.id, the lower of both
  second     INTEGER NOT NULL,
  classifier TEXT NOT NULL,               -- its name and version
  label      TEXT,                        -- contradicts agrees unrelated; NULL: none fits
  score      REAL NOT NULL,               -- 0 to 1
  reason     TEXT NOT NULL,               -- of one that waits: why it is doubtful
  outcome    TEXT NOT NULL CHECK (outcome IN ('superseded', 'review', 'waiting', 'none')),
                                          -- waiting: for a task, of which a run opens so many
  judged_ns  INTEGER NOT NULL,
  PRIMARY KEY (first, second, classifier)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_pair_waiting ON memory_pair (classifier, judged_ns) WHERE outcome = 'waiting';
CREATE INDEX memory_pair_second ON memory_pair (second);                 -- what a purge removes

-- Which records a classifier or embedder is through with, on which pairs or links.
CREATE TABLE memory_compared (
  memory      INTEGER NOT NULL,           -- memory.id
  judge       TEXT NOT NULL,              -- name of the classifier or embedder
  compared_ns INTEGER NOT NULL,
  PRIMARY KEY (memory, judge)
) STRICT, WITHOUT ROWID;

-- The vector of a record by an embedder, derived from its content and removed with it.
CREATE TABLE memory_embedding (
  memory   INTEGER NOT NULL,              -- memory.id
  embedder TEXT NOT NULL,                 -- its name and version: vectors of two are never compared
  embedding BLOB NOT NULL,             -- 32-bit floats, little-endian, of length 1
  PRIMARY KEY (memory, embedder)
) STRICT;

-- Words by their stems (Porter): `running` and `run` are one. Filled with each record.
CREATE VIRTUAL TABLE memory_stem_fts USING fts5 (
  body, content = '', contentless_delete = 1, detail = full, tokenize = 'porter unicode61'
);
INSERT INTO memory_stem_fts (rowid, body)
  SELECT memory, subject || char(10) || attribute || char(10) || content FROM memory_body;
