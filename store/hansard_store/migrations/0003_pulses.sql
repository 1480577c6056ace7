-- Which processes live, and what they lost on the way here (DESIGN §6, open spans).

-- A process with open spans sends a pulse; without one for a while, they get no end any more.
CREATE TABLE pulse (
  resource       INTEGER PRIMARY KEY,     -- resource.id: each process of our SDK has its own
  alive_until_ns INTEGER NOT NULL
) STRICT;
CREATE INDEX pulse_alive ON pulse (alive_until_ns);                      -- old ones are removed
-- Of the processes with open spans in a run, the latest; NULL where none ever sent a pulse.
ALTER TABLE run ADD COLUMN alive_until_ns INTEGER;
CREATE INDEX span_open ON span (trace_id, resource) WHERE end_ns IS NULL; -- who still has some

-- What a sender says that it lost: the largest count it ever told.
CREATE TABLE loss (
  service  TEXT NOT NULL,                 -- '' where it did not name itself
  instance TEXT NOT NULL,                 -- service.instance.id
  signal   TEXT NOT NULL,                 -- spans logs
  reason   TEXT NOT NULL,
  items    INTEGER NOT NULL,
  first_ns INTEGER NOT NULL,              -- when it was first told
  last_ns  INTEGER NOT NULL,              -- when it last grew
  PRIMARY KEY (service, instance, signal, reason)
) STRICT, WITHOUT ROWID;
