-- Names of columns in the words of the field; docs/renames.tsv lists them. Rows keep their values.
-- seals again: annotation, claim_verdict, memory_access, task
ALTER TABLE annotation RENAME COLUMN door TO origin;
ALTER TABLE claim_verdict RENAME COLUMN said TO sentence;
ALTER TABLE claim_verdict RENAME COLUMN why TO reason;
ALTER TABLE task RENAME COLUMN decided_door TO decided_origin;

DROP VIEW memory_events;
ALTER TABLE memory_access RENAME COLUMN door TO origin;
CREATE VIEW memory_events AS SELECT
  memory_access.id, memory_access.time_ns, kind, lower(hex(memory_id)) AS memory_id,
  lower(hex(memory_access.trace_id)) AS run_id,
  lower(hex(memory_access.trace_id)) || '-' || lower(hex(memory_access.span_id)) AS step_id,
  memory_access.agent, origin
  FROM memory_access LEFT JOIN memory ON memory.id = memory_access.memory;
