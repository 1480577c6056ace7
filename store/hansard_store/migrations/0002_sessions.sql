-- Runs made of log records: coding agents that export logs and no traces (DESIGN §2).
-- Both tables are derived: from log_record, and from the spans that tell the same request ids.

-- What a log record without trace ids is in its session. The ids that it was given stand in
-- log_record too, so that it is read like any other record of its run.
CREATE TABLE session_log (
  log      INTEGER PRIMARY KEY REFERENCES log_record (id) ON DELETE CASCADE,
  session  TEXT NOT NULL,                 -- the dialect, a space, the sender's session id
  time_ns  INTEGER NOT NULL,
  start_ns INTEGER NOT NULL,              -- time_ns less the duration that the record tells
  place    TEXT NOT NULL,                 -- prompt step about start end note
  kind     TEXT NOT NULL,                 -- of step and about: llm tool agent task
  key      TEXT NOT NULL,                 -- of step and about: the sender's id, else one made
                                          -- from the record
  lane     TEXT NOT NULL,                 -- of start, end and calls: joined within one
  loose    INTEGER NOT NULL,              -- 1: names no prompt, so it belongs to the last one before it
  trace_id BLOB                           -- NULL: there is no prompt yet
) STRICT;
CREATE INDEX session_log_prompt ON session_log (session, time_ns) WHERE place = 'prompt';
CREATE INDEX session_log_loose ON session_log (session, time_ns) WHERE loose = 1;
CREATE INDEX session_log_trace ON session_log (trace_id, place, time_ns, start_ns);
CREATE INDEX session_log_key ON session_log (key) WHERE kind <> '';      -- spans that came later

-- Turns that turned out to be traced: their records belong to that trace, and no run is made.
CREATE TABLE session_claim (
  turn     BLOB PRIMARY KEY,              -- the trace id that a run of its own would have
  trace_id BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_claim_trace ON session_claim (trace_id);            -- is a trace a sent one
