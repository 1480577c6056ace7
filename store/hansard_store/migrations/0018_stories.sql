-- Stories that a scan has classified, accepted or not: each once. All of it is primary.

CREATE TABLE processed_story (
  source           TEXT NOT NULL,         -- the name of the source: hackernews
  story_id         TEXT NOT NULL,         -- as the source names it
  title            TEXT NOT NULL,         -- without secrets; '' once its note was purged
  url              TEXT NOT NULL,
  score            INTEGER NOT NULL,      -- the source's own: points
  accepted         INTEGER NOT NULL CHECK (accepted IN (0, 1)),
  interest         INTEGER,               -- the nearest, a memory's id; NULL: it is near none
  classifier       TEXT NOT NULL,         -- its name and version
  classifier_score REAL NOT NULL,         -- how near, 0 to 1
  threshold        REAL NOT NULL,         -- from which on it was accepted
  processed_ns     INTEGER NOT NULL,
  memory           INTEGER,               -- the note that was written, a memory's id
  PRIMARY KEY (source, story_id),
  CHECK ((memory IS NOT NULL) = accepted)
) STRICT, WITHOUT ROWID;
-- No foreign keys: durable memory is never deleted, and working memory, which is, would be looked
-- for here row by row.
CREATE INDEX processed_story_time ON processed_story (processed_ns);     -- what was processed last
CREATE INDEX processed_story_memory ON processed_story (memory)          -- what a purge empties
  WHERE memory IS NOT NULL;
