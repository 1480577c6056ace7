-- What the user of a run wants, in their words (hansard.run.goal), and the span that tells it. Runs of before
-- have it when they are derived again.
ALTER TABLE run ADD COLUMN user_goal TEXT;
ALTER TABLE run ADD COLUMN user_goal_span INTEGER;

DROP VIEW runs;
CREATE VIEW runs AS SELECT
  lower(hex(trace_id)) AS run_id, name, agent_name, domain, user_goal, status, started_ns, ended_ns,
  span_count, step_count, model_calls, tool_calls, error_count, tokens_input, tokens_output, cost_usd_nano,
  conversation_id, user_id, iif(work_count > 0, 'agent', 'other') AS kind,
  iif(group_id IS NULL, NULL, lower(hex(group_id))) AS group_id FROM run;
