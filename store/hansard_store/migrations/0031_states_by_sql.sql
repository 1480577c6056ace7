-- By SQL a run and a step are in the state that the API names: blocked, open and no_end follow from approvals that wait
-- and from the clock, as hansard_store/runs/status.py has it (without news for 15 minutes there is no end).

DROP VIEW runs;
CREATE VIEW runs AS SELECT
  lower(hex(trace_id)) AS run_id, name, agent_name, domain, user_goal,
  CASE
    WHEN status NOT IN ('error', 'cancelled') AND EXISTS (
      SELECT 1 FROM approval WHERE approval.trace_id = run.trace_id
        AND approval.status IN ('awaiting', 'revised')
        AND approval.expires_ns > (julianday('now') - 2440587.5) * 86400e9) THEN 'blocked'
    WHEN status = 'open' AND coalesce(alive_until_ns, news_ns + 900000000000)
      < (julianday('now') - 2440587.5) * 86400e9 THEN 'no_end'
    ELSE status
  END AS status,
  started_ns, ended_ns, span_count, step_count, model_calls, tool_calls, error_count, tokens_input, tokens_output,
  cost_usd_nano, conversation_id, user_id, iif(work_count > 0, 'agent', 'other') AS kind,
  iif(group_id IS NULL, NULL, lower(hex(group_id))) AS group_id FROM run;

-- Flags: 64 a time that is kept in the record alone, 4096 an error, 32768 cancelled (hansard_store/steps/flags.py).
DROP VIEW steps;
CREATE VIEW steps AS SELECT
  lower(hex(span.trace_id)) || '-' || lower(hex(span_id)) AS step_id, lower(hex(span.trace_id)) AS run_id,
  lower(hex(parent_span_id)) AS parent_span_id, span.name, role, start_ns, end_ns,
  CASE
    WHEN (end_ns IS NOT NULL OR flags & 64) AND flags & 32768 THEN 'cancelled'
    WHEN (end_ns IS NOT NULL OR flags & 64) AND (flags & 4096 OR span.status = 2) THEN 'error'
    WHEN EXISTS (
      SELECT 1 FROM approval
      WHERE approval.trace_id = span.trace_id AND approval.span_id = span.span_id
        AND approval.status IN ('awaiting', 'revised')
        AND approval.expires_ns > (julianday('now') - 2440587.5) * 86400e9) THEN 'blocked'
    WHEN end_ns IS NULL AND NOT flags & 64 THEN iif(
      (SELECT coalesce(run.alive_until_ns, run.news_ns + 900000000000) FROM run WHERE run.id = span.run)
        < (julianday('now') - 2440587.5) * 86400e9, 'no_end', 'open')
    WHEN span.status = 1 THEN 'ok'
    ELSE 'unset'
  END AS status,
  span.agent_name, tool_name, model, span.tokens_input, span.tokens_output, span.cost_usd_nano FROM span;
