-- How the name of who wrote a memory is known. Rows from before have NULL there: nobody was authenticated.
ALTER TABLE memory ADD COLUMN written_method TEXT;       -- token session claimed, of written_by
ALTER TABLE memory ADD COLUMN written_principal TEXT;    -- the authenticated principal that sent it

DROP VIEW memory_records;
CREATE VIEW memory_records AS SELECT
  lower(hex(memory_id)) AS memory_id, "key", memory_type, project, user, agent, state, confidence,
  freshness_ns, expires_ns, created_ns, writer, written_by, written_method, written_principal,
  lower(hex(superseded_by)) AS superseded_by, ended_ns, ended_by, ended_reason FROM memory;
