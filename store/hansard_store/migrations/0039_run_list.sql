-- Orders of the run list, and views of it that people saved.

-- One index for both kinds of runs: a list of one kind searches its half, a list of both merges the halves.
CREATE INDEX run_tokens ON run ((work_count > 0),
  coalesce(tokens_input + tokens_output, tokens_input, tokens_output, -1), id);          -- sort=tokens
CREATE INDEX run_steps ON run ((work_count > 0), step_count, id);                        -- sort=steps
CREATE INDEX run_errors ON run ((work_count > 0), error_count, id);                      -- sort=errors
CREATE INDEX run_receipts ON run (id) WHERE has_receipts = 1;                            -- receipts:yes

-- A view of the run list. Primary: nothing derives it.
CREATE TABLE saved_view (
  name       TEXT PRIMARY KEY,
  query      TEXT NOT NULL,                -- filters as in an address: status=error&agent=mender
  sort       TEXT NOT NULL,                -- '' for the order of arrival
  columns    TEXT NOT NULL,                -- 'agent,cost,started'; '' for the usual ones
  created_by TEXT NOT NULL,                -- principal; '' where nobody signs in
  created_ns INTEGER NOT NULL,
  updated_by TEXT NOT NULL,
  updated_ns INTEGER NOT NULL
) STRICT;
