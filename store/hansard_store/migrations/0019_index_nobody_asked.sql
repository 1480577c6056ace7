-- What was said is compared by match_hash inside one run, never looked for in all of them: of the
-- pages that a transaction of ingest writes, one in thirteen was of this index.
DROP INDEX text_match;
