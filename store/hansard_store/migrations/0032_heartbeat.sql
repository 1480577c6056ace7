-- The heartbeat: its cycles, the result of each phase, and the diagnostics that components write.
-- All of it is primary. It holds no recorded content: counts, ids and sentences of Hansard's own.

CREATE TABLE heartbeat_cycle (
  id         INTEGER PRIMARY KEY,         -- in the order of their beginning
  trace_id   BLOB NOT NULL UNIQUE,        -- 16 bytes: the cycle is a trace
  origin     TEXT NOT NULL CHECK (origin IN ('command', 'server')),
  started_ns INTEGER NOT NULL,
  ended_ns   INTEGER                      -- NULL: it runs, or its process was killed
) STRICT;
CREATE INDEX heartbeat_cycle_time ON heartbeat_cycle (started_ns);       -- what is pruned; the last

CREATE TABLE heartbeat_phase (
  id         INTEGER PRIMARY KEY,
  cycle      INTEGER NOT NULL REFERENCES heartbeat_cycle (id),
  name       TEXT NOT NULL,
  span_id    BLOB NOT NULL,               -- 8 bytes: the phase is a span of the cycle's trace
  status     TEXT NOT NULL CHECK (status IN ('done', 'failed', 'skipped')),
  started_ns INTEGER NOT NULL,
  ended_ns   INTEGER NOT NULL,
  summary    TEXT NOT NULL,               -- one sentence; of a failed one the error, of a skipped
                                          -- one the reason
  figures    TEXT NOT NULL                -- JSON object
) STRICT;
CREATE INDEX heartbeat_phase_cycle ON heartbeat_phase (cycle, id);       -- the phases of one cycle
CREATE INDEX heartbeat_phase_name ON heartbeat_phase (name, id);         -- the last; the history

CREATE TABLE diagnostic (
  id        INTEGER PRIMARY KEY,
  time_ns   INTEGER NOT NULL,
  component TEXT NOT NULL,                -- heartbeat.<phase>, hook, or another part of Hansard
  level     TEXT NOT NULL CHECK (level IN ('info', 'warning', 'error')),
  signature TEXT NOT NULL,                -- what equal diagnostics share; '' none
  message   TEXT NOT NULL,                -- without secrets, at most 2,000 characters
  trace_id  BLOB,                         -- the run it belongs to
  span_id   BLOB                          -- the step, with a trace id
) STRICT;
CREATE INDEX diagnostic_time ON diagnostic (time_ns);                    -- a window; what is pruned
CREATE INDEX diagnostic_component ON diagnostic (component, id);         -- of one component

-- One log for SQL: what components of Hansard wrote, and what tools did, succeeded or failed.
CREATE VIEW diagnostics AS
  SELECT time_ns, component AS tool, level, signature, message,
    lower(hex(trace_id)) AS run_id,
    CASE WHEN span_id IS NULL THEN NULL
      ELSE lower(hex(trace_id)) || '-' || lower(hex(span_id)) END AS step_id
  FROM diagnostic
  UNION ALL
  SELECT sort_ns, tool_name, CASE WHEN flags & 4096 THEN 'error' ELSE 'info' END, '',
    coalesce(summary, ''), lower(hex(trace_id)),
    lower(hex(trace_id)) || '-' || lower(hex(span_id))
  FROM span WHERE tool_name IS NOT NULL AND flags & 7 = 0; -- neither duplicate nor pending nor folded
