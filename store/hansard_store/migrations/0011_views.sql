-- Views for whoever reads the file with SQL: the record under the names people ask for.
-- docs/data-model.md lists them. Nothing in Hansard reads them.

CREATE VIEW runs AS SELECT
  lower(hex(trace_id)) AS run_id, name, agent_name, status, started_ns, ended_ns, span_count,
  step_count, model_calls, tool_calls, error_count, tokens_input, tokens_output, cost_usd_nano,
  conversation_id, user_id FROM run;

CREATE VIEW steps AS SELECT
  lower(hex(trace_id)) || '-' || lower(hex(span_id)) AS step_id, lower(hex(trace_id)) AS run_id,
  lower(hex(parent_span_id)) AS parent_span_id, name, role, start_ns, end_ns, status, agent_name,
  tool_name, model, tokens_input, tokens_output, cost_usd_nano FROM span;

CREATE VIEW compilation_requests AS SELECT
  compilation.id AS compilation_id, lower(hex(span.trace_id)) AS run_id, request_ref,
  compilation.hash, provider, compilation.model, budget_tokens, item_total, started_ns
  FROM compilation JOIN span ON span.id = compilation.span;

CREATE VIEW compilation_results AS SELECT
  compilation.id AS compilation_id, lower(hex(span.trace_id)) AS run_id, result_ref,
  stable_prefix_hash, budget_used, included, excluded, compressed, redacted
  FROM compilation JOIN span ON span.id = compilation.span;

CREATE VIEW context_items AS SELECT
  compilation.id AS compilation_id, receipt.ordinal, item_id, receipt.kind, decision, pass, reason,
  source_type, source, tokens_before, tokens_after, score_nano, missed_tokens, rule_ids
  FROM receipt JOIN compilation ON compilation.span = receipt.span;

CREATE VIEW memory_records AS SELECT
  lower(hex(memory_id)) AS memory_id, "key", memory_type, project, user, agent, state, confidence,
  freshness_ns, expires_ns, created_ns, writer, written_by, lower(hex(superseded_by)) AS superseded_by,
  ended_ns, ended_by, ended_reason FROM memory;

CREATE VIEW tool_events AS SELECT
  tool_event.id, lower(hex(run.trace_id)) AS run_id, call_id, tool_event.name, requested, ran
  FROM tool_event JOIN run ON run.id = tool_event.run;

CREATE VIEW policy_events AS SELECT
  id, time_ns, lower(hex(trace_id)) AS run_id, action, effect, reason_code, reason, rule_id, agent,
  subject FROM policy_check;

CREATE VIEW replay_runs AS SELECT
  lower(hex(replay_id)) AS replay_id, lower(hex(source_trace)) AS source_run_id,
  lower(hex(trace_id)) AS run_id, mode, recorded, state, reason, started_ns, ended_ns FROM replay;

CREATE VIEW pending_actions AS SELECT
  lower(hex(approval_id)) AS approval_id, status, revision, tool, arguments, description, agent,
  lower(hex(trace_id)) AS run_id, channel, created_ns, expires_ns FROM approval
  WHERE status IN ('awaiting', 'revised');
