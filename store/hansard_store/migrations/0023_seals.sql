-- Seals: what holds each primary row to the chain of the audit log (audit/sealer.py). The leaf of a row is
-- a keyed hash of what must not change in it. Rows of tables that ingest fills, in the order of their ids:
CREATE TABLE seal_block (
  table_name TEXT NOT NULL,
  block      INTEGER NOT NULL,            -- of ids from 512 times this number on
  leaves     BLOB NOT NULL,               -- 16 bytes a row, in order of id; zeros where there is none
  PRIMARY KEY (table_name, block)
) STRICT, WITHOUT ROWID;

-- Rows of all other primary tables. 256 rows of this table are hashed together.
CREATE TABLE seal_row (
  id         INTEGER PRIMARY KEY,
  table_name TEXT NOT NULL,
  row_key    TEXT NOT NULL,               -- the row's primary key, as SQL literals
  after      INTEGER NOT NULL,            -- number of the last seal's event before it was written
  leaf       BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX seal_row_key ON seal_row (table_name, row_key);              -- a row's leaf

-- Changes since, each written by a temporary trigger in the transaction that it is of.
CREATE TABLE seal_due (
  id         INTEGER PRIMARY KEY,
  table_name TEXT NOT NULL,
  row_key    TEXT NOT NULL,
  after      INTEGER NOT NULL,
  mark       BLOB NOT NULL                -- the row's leaf, zeros: it is gone; and a signature
) STRICT;
CREATE INDEX event_told ON event (seq) WHERE type <> 'record.sealed';            -- lists of events
