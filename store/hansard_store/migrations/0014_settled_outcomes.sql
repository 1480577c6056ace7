-- A person may settle an outcome that nobody knows; memory is found by what permitted it; and the
-- audit log's indexes cost tools less.

-- The one run of an approved action, as before, with who settled what nobody knew. `not_run`: a
-- person looked, and it had not happened.
CREATE TABLE approval_claim_14 (
  approval_id  BLOB PRIMARY KEY REFERENCES approval (approval_id),
  claim_id     BLOB NOT NULL UNIQUE,
  state        TEXT NOT NULL CHECK (state IN ('claimed', 'done', 'failed', 'unknown', 'not_run')),
  holder       TEXT NOT NULL,             -- the process that runs it
  lease_ns     INTEGER,                   -- it must tell how it ended until then; NULL: while it lives
  claimed_ns   INTEGER NOT NULL,
  finished_ns  INTEGER,                   -- when its program told; NULL where a person settled it
  result_ref   TEXT,
  error        TEXT,
  settled_ns   INTEGER,                  -- when a person settled it
  settled_by   TEXT,                      -- the person
  settled_note TEXT                       -- how they know, in their words
) STRICT, WITHOUT ROWID;
INSERT INTO approval_claim_14 (approval_id, claim_id, state, holder, lease_ns, claimed_ns, finished_ns,
                          result_ref, error)
  SELECT approval_id, claim_id, state, holder, lease_ns, claimed_ns, finished_ns, result_ref, error
  FROM approval_claim;
DROP TABLE approval_claim;
ALTER TABLE approval_claim_14 RENAME TO approval_claim;
CREATE INDEX approval_claim_state ON approval_claim (state, claimed_ns);         -- recovery, review, lists

-- Every index is a page more in each commit that a tool waits for. Nearly all events are calls and
-- results of tools: made by an agent or a tool, told by a program or over HTTP. Whoever looks for
-- those finds them by walking back from the newest; the indexes hold the others (events.py).
DROP INDEX event_actor;
CREATE INDEX event_actor ON event (actor, seq) WHERE actor NOT IN ('agent', 'tool');
DROP INDEX event_source;
CREATE INDEX event_source ON event (source, seq) WHERE source NOT IN ('sdk', 'api');
DROP INDEX event_who;
CREATE INDEX event_who ON event (who, seq) WHERE who <> '';

CREATE INDEX memory_approval ON memory (approval_id, id) WHERE approval_id IS NOT NULL; -- written under
