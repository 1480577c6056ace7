-- Which prompt of its conversation a run is of, the first and the last that its spans tell: where they are
-- one, conversation and prompt make its group, and traces of one group are the rounds of one prompt. Made
-- by `hansard rebuild` for runs that an older version derived.
ALTER TABLE run ADD COLUMN prompt_id TEXT;
ALTER TABLE run ADD COLUMN last_prompt_id TEXT;
ALTER TABLE run ADD COLUMN prompt_span INTEGER;          -- span.id of who told the first
ALTER TABLE run ADD COLUMN last_prompt_span INTEGER;
ALTER TABLE run ADD COLUMN group_id BLOB;                -- 16 bytes of sha256; NULL: of no prompt, or of several

DROP VIEW runs;
CREATE VIEW runs AS SELECT
  lower(hex(trace_id)) AS run_id, name, agent_name, status, started_ns, ended_ns, span_count,
  step_count, model_calls, tool_calls, error_count, tokens_input, tokens_output, cost_usd_nano,
  conversation_id, user_id, iif(work_count > 0, 'agent', 'other') AS kind,
  iif(group_id IS NULL, NULL, lower(hex(group_id))) AS group_id FROM run;

-- Other runs again, with what tells whether one is shown inside a group.
DROP INDEX run_other;
CREATE INDEX run_other ON run (id, group_id) WHERE work_count = 0;
CREATE INDEX run_group ON run (group_id, id) WHERE group_id IS NOT NULL;                 -- members of a group
