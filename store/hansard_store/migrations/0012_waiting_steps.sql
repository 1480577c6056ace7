-- Steps that wait: which step asked for an approval that nobody has decided. Memory's steps by SQL.

CREATE VIEW memory_events AS SELECT
  memory_access.id, memory_access.time_ns, kind, lower(hex(memory_id)) AS memory_id,
  lower(hex(memory_access.trace_id)) AS run_id,
  lower(hex(memory_access.trace_id)) || '-' || lower(hex(memory_access.span_id)) AS step_id,
  memory_access.agent, door
  FROM memory_access LEFT JOIN memory ON memory.id = memory_access.memory;

DROP VIEW pending_actions;
CREATE VIEW pending_actions AS SELECT
  lower(hex(approval_id)) AS approval_id, status, revision, tool, arguments, description, agent,
  lower(hex(trace_id)) AS run_id, lower(hex(trace_id)) || '-' || lower(hex(span_id)) AS step_id,
  channel, created_ns, expires_ns FROM approval
  WHERE status IN ('awaiting', 'revised');

CREATE INDEX approval_step ON approval (trace_id, span_id, expires_ns)           -- steps that wait
  WHERE span_id IS NOT NULL AND status IN ('awaiting', 'revised');
