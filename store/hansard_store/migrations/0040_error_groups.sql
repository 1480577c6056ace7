-- Errors by what they have in common: a row for each failed step, derived, and what people decided about a group.

CREATE TABLE error_step (
  span        INTEGER PRIMARY KEY,     -- span.id of the step that failed
  run         INTEGER NOT NULL,        -- run.id
  time_ns     INTEGER NOT NULL,        -- span.sort_ns
  fingerprint BLOB NOT NULL,           -- 16 bytes, HMAC(key, version, subject, signature): its group
  counted     INTEGER NOT NULL,        -- 0: the error of another step of the run, passed on, or of a hidden step
  error_type  TEXT,                    -- error.type or exception.type, without secrets; NULL: not reported
  message     TEXT                     -- its beginning, on one line, without secrets; NULL: not reported or not stored
) STRICT;
CREATE INDEX error_step_group ON error_step (fingerprint, time_ns, run) WHERE counted = 1; -- groups; the steps of one
CREATE INDEX error_step_run ON error_step (run, time_ns) WHERE counted = 1;               -- the first error of a run
CREATE INDEX error_step_time ON error_step (time_ns) WHERE counted = 1;                   -- the detector's window

-- What a person decided about a group; a group without a row is open and not watched.
CREATE TABLE error_group (
  fingerprint BLOB PRIMARY KEY,        -- error_step.fingerprint
  state       TEXT NOT NULL CHECK (state IN ('open', 'closed', 'reopened')),
  watched     INTEGER NOT NULL,        -- 1: listed under "Watched"
  closed_ns   INTEGER,                 -- when it was last closed: a later occurrence opens it again
  reopened_ns INTEGER,                 -- when it last opened again by itself
  updated_ns  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Everything that was decided or noted about a group, and each time that it opened again.
CREATE TABLE error_change (
  id          INTEGER PRIMARY KEY,     -- in the order of time
  fingerprint BLOB NOT NULL,           -- error_group.fingerprint
  kind        TEXT NOT NULL CHECK (kind IN ('watch', 'unwatch', 'note', 'close', 'open', 'reopened')),
  note        TEXT,                    -- a person's words, without secrets
  by          TEXT NOT NULL,           -- who; '' unknown; of `reopened` Hansard itself
  method      TEXT,                    -- how `by` is known; NULL: not on record
  origin      TEXT NOT NULL,           -- page api cli otlp
  time_ns     INTEGER NOT NULL
) STRICT;
CREATE INDEX error_change_group ON error_change (fingerprint, id);                        -- the history of one

-- Steps that failed before: a server makes their rows in slices; until then lists say that they are not complete.
INSERT INTO setting (name, value)
SELECT 'error_steps_due', '' WHERE EXISTS (SELECT 1 FROM span INDEXED BY span_failed WHERE flags & 4096);
