-- Tasks for review: what the detector found to repeat, and what a person decided about it. A task is
-- opened blocked; nothing acts on it before a person approves it. It holds no recorded content, only
-- counts and ids: a run that is deleted leaves none of its words here.

CREATE TABLE task (
  id            INTEGER PRIMARY KEY,      -- in the order of opening
  task_id       BLOB NOT NULL UNIQUE,     -- 16 bytes
  state         TEXT NOT NULL CHECK (state IN ('blocked', 'approved', 'dismissed', 'done')),
  review        INTEGER NOT NULL,         -- the flag: 1 while a person has to decide
  level         TEXT NOT NULL CHECK (level IN ('action', 'component', 'architecture')),
  rule          TEXT NOT NULL,            -- which rule of the detector found it
  pattern       BLOB NOT NULL,            -- HMAC(key, rule, subject, signature): what repeats
  subject_kind  TEXT NOT NULL,            -- tool model step memory
  subject       TEXT NOT NULL,            -- its name, or the type of a memory; '' for all of a kind
  title         TEXT NOT NULL,
  description   TEXT NOT NULL,
  count         INTEGER NOT NULL,         -- how often, since the first one that counts
  first_ns      INTEGER NOT NULL,
  last_ns       INTEGER NOT NULL,
  counted_to    INTEGER NOT NULL,         -- number of the last one counted: none counts twice
  evidence      TEXT NOT NULL,            -- JSON: [kind, id, time]: the first one and the newest
  activity      TEXT NOT NULL,            -- JSON: how many in each 24th of the window, oldest first
  threshold     INTEGER NOT NULL,         -- that was in force when it was last seen,
  window_ns     INTEGER NOT NULL,         -- within this time
  created_ns    INTEGER NOT NULL,
  updated_ns    INTEGER NOT NULL,         -- when it was last seen again, or decided
  decided_by    TEXT,                     -- who approved or dismissed it; '' unknown
  decided_ns    INTEGER,
  decided_door  TEXT,                     -- page api cli
  note          TEXT,                     -- of the decision, without secrets
  done_by       TEXT,
  done_ns       INTEGER,
  CHECK (review = (state = 'blocked'))
) STRICT;
CREATE UNIQUE INDEX task_pattern ON task (pattern)                       -- one open task a pattern
  WHERE state IN ('blocked', 'approved');
CREATE INDEX task_known ON task (pattern);                               -- what was counted before
CREATE INDEX task_state ON task (state, id);                             -- lists of one state
CREATE INDEX task_open ON task (id) WHERE state IN ('blocked', 'approved'); -- what is open
CREATE INDEX task_level ON task (level, id);                             -- lists of one level

-- The detector's: steps that failed, by time; corrections of memory.
CREATE INDEX span_failed ON span (sort_ns) WHERE flags & 4096;           -- SpanFlag.ERROR
CREATE INDEX memory_corrected ON memory (created_ns)
  WHERE version > 1 AND memory_type <> 'working';
