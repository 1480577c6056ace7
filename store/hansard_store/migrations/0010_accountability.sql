-- Accountability: the audit log, and approvals with what became of them.

-- The audit log: a closed list of types (event_types.py), one row after the other, each hashed with
-- the one before. It is for audit only: nothing is ever restored from it.
CREATE TABLE event (
  seq         INTEGER PRIMARY KEY,        -- 1, 2, 3 … without a gap; this orders, not time
  time_ns     INTEGER NOT NULL,           -- when it happened
  late        INTEGER NOT NULL,           -- 1: it was written later than it happened
  type        TEXT NOT NULL,              -- EventType
  actor       TEXT NOT NULL CHECK (actor IN ('agent', 'me', 'tool', 'system')),
  who         TEXT NOT NULL,              -- name of the actor, '' unknown
  action      TEXT NOT NULL,              -- what was done or is to be done: mostly a tool's name
  source      TEXT NOT NULL,              -- where it came from: api cli repl page embedded …
  subject     TEXT NOT NULL,              -- what it concerned: `approval:…`, `conversation:…`, …
  approval_id BLOB,
  trace_id    BLOB,
  span_id     BLOB,
  body        TEXT NOT NULL,              -- canonical JSON: ids, references, hashes; never content
  prev_hash   BLOB NOT NULL,              -- of the row before; 32 zero bytes before the first
  hash        BLOB NOT NULL               -- sha256 over all columns above (event_chain.py)
) STRICT;
CREATE INDEX event_approval ON event (approval_id, seq) WHERE approval_id IS NOT NULL; -- its history
CREATE INDEX event_run ON event (trace_id, seq) WHERE trace_id IS NOT NULL;            -- of a run
CREATE INDEX event_type ON event (type, seq);
CREATE INDEX event_actor ON event (actor, seq);
CREATE INDEX event_who ON event (who, seq);
CREATE INDEX event_action ON event (action, seq);
CREATE INDEX event_source ON event (source, seq);
CREATE INDEX event_subject ON event (subject, seq);

-- What an event refers to by a salted hash: drafts and a person's notes, without their secrets.
CREATE TABLE event_content (
  event INTEGER NOT NULL REFERENCES event (seq),
  name  TEXT NOT NULL,                    -- draft note reason error
  salt  BLOB NOT NULL,                    -- so that the hash alone tells nothing of the content
  body  TEXT NOT NULL,                    -- canonical JSON
  PRIMARY KEY (event, name)
) STRICT, WITHOUT ROWID;

-- Append-only. REPLACE deletes without a delete trigger, so an insert must continue the chain.
CREATE TRIGGER event_continues BEFORE INSERT ON event
WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM event)
  OR NEW.prev_hash <> coalesce((SELECT hash FROM event ORDER BY seq DESC LIMIT 1), zeroblob(32))
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only: an event continues the last one'); END;
CREATE TRIGGER event_stays BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only: an event is never changed'); END;
CREATE TRIGGER event_remains BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only: an event is never removed'); END;
CREATE TRIGGER event_content_continues BEFORE INSERT ON event_content
WHEN EXISTS (SELECT 1 FROM event_content WHERE event = NEW.event AND name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only: a content is never replaced'); END;
CREATE TRIGGER event_content_stays BEFORE UPDATE ON event_content
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only: a content is never changed'); END;
CREATE TRIGGER event_content_remains BEFORE DELETE ON event_content
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only: a content is never removed'); END;

-- A pending action in its current state; how it came there is in the log.
CREATE TABLE approval (
  number         INTEGER PRIMARY KEY,     -- order of creation
  approval_id    BLOB NOT NULL UNIQUE,
  status         TEXT NOT NULL
                 CHECK (status IN ('awaiting', 'revised', 'approved', 'rejected', 'expired')),
  revision       INTEGER NOT NULL,        -- which draft this is, from 1
  version        INTEGER NOT NULL,        -- rises with every change
  tool           TEXT NOT NULL,
  arguments      TEXT NOT NULL,           -- JSON without secrets, in the order of the call
  arguments_hash TEXT NOT NULL,           -- keyed, of the exact arguments
  is_redacted    INTEGER NOT NULL,
  is_exact       INTEGER NOT NULL,        -- 1: the exact arguments can be had from `arguments`
  description    TEXT NOT NULL,
  fields         TEXT NOT NULL,           -- JSON: every argument as a person is shown it
  effect         TEXT NOT NULL,           -- read write
  agent          TEXT,
  trace_id       BLOB,
  span_id        BLOB,
  channel        TEXT,
  batch_id       BLOB,
  undo_of        BLOB,                    -- the approval whose action this one undoes
  undo           TEXT,                    -- JSON: the action that would undo this one
  note           TEXT,                    -- of the last revision
  reason         TEXT,                    -- of the end
  created_ns     INTEGER NOT NULL,
  updated_ns     INTEGER NOT NULL,
  lifetime_ns    INTEGER NOT NULL,        -- a new draft lives so long again
  expires_ns     INTEGER NOT NULL,
  decided_by     TEXT,
  decided_ns     INTEGER,
  approvers      TEXT NOT NULL,           -- JSON: who is asked, in order, and how long each has
  asked          INTEGER NOT NULL,        -- how many of them have been asked
  escalates_ns   INTEGER,                 -- when the next one is asked
  policy         TEXT NOT NULL,           -- JSON: rule ids, reason, check, obligations
  proposal_key   BLOB NOT NULL UNIQUE,    -- hash of what the proposer holds
  token          BLOB,                    -- hash of what was granted; it binds the draft
  token_ends_ns  INTEGER
) STRICT;
CREATE INDEX approval_status ON approval (status, number);                       -- the inbox
CREATE INDEX approval_pending ON approval (number)                               -- what waits
  WHERE status IN ('awaiting', 'revised');
CREATE INDEX approval_channel ON approval (channel, number) WHERE channel IS NOT NULL;
CREATE INDEX approval_run ON approval (trace_id, number) WHERE trace_id IS NOT NULL;
CREATE INDEX approval_agent ON approval (agent, number) WHERE agent IS NOT NULL;
CREATE INDEX approval_tool ON approval (tool, number);
CREATE INDEX approval_batch ON approval (batch_id, number) WHERE batch_id IS NOT NULL;
CREATE INDEX approval_undo ON approval (undo_of, number) WHERE undo_of IS NOT NULL;
CREATE INDEX approval_due ON approval (expires_ns) WHERE status IN ('awaiting', 'revised');
CREATE INDEX approval_escalates ON approval (escalates_ns) WHERE escalates_ns IS NOT NULL;
CREATE INDEX approval_waits ON approval (trace_id, expires_ns)                   -- runs that wait
  WHERE trace_id IS NOT NULL AND status IN ('awaiting', 'revised');

-- The one run of an approved action: claimed before it begins, so it never runs twice.
CREATE TABLE approval_claim (
  approval_id BLOB PRIMARY KEY REFERENCES approval (approval_id),
  claim_id    BLOB NOT NULL UNIQUE,
  state       TEXT NOT NULL CHECK (state IN ('claimed', 'done', 'failed', 'unknown')),
  holder      TEXT NOT NULL,              -- the process that runs it
  lease_ns    INTEGER,                    -- it must tell how it ended until then; NULL: while it lives
  claimed_ns  INTEGER NOT NULL,
  finished_ns INTEGER,
  result_ref  TEXT,
  error       TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX approval_claim_open ON approval_claim (claimed_ns) WHERE state = 'claimed'; -- recovery
CREATE INDEX approval_claim_unknown ON approval_claim (claimed_ns) WHERE state = 'unknown'; -- review
