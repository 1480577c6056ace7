-- Replays: a model call made again, exactly or with changes. Each is a run of its own; this row
-- says of which step it is and what became of it. A refused one has a row and no run.
CREATE TABLE replay (
  id           INTEGER PRIMARY KEY,       -- in the order in which they were asked for
  replay_id    BLOB NOT NULL UNIQUE,      -- 16 bytes
  source_trace BLOB NOT NULL,             -- the run it is of
  source_step  TEXT NOT NULL,             -- the step it is of
  trace_id     BLOB,                      -- the run it made; NULL: nothing was recorded
  mode         TEXT NOT NULL,             -- exact mutated forward
  recorded     INTEGER NOT NULL,          -- 1: answered from the recording, nothing was sent
  repeats      INTEGER NOT NULL,
  state        TEXT NOT NULL,             -- running done diverged refused failed
  reason       TEXT,                      -- code of a refusal or a failure
  request_hash TEXT,                      -- sha256 of the first request, "sha256:…"
  steps        TEXT NOT NULL,             -- JSON: the steps it made, with ids and numbers alone
  started_ns   INTEGER NOT NULL,
  ended_ns     INTEGER,
  owner        INTEGER NOT NULL,          -- process that works on it
  report       TEXT                       -- JSON: changes, notes, messages, without secrets;
                                          -- NULL in metadata_only
) STRICT;
CREATE INDEX replay_source ON replay (source_step, id);                  -- of a step
CREATE INDEX replay_source_run ON replay (source_trace);                 -- deletion
CREATE INDEX replay_run ON replay (trace_id) WHERE trace_id IS NOT NULL; -- what a run is; deletion
CREATE INDEX replay_state ON replay (state, id);                         -- what still runs
