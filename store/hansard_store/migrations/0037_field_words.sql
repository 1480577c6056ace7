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

-- Ids that Hansard makes begin with the time, so people are shown their ends, and find by them.
CREATE INDEX annotation_ending ON annotation (substr(hex(annotation_id), -8)); -- one by its end
CREATE INDEX approval_ending ON approval (substr(hex(approval_id), -8));       -- the same
CREATE INDEX memory_ending ON memory (substr(hex(memory_id), -8));             -- the same
CREATE INDEX replay_ending ON replay (substr(hex(replay_id), -8));             -- the same
CREATE INDEX task_ending ON task (substr(hex(task_id), -8));                   -- the same
