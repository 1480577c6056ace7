-- Requests of the sidecar that carried an Idempotency-Key: sent again, they do nothing twice.

CREATE TABLE asked (
  key      BLOB PRIMARY KEY,              -- HMAC of route and key
  request  BLOB NOT NULL,                 -- HMAC of the body: another body under one key is refused
  time_ns  INTEGER NOT NULL,
  status   INTEGER,                       -- HTTP; NULL: begun, and no answer known
  answer   TEXT                           -- JSON: ids and references, never content
) STRICT, WITHOUT ROWID;
CREATE INDEX asked_time ON asked (time_ns);                              -- old ones are removed
