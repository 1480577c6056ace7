-- Transcripts: the append-only log of what was said in a conversation, and folds over it. Rows are
-- never changed or removed, which triggers see to, REPLACE included: it deletes without delete
-- triggers, so an insert that would hit a row is refused itself.

CREATE TABLE conversation (
  number     INTEGER PRIMARY KEY,         -- in the order they were made
  id         BLOB NOT NULL UNIQUE,        -- 16 bytes, shown as conv_<hex>
  name       TEXT NOT NULL UNIQUE,        -- gen_ai.conversation.id of its spans
  created_at INTEGER NOT NULL             -- ns
) STRICT;

-- The tree of sub-agents: each has a log of its own, in tables of its own.
CREATE TABLE branch (
  number          INTEGER PRIMARY KEY,
  id              BLOB NOT NULL UNIQUE,   -- 16 bytes, shown as br_<hex>
  conversation_id BLOB NOT NULL REFERENCES conversation (id), -- the line at the root of the tree
  parent_id       BLOB REFERENCES branch (id),                -- NULL: grew from the line
  parent_position INTEGER NOT NULL,       -- last message of its parent when it began; -1: none
  name            TEXT NOT NULL,          -- of the sub-agent
  created_at      INTEGER NOT NULL,
  trace_id        BLOB,
  span_id         BLOB
) STRICT;
CREATE INDEX branch_conversation ON branch (conversation_id, number);

