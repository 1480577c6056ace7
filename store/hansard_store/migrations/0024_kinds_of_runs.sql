-- How many steps of a run are an agent's work: any role but `other`, of MCP's messages those that name a
-- tool. A run with none of them is of kind `other` (an HTTP request, a query), any other of kind `agent`.
ALTER TABLE run ADD COLUMN work_count INTEGER NOT NULL DEFAULT 0;
UPDATE run SET work_count = worked.steps
FROM (
  SELECT run, count(*) AS steps FROM span
  WHERE role <> 'other' AND (role <> 'mcp' OR tool_name IS NOT NULL) GROUP BY run
) AS worked
WHERE worked.run = run.id;

DROP VIEW runs;
CREATE VIEW runs AS SELECT
  lower(hex(trace_id)) AS run_id, name, agent_name, status, started_ns, ended_ns, span_count,
  step_count, model_calls, tool_calls, error_count, tokens_input, tokens_output, cost_usd_nano,
  conversation_id, user_id, iif(work_count > 0, 'agent', 'other') AS kind FROM run;

CREATE INDEX run_other ON run (id) WHERE work_count = 0;                 -- lists of them, how many are hidden
CREATE INDEX run_agent_started ON run (started_ns, id) WHERE work_count > 0;             -- lists of agents'
CREATE INDEX run_agent_duration ON run (ended_ns - started_ns, id) WHERE work_count > 0; -- runs, sorted
CREATE INDEX run_agent_cost ON run (coalesce(cost_usd_nano, -1), id) WHERE work_count > 0;
CREATE INDEX run_agent ON run (id) WHERE work_count > 0;
