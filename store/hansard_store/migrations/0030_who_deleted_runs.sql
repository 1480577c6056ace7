-- Who deleted a run by hand: the name of the user of the command line. NULL where a setting did, and of before.
ALTER TABLE tombstone ADD COLUMN deleted_by TEXT;
