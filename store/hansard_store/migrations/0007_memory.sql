-- Memory: what agents are to know beyond one prompt, who wrote it and who read it. All of it is
-- primary. Nothing is overwritten: a newer version supersedes, a person invalidates, and only a
-- purge removes content.

CREATE TABLE memory (
  id            INTEGER PRIMARY KEY,      -- in the order of writing
  memory_id     BLOB NOT NULL UNIQUE,     -- 16 bytes
  key           BLOB NOT NULL,            -- of namespace, type, subject and attribute; of working
                                          -- memory of run, chain and slot
  line          INTEGER NOT NULL,         -- the first version
  version       INTEGER NOT NULL,         -- in its line, from 1
  memory_type   TEXT NOT NULL,            -- see hansard_compiler/compile/models.py; working, or durable
  project       TEXT NOT NULL,            -- the namespace; '' is any
  user          TEXT NOT NULL,
  agent         TEXT NOT NULL,
  trace_id      BLOB,                     -- of working memory: its run
  chain         BLOB,                     -- of working memory: the step at the head of its chain;
                                          -- NULL: the whole run's
  slot          TEXT,                     -- of working memory
  state         TEXT NOT NULL,            -- current superseded review invalidated expired purged;
                                          -- a current one past its time is expired all the same
  confidence    REAL NOT NULL,            -- 0 to 1
  freshness_ns  INTEGER NOT NULL,         -- as of when it is so
  expires_ns    INTEGER,                  -- NULL: never
  created_ns    INTEGER NOT NULL,
  writer        TEXT NOT NULL,            -- app, approved_tool_output, …: the closed list of writers
  written_by    TEXT,                     -- a name, as told
  source_trace  BLOB,                     -- the run it comes from
  source_steps  TEXT NOT NULL,            -- JSON: ids of the steps it comes from
  approval_id   TEXT,                     -- what permitted it
  superseded_by INTEGER,
  contests      INTEGER,                  -- of one that waits for a review: what it would supersede
  ended_ns      INTEGER,                  -- of what was invalidated or purged: when, by whom, why
  ended_by      TEXT,
  ended_reason  TEXT,
  content_hmac  BLOB NOT NULL,            -- HMAC(key, what was kept); outlives a purge
  reads         INTEGER NOT NULL,
  last_read_ns  INTEGER NOT NULL          -- 0: never
) STRICT;
CREATE UNIQUE INDEX memory_current ON memory (key) WHERE state = 'current'; -- at most one; the writer's look-up
CREATE INDEX memory_key ON memory (key, id);                             -- what a new one contests
CREATE INDEX memory_line ON memory (line, version);                      -- versions
CREATE INDEX memory_run ON memory (trace_id, id) WHERE trace_id IS NOT NULL; -- working memory; deletion
CREATE INDEX memory_source ON memory (source_trace, id) WHERE source_trace IS NOT NULL; -- written from a run
CREATE INDEX memory_expiry ON memory (expires_ns) WHERE state = 'current' AND expires_ns IS NOT NULL; -- gc
CREATE INDEX memory_read ON memory (last_read_ns, id);                   -- lists by last read
-- Lists, narrowed: each filter that may be rare, in the order of the list.
CREATE INDEX memory_project ON memory (project, id) WHERE project <> '';
CREATE INDEX memory_user ON memory (user, id) WHERE user <> '';
CREATE INDEX memory_agent ON memory (agent, id) WHERE agent <> '';
CREATE INDEX memory_sort ON memory (memory_type, id);
CREATE INDEX memory_writer ON memory (writer, id);
-- All lists of one state: the conditions that no index serves are judged without reading the row.
CREATE INDEX memory_state ON memory (
  state, id, confidence, freshness_ns, expires_ns, last_read_ns, memory_type
);
CREATE INDEX memory_facet ON memory (state, memory_type, project, writer, expires_ns); -- counts beside lists

-- What a purge takes.
CREATE TABLE memory_body (
  memory    INTEGER PRIMARY KEY REFERENCES memory (id),
  subject   TEXT NOT NULL,
  attribute TEXT NOT NULL,                -- which fact about the subject; '' for the only one
  content   TEXT NOT NULL,                -- JSON: a text or an object, secrets cut out
  scope     TEXT NOT NULL,                -- JSON: what a compile's scope must meet beside the namespace
  metadata  TEXT NOT NULL,                -- JSON
  removed   TEXT NOT NULL                 -- JSON: `rule:fingerprint` of every secret cut out
) STRICT;

CREATE TABLE memory_tag (
  tag    TEXT NOT NULL,
  memory INTEGER NOT NULL REFERENCES memory (id),
  PRIMARY KEY (tag, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_tag_memory ON memory_tag (memory);                   -- the tags of one; purge

-- Every read and every write, with the step that did it. Ids only.
CREATE TABLE memory_access (
  id       INTEGER PRIMARY KEY,
  time_ns  INTEGER NOT NULL,
  kind     TEXT NOT NULL,                 -- read candidate write repeat invalidate accept expire purge
  memory   INTEGER REFERENCES memory (id), -- NULL: a read that found nothing
  trace_id BLOB,                          -- NULL: of no run
  span_id  BLOB,
  agent    TEXT,
  door     TEXT NOT NULL                  -- sdk api cli page: how it came
) STRICT;
CREATE INDEX memory_access_memory ON memory_access (memory, id);         -- who read or wrote one
CREATE INDEX memory_access_run ON memory_access (trace_id, id) WHERE trace_id IS NOT NULL; -- what a run used

-- `place` holds a token for each part of the namespace: a search meets both in the index.
CREATE VIRTUAL TABLE memory_fts USING fts5 (
  body, place, content = '', contentless_delete = 1, detail = full, tokenize = 'unicode61'
);
