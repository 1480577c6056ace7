-- Figures by hour and by day of UTC, of the runs of kind agent that started in it.

-- Counts, sums and histograms of one value of a dimension in one hour or day. Derived.
CREATE TABLE figure (
  step         TEXT NOT NULL CHECK (step IN ('hour', 'day')),
  dimension    TEXT NOT NULL,             -- '' of all runs; else model agent service user tool
  start_ns     INTEGER NOT NULL,          -- of the hour or day
  key          TEXT NOT NULL,             -- the value; '' those that name none
  computed_ns  INTEGER NOT NULL,
  runs         INTEGER NOT NULL,
  failed_runs  INTEGER NOT NULL,
  model_calls  INTEGER NOT NULL,
  failed_calls INTEGER NOT NULL,
  tool_calls   INTEGER NOT NULL,
  failed_tools INTEGER NOT NULL,
  tokens_input       INTEGER,             -- NULL: nothing reported any
  tokens_output      INTEGER,
  tokens_cache_read  INTEGER,
  tokens_cache_write INTEGER,
  tokens_reasoning   INTEGER,
  cost_usd_nano      INTEGER,
  unpriced_calls INTEGER NOT NULL,        -- without an error, and without a cost
  run_latency  TEXT NOT NULL,             -- JSON: the first bucket, and counts from it on
  call_latency TEXT NOT NULL,
  tool_latency TEXT NOT NULL,
  first_token  TEXT NOT NULL,
  PRIMARY KEY (step, dimension, start_ns, key)
) STRICT, WITHOUT ROWID;

-- Hours some of whose runs changed since their figures were computed. Derived.
CREATE TABLE figure_due (
  start_ns INTEGER PRIMARY KEY,           -- of the hour
  changes  INTEGER NOT NULL               -- rises with each change
) STRICT;

CREATE TRIGGER run_added_to_figures AFTER INSERT ON run
BEGIN
  INSERT INTO figure_due (start_ns, changes)
  VALUES (NEW.started_ns / 3600000000000 * 3600000000000, 1)
  ON CONFLICT (start_ns) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_changed_in_figures AFTER UPDATE ON run
BEGIN
  INSERT INTO figure_due (start_ns, changes)
  VALUES (NEW.started_ns / 3600000000000 * 3600000000000, 1)
  ON CONFLICT (start_ns) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_moved_in_figures AFTER UPDATE OF started_ns ON run
WHEN OLD.started_ns / 3600000000000 <> NEW.started_ns / 3600000000000
BEGIN
  INSERT INTO figure_due (start_ns, changes)
  VALUES (OLD.started_ns / 3600000000000 * 3600000000000, 1)
  ON CONFLICT (start_ns) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_removed_from_figures AFTER DELETE ON run
BEGIN
  INSERT INTO figure_due (start_ns, changes)
  VALUES (OLD.started_ns / 3600000000000 * 3600000000000, 1)
  ON CONFLICT (start_ns) DO UPDATE SET changes = changes + 1;
END;

-- A store of an earlier version: all of its hours.
INSERT INTO figure_due (start_ns, changes)
SELECT DISTINCT started_ns / 3600000000000 * 3600000000000, 1 FROM run;