-- That a sub-agent ended; messages after this position say that it was resumed.
CREATE TABLE branch_end (
  number     INTEGER PRIMARY KEY,
  branch_id  BLOB NOT NULL REFERENCES branch (id),
  position   INTEGER NOT NULL,
  status     TEXT NOT NULL CHECK (status IN ('done', 'failed')),
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX branch_end_branch ON branch_end (branch_id, number);

-- The line of a conversation.
CREATE TABLE transcript_message (
  id              BLOB PRIMARY KEY NOT NULL, -- 16 bytes; sent again, it is known
  conversation_id BLOB NOT NULL REFERENCES conversation (id),
  position        INTEGER NOT NULL,       -- 0, 1, 2 …, assigned by the insert
  role            TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
  content         TEXT NOT NULL,          -- JSON: the message without its role
  created_at      INTEGER NOT NULL,
  schema_version  INTEGER NOT NULL,       -- of content
  trace_id        BLOB,                   -- the step it was appended in
  span_id         BLOB,
  UNIQUE (conversation_id, position)
) STRICT;

-- A fold: the summary stands for all up to its position.
CREATE TABLE checkpoint (
  number           INTEGER PRIMARY KEY,   -- the newest of a log counts
  conversation_id  BLOB NOT NULL REFERENCES conversation (id),
  message_position INTEGER NOT NULL,
  summary          TEXT NOT NULL,
  actor            TEXT NOT NULL,
  created_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX checkpoint_log ON checkpoint (conversation_id, number);

-- What views and prompts show in place of a message; the newest of a message counts.
CREATE TABLE transcript_mark (
  number          INTEGER PRIMARY KEY,
  conversation_id BLOB NOT NULL,
  position        INTEGER NOT NULL,
  kind            TEXT NOT NULL CHECK (kind IN ('redacted', 'superseded', 'restored')),
  superseded_by   INTEGER,                -- position of the correction
  reason          TEXT NOT NULL,
  actor           TEXT NOT NULL,
  created_at      INTEGER NOT NULL,
  FOREIGN KEY (conversation_id, position) REFERENCES transcript_message (conversation_id, position)
) STRICT;
CREATE INDEX transcript_mark_log ON transcript_mark (conversation_id, position);

-- The same for a sub-agent.
CREATE TABLE branch_message (
  id              BLOB PRIMARY KEY NOT NULL, -- 16 bytes; sent again, it is known
  branch_id       BLOB NOT NULL REFERENCES branch (id),
  position        INTEGER NOT NULL,       -- 0, 1, 2 …, assigned by the insert
  role            TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
  content         TEXT NOT NULL,          -- JSON: the message without its role
  created_at      INTEGER NOT NULL,
  schema_version  INTEGER NOT NULL,       -- of content
  trace_id        BLOB,                   -- the step it was appended in
  span_id         BLOB,
  UNIQUE (branch_id, position)
) STRICT;

-- A fold: the summary stands for all up to its position.
CREATE TABLE branch_checkpoint (
  number           INTEGER PRIMARY KEY,   -- the newest of a log counts
  branch_id        BLOB NOT NULL REFERENCES branch (id),
  message_position INTEGER NOT NULL,
  summary          TEXT NOT NULL,
  actor            TEXT NOT NULL,
  created_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX branch_checkpoint_log ON branch_checkpoint (branch_id, number);

-- What views and prompts show in place of a message; the newest of a message counts.
CREATE TABLE branch_mark (
  number          INTEGER PRIMARY KEY,
  branch_id       BLOB NOT NULL,
  position        INTEGER NOT NULL,
  kind            TEXT NOT NULL CHECK (kind IN ('redacted', 'superseded', 'restored')),
  superseded_by   INTEGER,                -- position of the correction
  reason          TEXT NOT NULL,
  actor           TEXT NOT NULL,
  created_at      INTEGER NOT NULL,
  FOREIGN KEY (branch_id, position) REFERENCES branch_message (branch_id, position)
) STRICT;
CREATE INDEX branch_mark_log ON branch_mark (branch_id, position);

-- Which messages need a payload: the originals of clipped results, and media. gc goes by it.
CREATE TABLE transcript_payload (
  payload BLOB NOT NULL,                  -- digest as stored
  message BLOB NOT NULL,                  -- id, in transcript_message or branch_message
  PRIMARY KEY (payload, message)
) STRICT, WITHOUT ROWID;

-- A copy of a folded part, written to a file and read back. The rows stay.
CREATE TABLE transcript_archive (
  number          INTEGER PRIMARY KEY,
  conversation_id BLOB NOT NULL REFERENCES conversation (id),
  last_position   INTEGER NOT NULL,       -- from 0 to here
  sha256          BLOB NOT NULL,          -- of the file
  size            INTEGER NOT NULL,       -- bytes
  actor           TEXT NOT NULL,
  created_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX transcript_archive_log ON transcript_archive (conversation_id, number);

CREATE TRIGGER conversation_kept_as_is BEFORE UPDATE ON conversation
BEGIN SELECT raise(ABORT, 'conversation is append-only'); END;
CREATE TRIGGER conversation_kept BEFORE DELETE ON conversation
BEGIN SELECT raise(ABORT, 'conversation is append-only'); END;
CREATE TRIGGER conversation_not_replaced BEFORE INSERT ON conversation
WHEN EXISTS (SELECT 1 FROM conversation WHERE number = NEW.number)
  OR EXISTS (SELECT 1 FROM conversation WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM conversation WHERE name = NEW.name)
BEGIN SELECT raise(ABORT, 'conversation is append-only'); END;

CREATE TRIGGER branch_kept_as_is BEFORE UPDATE ON branch
BEGIN SELECT raise(ABORT, 'branch is append-only'); END;
CREATE TRIGGER branch_kept BEFORE DELETE ON branch
BEGIN SELECT raise(ABORT, 'branch is append-only'); END;
CREATE TRIGGER branch_not_replaced BEFORE INSERT ON branch
WHEN EXISTS (SELECT 1 FROM branch WHERE number = NEW.number)
  OR EXISTS (SELECT 1 FROM branch WHERE id = NEW.id)
BEGIN SELECT raise(ABORT, 'branch is append-only'); END;

CREATE TRIGGER transcript_message_kept_as_is BEFORE UPDATE ON transcript_message
BEGIN SELECT raise(ABORT, 'transcript_message is append-only'); END;
CREATE TRIGGER transcript_message_kept BEFORE DELETE ON transcript_message
BEGIN SELECT raise(ABORT, 'transcript_message is append-only'); END;
CREATE TRIGGER transcript_message_not_replaced BEFORE INSERT ON transcript_message
WHEN EXISTS (SELECT 1 FROM transcript_message WHERE rowid = NEW.rowid)
  OR EXISTS (SELECT 1 FROM transcript_message WHERE id = NEW.id)
BEGIN SELECT raise(ABORT, 'transcript_message is append-only'); END;
CREATE TRIGGER transcript_message_without_gaps BEFORE INSERT ON transcript_message
WHEN NEW.position <> coalesce(
  (SELECT max(position) + 1 FROM transcript_message WHERE conversation_id = NEW.conversation_id), 0)
BEGIN SELECT raise(ABORT, 'positions of transcript_message follow each other'); END;

CREATE TRIGGER checkpoint_kept_as_is BEFORE UPDATE ON checkpoint
BEGIN SELECT raise(ABORT, 'checkpoint is append-only'); END;
CREATE TRIGGER checkpoint_kept BEFORE DELETE ON checkpoint
BEGIN SELECT raise(ABORT, 'checkpoint is append-only'); END;
CREATE TRIGGER checkpoint_not_replaced BEFORE INSERT ON checkpoint
WHEN EXISTS (SELECT 1 FROM checkpoint WHERE number = NEW.number)
BEGIN SELECT raise(ABORT, 'checkpoint is append-only'); END;
CREATE TRIGGER checkpoint_at_head BEFORE INSERT ON checkpoint
WHEN NEW.message_position IS NOT (
  SELECT max(position) FROM transcript_message WHERE conversation_id = NEW.conversation_id)
BEGIN SELECT raise(ABORT, 'a fold is written at the head of its log'); END;

CREATE TRIGGER transcript_mark_kept_as_is BEFORE UPDATE ON transcript_mark
BEGIN SELECT raise(ABORT, 'transcript_mark is append-only'); END;
CREATE TRIGGER transcript_mark_kept BEFORE DELETE ON transcript_mark
BEGIN SELECT raise(ABORT, 'transcript_mark is append-only'); END;
CREATE TRIGGER transcript_mark_not_replaced BEFORE INSERT ON transcript_mark
WHEN EXISTS (SELECT 1 FROM transcript_mark WHERE number = NEW.number)
BEGIN SELECT raise(ABORT, 'transcript_mark is append-only'); END;

CREATE TRIGGER branch_message_kept_as_is BEFORE UPDATE ON branch_message
BEGIN SELECT raise(ABORT, 'branch_message is append-only'); END;
CREATE TRIGGER branch_message_kept BEFORE DELETE ON branch_message
BEGIN SELECT raise(ABORT, 'branch_message is append-only'); END;
CREATE TRIGGER branch_message_not_replaced BEFORE INSERT ON branch_message
WHEN EXISTS (SELECT 1 FROM branch_message WHERE rowid = NEW.rowid)
  OR EXISTS (SELECT 1 FROM branch_message WHERE id = NEW.id)
BEGIN SELECT raise(ABORT, 'branch_message is append-only'); END;
CREATE TRIGGER branch_message_without_gaps BEFORE INSERT ON branch_message
WHEN NEW.position <> coalesce(
  (SELECT max(position) + 1 FROM branch_message WHERE branch_id = NEW.branch_id), 0)
BEGIN SELECT raise(ABORT, 'positions of branch_message follow each other'); END;

CREATE TRIGGER branch_checkpoint_kept_as_is BEFORE UPDATE ON branch_checkpoint
BEGIN SELECT raise(ABORT, 'branch_checkpoint is append-only'); END;
CREATE TRIGGER branch_checkpoint_kept BEFORE DELETE ON branch_checkpoint
BEGIN SELECT raise(ABORT, 'branch_checkpoint is append-only'); END;
CREATE TRIGGER branch_checkpoint_not_replaced BEFORE INSERT ON branch_checkpoint
WHEN EXISTS (SELECT 1 FROM branch_checkpoint WHERE number = NEW.number)
BEGIN SELECT raise(ABORT, 'branch_checkpoint is append-only'); END;
CREATE TRIGGER branch_checkpoint_at_head BEFORE INSERT ON branch_checkpoint
WHEN NEW.message_position IS NOT (
  SELECT max(position) FROM branch_message WHERE branch_id = NEW.branch_id)
BEGIN SELECT raise(ABORT, 'a fold is written at the head of its log'); END;

CREATE TRIGGER branch_mark_kept_as_is BEFORE UPDATE ON branch_mark
BEGIN SELECT raise(ABORT, 'branch_mark is append-only'); END;
CREATE TRIGGER branch_mark_kept BEFORE DELETE ON branch_mark
BEGIN SELECT raise(ABORT, 'branch_mark is append-only'); END;
CREATE TRIGGER branch_mark_not_replaced BEFORE INSERT ON branch_mark
WHEN EXISTS (SELECT 1 FROM branch_mark WHERE number = NEW.number)
BEGIN SELECT raise(ABORT, 'branch_mark is append-only'); END;

CREATE TRIGGER branch_end_kept_as_is BEFORE UPDATE ON branch_end
BEGIN SELECT raise(ABORT, 'branch_end is append-only'); END;
CREATE TRIGGER branch_end_kept BEFORE DELETE ON branch_end
BEGIN SELECT raise(ABORT, 'branch_end is append-only'); END;
CREATE TRIGGER branch_end_not_replaced BEFORE INSERT ON branch_end
WHEN EXISTS (SELECT 1 FROM branch_end WHERE number = NEW.number)
BEGIN SELECT raise(ABORT, 'branch_end is append-only'); END;

CREATE TRIGGER transcript_archive_kept_as_is BEFORE UPDATE ON transcript_archive
BEGIN SELECT raise(ABORT, 'transcript_archive is append-only'); END;
CREATE TRIGGER transcript_archive_kept BEFORE DELETE ON transcript_archive
BEGIN SELECT raise(ABORT, 'transcript_archive is append-only'); END;
CREATE TRIGGER transcript_archive_not_replaced BEFORE INSERT ON transcript_archive
WHEN EXISTS (SELECT 1 FROM transcript_archive WHERE number = NEW.number)
BEGIN SELECT raise(ABORT, 'transcript_archive is append-only'); END;
