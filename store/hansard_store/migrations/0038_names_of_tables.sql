-- Names of tables and columns in the words of the field; docs/renames.tsv lists them. Rows keep
-- their values; those of a renamed table are sealed again under its new name.
-- seals again: asked, idempotency_key, loss, sender_drop, span_loser, span_duplicate

-- Another report of a span that was stored already: kept for audit, never shown instead of it.
DROP INDEX span_loser_span;
ALTER TABLE span_loser RENAME TO span_duplicate;
CREATE INDEX span_duplicate_span ON span_duplicate (span); -- read and deleted with its span

-- What a sender says that it dropped: the largest count it reported.
CREATE TABLE sender_drop (
  service  TEXT NOT NULL,                 -- '' where it did not name itself
  instance TEXT NOT NULL,                 -- service.instance.id
  signal   TEXT NOT NULL,                 -- spans logs
  reason   TEXT NOT NULL,
  items    INTEGER NOT NULL,
  first_ns INTEGER NOT NULL,              -- when it was first reported
  last_ns  INTEGER NOT NULL,              -- when it last grew
  PRIMARY KEY (service, instance, signal, reason)
) STRICT, WITHOUT ROWID;
INSERT INTO sender_drop SELECT service, instance, signal, reason, items, first_ns, last_ns FROM loss;
DROP TABLE loss;

-- A process with open spans sends a keepalive; without one for a while, they get no end any more.
CREATE TABLE process_keepalive (
  resource       INTEGER PRIMARY KEY,     -- resource.id: each process of our SDK has its own
  alive_until_ns INTEGER NOT NULL
) STRICT;
CREATE INDEX process_keepalive_until ON process_keepalive (alive_until_ns); -- old ones are removed
INSERT INTO process_keepalive SELECT resource, alive_until_ns FROM pulse;
DROP TABLE pulse;

-- Requests of the sidecar that carried an Idempotency-Key: sent again, they do nothing twice.
CREATE TABLE idempotency_key (
  key      BLOB PRIMARY KEY,              -- HMAC of route and key
  request  BLOB NOT NULL,                 -- HMAC of the body: another body under one key is refused
  time_ns  INTEGER NOT NULL,
  status   INTEGER,                       -- HTTP; NULL: started, and no response known
  response TEXT                           -- JSON: ids and references, never content
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_key_time ON idempotency_key (time_ns);          -- old ones are removed
INSERT INTO idempotency_key SELECT key, request, time_ns, status, answer FROM asked;
DROP TABLE asked;

-- Turns that turned out to be traced: their records belong to that trace, and no run is made.
CREATE TABLE traced_turn (
  turn     BLOB PRIMARY KEY,              -- the trace id that a run of its own would have
  trace_id BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX traced_turn_trace ON traced_turn (trace_id);                -- is a trace a sent one
INSERT INTO traced_turn SELECT turn, trace_id FROM session_claim;
DROP TABLE session_claim;

ALTER TABLE session_log RENAME COLUMN place TO entry_type;
ALTER TABLE session_log RENAME COLUMN lane TO sequence;
ALTER TABLE session_log RENAME COLUMN loose TO lacks_prompt;
DROP INDEX session_log_loose;
CREATE INDEX session_log_lacks_prompt ON session_log (session, time_ns) WHERE lacks_prompt = 1;

ALTER TABLE run RENAME COLUMN news_ns TO last_received_ns;
