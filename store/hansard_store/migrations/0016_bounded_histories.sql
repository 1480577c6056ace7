-- Who makes a replay, by a lock that it holds: the number of a process is given again to later ones.
ALTER TABLE replay DROP COLUMN owner;
ALTER TABLE replay ADD COLUMN holder TEXT NOT NULL DEFAULT ''; -- folder of its lock; '' none

-- Of one run or step the newest that ended are kept (annotation_rows.py): a score that is given every
-- second would grow for ever. What went is counted.
CREATE TABLE annotation_pruned (
  trace_id BLOB NOT NULL,                 -- the run or step, as in annotation
  span_id  BLOB NOT NULL,
  side     INTEGER NOT NULL,
  count    INTEGER NOT NULL,              -- annotations of it that were replaced or withdrawn, and went
  PRIMARY KEY (trace_id, span_id, side)
) STRICT, WITHOUT ROWID;
