-- Notifications: an outbox, filled in the transaction that moves its position in the audit log.

-- A state that people are notified of, once until it ends. Primary.
CREATE TABLE notification (
  id         INTEGER PRIMARY KEY,         -- in the order in which they were found
  event_id   BLOB NOT NULL UNIQUE,        -- 16 bytes: what a receiver knows it by
  type       TEXT NOT NULL,               -- NotificationType
  state_key  TEXT NOT NULL,               -- names the state: one notification while it lasts
  created_ns INTEGER NOT NULL,            -- when the state began
  ended_ns   INTEGER,                     -- when it ended; NULL: it lasts
  data       TEXT NOT NULL                -- JSON: ids, names and times; never recorded content
) STRICT;
CREATE UNIQUE INDEX notification_lasting ON notification (state_key) WHERE ended_ns IS NULL;
CREATE INDEX notification_created ON notification (created_ns);            -- old ones are removed

-- One notification on its way to one endpoint. Primary.
CREATE TABLE notification_delivery (
  notification INTEGER NOT NULL REFERENCES notification (id) ON DELETE CASCADE,
  endpoint     TEXT NOT NULL,             -- host, and a keyed hash of the address
  status       TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
  attempts     INTEGER NOT NULL,          -- that were begun
  next_ns      INTEGER NOT NULL,          -- pending: when it is tried next
  last_ns      INTEGER,                   -- when the last attempt ended
  http_status  INTEGER,                   -- of the last response; NULL: there was none
  error        TEXT,                      -- why the last attempt failed
  PRIMARY KEY (notification, endpoint)
) STRICT, WITHOUT ROWID;
CREATE INDEX notification_due ON notification_delivery (endpoint, next_ns) WHERE status = 'pending';
CREATE INDEX notification_status ON notification_delivery (status, notification); -- lists of one status
