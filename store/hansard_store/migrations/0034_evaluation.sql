-- Evaluation: what agents claimed about their tools, and what the record shows. Primary: counts, and since when, cannot
-- be made again. A row goes with the run whose step made the claim; its words go with the memory that holds them.

CREATE TABLE claim_verdict (
  id            INTEGER PRIMARY KEY,         -- in the order of first sight
  key           BLOB NOT NULL UNIQUE,        -- 16 bytes of a hash: source, sentence, subject, polarity
  source        TEXT NOT NULL CHECK (source IN ('step', 'message', 'memory')),
  trace_id      BLOB,                        -- the run that made the claim; of memory the one that wrote it
  span_id       BLOB,                        -- its step
  memory        INTEGER,                     -- of memory: the record
  message       BLOB,                        -- of a transcript: the message
  said          TEXT NOT NULL,               -- the sentence; '' once its memory is purged
  start         INTEGER NOT NULL,            -- its place in the text, in characters
  subject       TEXT NOT NULL,               -- the tool, or the topic of a data set
  is_tool       INTEGER NOT NULL,            -- 1: the subject is a tool's name
  polarity      TEXT NOT NULL CHECK (polarity IN ('success', 'failure', 'acted')),
  qualifier     TEXT NOT NULL,               -- the part that is spoken of; '' all of it
  language      TEXT NOT NULL,
  verdict       TEXT NOT NULL CHECK (verdict IN ('confirmed', 'contradicted', 'claimed', 'unknown')),
  why           TEXT NOT NULL,               -- a sentence of Hansard's own
  tool          TEXT NOT NULL,               -- of the step that decided; '' none did
  evidence      TEXT NOT NULL,               -- JSON: step ids, the one that decided first
  executions    INTEGER NOT NULL,            -- that were looked at
  failures      INTEGER NOT NULL,
  claimed_ns    INTEGER NOT NULL,            -- when it was said
  decided_ns    INTEGER,                     -- when the execution that decided ended
  recovered_ns  INTEGER,                     -- of a contradicted success: since when it succeeds again
  correction    INTEGER,                     -- memory.id of the correction
  count         INTEGER NOT NULL,            -- evaluations that saw it so
  first_seen_ns INTEGER NOT NULL,
  last_seen_ns  INTEGER NOT NULL
) STRICT;
CREATE INDEX claim_verdict_run ON claim_verdict (trace_id, id) WHERE trace_id IS NOT NULL; -- of a run; deletion
CREATE INDEX claim_verdict_memory ON claim_verdict (memory) WHERE memory IS NOT NULL;      -- of a record; purge
CREATE INDEX claim_verdict_verdict ON claim_verdict (verdict, id);                         -- lists of one verdict
CREATE INDEX claim_verdict_subject ON claim_verdict (subject, id);                         -- lists of one tool
CREATE INDEX claim_verdict_tool ON claim_verdict (tool, id) WHERE tool <> '';
CREATE INDEX claim_verdict_time ON claim_verdict (claimed_ns);                             -- those of a window

-- What was judged of a run, so that it is not read again while it is as it was. No record: it may be dropped at any time.
CREATE TABLE evaluated_run (
  trace_id BLOB PRIMARY KEY,
  digest   BLOB NOT NULL                     -- of its tool calls, model calls and answers
) STRICT, WITHOUT ROWID;
