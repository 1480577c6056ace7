-- The first schema. docs/data-model.md says of each table whether it is primary (cannot be made
-- again) or derived (`hansard rebuild` makes it again from span_record and log_record).
--
-- Conventions: times are integer nanoseconds since the Unix epoch, `_usd_nano` is 1e-9 US dollars,
-- ids of other systems are BLOBs, `record` columns are packed by hansard_store/ingest/otlp_records.py.

-- Small facts about this store: epoch (bumped by gc, so caches of digests are thrown away),
-- created_ns, retention mode in force.
CREATE TABLE setting (
  name  TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO setting (name, value) VALUES ('epoch', 0);

-- ------------------------------------------------------------------ what came in (primary)

CREATE TABLE resource (
  id           INTEGER PRIMARY KEY,
  digest       BLOB NOT NULL UNIQUE,      -- sha256 of `record`
  service_name TEXT,
  record       BLOB NOT NULL              -- ResourceSpans with only resource and schema_url
) STRICT;

CREATE TABLE scope (
  id      INTEGER PRIMARY KEY,
  digest  BLOB NOT NULL UNIQUE,
  name    TEXT NOT NULL,
  version TEXT NOT NULL,
  record  BLOB NOT NULL                   -- ScopeSpans with only scope and schema_url
) STRICT;

-- The skeleton of a span: what lists and trees need. Derived but for its identity; the whole span
-- is in span_record, apart, so that a tree of 50,000 rows reads few pages.
CREATE TABLE span (
  id             INTEGER PRIMARY KEY,     -- the order of ingest
  trace_id       BLOB NOT NULL,
  span_id        BLOB NOT NULL,
  side           INTEGER NOT NULL,        -- 1 = the SERVER half of an id shared with a CLIENT
  run            INTEGER NOT NULL REFERENCES run (id),
  parent_span_id BLOB,                    -- NULL: a root
  name           TEXT NOT NULL,           -- as sent
  label          TEXT,                    -- a better name, where the dialect has one
  kind           INTEGER NOT NULL,        -- OTLP SpanKind
  start_ns       INTEGER,                 -- NULL: sent as 0 or not below 2^63
  end_ns         INTEGER,                 -- NULL: still open (0), or not below 2^63
  sort_ns        INTEGER NOT NULL,        -- start, else end, else when it was received
  status         INTEGER NOT NULL,        -- OTLP StatusCode
  role           TEXT NOT NULL,
  dialect        TEXT NOT NULL,
  flags          INTEGER NOT NULL,        -- hansard_store/steps/flags.py
  resource       INTEGER NOT NULL REFERENCES resource (id),
  scope          INTEGER NOT NULL REFERENCES scope (id),
  agent_name     TEXT,
  tool_name      TEXT,
  tool_call_id   TEXT,
  model          TEXT,
  tokens_input       INTEGER,             -- of this step's own call, or the sum it repeats
  tokens_output      INTEGER,
  tokens_cache_read  INTEGER,
  tokens_cache_write INTEGER,
  tokens_reasoning   INTEGER,
  cost_usd_nano      INTEGER,
  summary        TEXT,                    -- a few words beside the name: error, arguments, answer
  notes          TEXT,                    -- a line each: what a person should know of it
  derived_version INTEGER NOT NULL        -- of the code that made what is derived; 0: nothing is
) STRICT;
-- identity on ingest; all spans of a run, in one range
CREATE UNIQUE INDEX span_identity ON span (trace_id, span_id, side);
-- "longer than 71 of the last 100 of its name"; filters by tool and model go through run_facet
CREATE INDEX span_name ON span (name, id);
-- children of a span: whether a call that came later describes the same call
CREATE INDEX span_parent ON span (trace_id, parent_span_id, sort_ns)
  WHERE parent_span_id IS NOT NULL;

CREATE TABLE span_record (
  span            INTEGER PRIMARY KEY REFERENCES span (id),
  mac             BLOB NOT NULL,          -- HMAC of the span as received, before any redaction
  received_ns     INTEGER NOT NULL,
  attribute_count INTEGER NOT NULL,       -- of two reports, the one that says more is shown
  notes           TEXT,                   -- a line each: what was repaired or dropped
  record          BLOB NOT NULL
) STRICT;

-- Another report of a span that was stored already: kept for audit, never shown in its place.
CREATE TABLE span_loser (
  id          INTEGER PRIMARY KEY,
  span        INTEGER NOT NULL REFERENCES span (id),
  mac         BLOB NOT NULL,
  received_ns INTEGER NOT NULL,
  record      BLOB NOT NULL
) STRICT;
CREATE INDEX span_loser_span ON span_loser (span); -- read and deleted with its span

CREATE TABLE log_record (
  id             INTEGER PRIMARY KEY,
  mac            BLOB NOT NULL,           -- HMAC of record, resource and scope as received
  ordinal        INTEGER NOT NULL,        -- nth equal record of one request
  trace_id       BLOB,                    -- NULL: not about a trace
  span_id        BLOB,
  time_ns        INTEGER NOT NULL,        -- time, else observed time, else when received
  received_ns    INTEGER NOT NULL,
  severity       INTEGER NOT NULL,
  event_name     TEXT,
  resource       INTEGER NOT NULL REFERENCES resource (id),
  scope          INTEGER NOT NULL REFERENCES scope (id),
  session        TEXT,                    -- session.id or conversation.id, for log-only agents
  body_text      TEXT,                    -- first words of the body, for lists
  notes          TEXT,
  record         BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX log_record_identity ON log_record (mac, ordinal);
CREATE INDEX log_record_step ON log_record (trace_id, span_id) WHERE trace_id IS NOT NULL;
CREATE INDEX log_record_session ON log_record (session, time_ns) WHERE session IS NOT NULL;

CREATE TABLE metric_point (
  id          INTEGER PRIMARY KEY,
  mac         BLOB NOT NULL,
  ordinal     INTEGER NOT NULL,
  name        TEXT NOT NULL,
  unit        TEXT NOT NULL,
  kind        TEXT NOT NULL,              -- gauge sum histogram exponential_histogram summary none
  time_ns     INTEGER NOT NULL,
  received_ns INTEGER NOT NULL,
  value       REAL,                       -- of gauges and sums; the sum of histograms
  resource    INTEGER NOT NULL REFERENCES resource (id),
  scope       INTEGER NOT NULL REFERENCES scope (id),
  record      BLOB NOT NULL               -- a Metric with this one point
) STRICT;
CREATE UNIQUE INDEX metric_point_identity ON metric_point (mac, ordinal);
CREATE INDEX metric_point_name ON metric_point (name, time_ns);

-- ------------------------------------------------------------------ bytes by digest (primary)

-- Large values and the elements of JSON arrays, each stored once.
CREATE TABLE content (
  id     INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,            -- sha256 of the bytes
  size   INTEGER NOT NULL,                -- bytes, before packing
  body   BLOB NOT NULL                    -- packed
) STRICT;

-- A JSON array that was cut at its elements, as a linked list from its last element back. The
-- array a conversation sends next turn shares all nodes but the new ones: growth is linear.
CREATE TABLE content_list (
  id      INTEGER PRIMARY KEY,
  parent  INTEGER NOT NULL,               -- 0: the first element
  content INTEGER NOT NULL REFERENCES content (id)
) STRICT;
CREATE UNIQUE INDEX content_list_node ON content_list (parent, content);
CREATE INDEX content_list_content ON content_list (content);             -- gc: is it still in a list

-- What needs a content; deletion removes uses, gc what nothing uses. Negative numbers are no runs:
-- even ones are twice the id of a row of `text` whose body names the content, odd ones twice the
-- id of a log record, less one: a log may come before its run, or never have one.
CREATE TABLE content_use (
  content INTEGER NOT NULL,
  run     INTEGER NOT NULL,
  PRIMARY KEY (content, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX content_use_run ON content_use (run);                       -- deletion
CREATE TABLE content_list_use (
  list INTEGER NOT NULL,
  run  INTEGER NOT NULL,
  PRIMARY KEY (list, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX content_list_use_run ON content_list_use (run);             -- deletion

-- Bytes that spans name by reference.
CREATE TABLE payload (
  digest      BLOB PRIMARY KEY,           -- sha256 of the stored bytes
  size        INTEGER NOT NULL,
  media_type  TEXT NOT NULL,
  received_ns INTEGER NOT NULL,
  body        BLOB                        -- NULL: in blobs/ab/cd…, written before this row
) STRICT, WITHOUT ROWID;
-- A payload whose bytes were redacted at retention is stored under its new digest.
CREATE TABLE payload_alias (
  sent   BLOB PRIMARY KEY,
  stored BLOB NOT NULL REFERENCES payload (digest),
  reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Which runs name a payload, by the digest in its reference.
CREATE TABLE payload_use (
  payload BLOB NOT NULL,
  run     INTEGER NOT NULL,
  PRIMARY KEY (payload, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX payload_use_run ON payload_use (run);                       -- deletion

-- What was removed before anything was stored.
CREATE TABLE redaction (
  id     INTEGER PRIMARY KEY,
  signal TEXT NOT NULL,                   -- traces logs metrics payload
  item   INTEGER NOT NULL,                -- id in that signal's table
  rule   TEXT NOT NULL,
  field  TEXT NOT NULL,
  count  INTEGER NOT NULL
) STRICT;
CREATE INDEX redaction_item ON redaction (signal, item);

-- ------------------------------------------------------------------ projections (derived)

CREATE TABLE run (
  id              INTEGER PRIMARY KEY,    -- first_seen_seq: the default order of lists
  trace_id        BLOB NOT NULL UNIQUE,
  change_seq      INTEGER NOT NULL,       -- given on every insert and update, rising over all runs
  version         INTEGER NOT NULL,       -- rises with every change of this run
  synthetic       INTEGER NOT NULL DEFAULT 0, -- 1: made from logs that carry no trace id
  pinned          INTEGER NOT NULL DEFAULT 0,
  root_span       INTEGER,                -- span.id that gives name and status
  root_rank       INTEGER NOT NULL DEFAULT 9, -- 0 root agent, 1 root, 2 orphan
  name            TEXT NOT NULL DEFAULT '',
  agent_name      TEXT,
  domain          TEXT,
  status          TEXT NOT NULL DEFAULT 'ok', -- ok error open, of the root
  times_rank      INTEGER NOT NULL DEFAULT 2, -- 0 sane times, 1 odd ones for want of better, 2 none
  started_ns      INTEGER NOT NULL,
  ended_ns        INTEGER NOT NULL,       -- the latest end seen
  news_ns         INTEGER NOT NULL,       -- when something of it last arrived
  span_count      INTEGER NOT NULL DEFAULT 0,
  step_count      INTEGER NOT NULL DEFAULT 0,  -- spans that are no duplicate and not folded
  open_count      INTEGER NOT NULL DEFAULT 0,
  error_count     INTEGER NOT NULL DEFAULT 0,
  model_calls     INTEGER NOT NULL DEFAULT 0,
  tool_calls      INTEGER NOT NULL DEFAULT 0,
  tokens_input       INTEGER,             -- NULL: no call reported any
  tokens_output      INTEGER,
  tokens_cache_read  INTEGER,
  tokens_cache_write INTEGER,
  tokens_reasoning   INTEGER,
  cost_usd_nano      INTEGER,
  conversation_id TEXT,
  user_id         TEXT,
  first_input     TEXT,                   -- first user words
  last_output     TEXT,
  -- span.id of who told it: of each fact the earliest span's word holds, of last_output the latest
  agent_span        INTEGER,
  domain_span       INTEGER,
  conversation_span INTEGER,
  user_span         INTEGER,
  first_input_span  INTEGER,
  last_output_span  INTEGER,
  call_scope      INTEGER,                -- scope that tells of its calls; 0: more than one
  has_receipts    INTEGER NOT NULL DEFAULT 0,
  notes           TEXT NOT NULL DEFAULT '{}' -- JSON: note -> how many spans
) STRICT;
CREATE INDEX run_change ON run (change_seq);                             -- live tail
CREATE INDEX run_started ON run (started_ns, id);                        -- since/until, sort
CREATE INDEX run_status ON run (status, id);                             -- errors, open
CREATE INDEX run_conversation ON run (conversation_id, started_ns) WHERE conversation_id IS NOT NULL;
CREATE INDEX run_user ON run (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX run_talk ON run (id, conversation_id) WHERE conversation_id IS NOT NULL; -- conversations
CREATE INDEX run_duration ON run (ended_ns - started_ns, id);            -- sort, min_duration_ms
CREATE INDEX run_cost ON run (coalesce(cost_usd_nano, -1), id);          -- sort, min_cost

-- What a list of runs can be narrowed by: kind is one of agent model tool service role.
CREATE TABLE run_facet (
  kind  TEXT NOT NULL,
  value TEXT NOT NULL,
  run   INTEGER NOT NULL,
  PRIMARY KEY (kind, value, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_facet_run ON run_facet (run, kind, value);              -- models and services of a run

-- A run that was deleted: late spans of it are counted, not stored.
CREATE TABLE tombstone (
  trace_id   BLOB PRIMARY KEY,
  deleted_ns INTEGER NOT NULL,
  reason     TEXT NOT NULL,               -- keep, max_disk, by hand, purge
  span_count INTEGER NOT NULL,
  digest     BLOB NOT NULL                -- sha256 over the macs of its spans, in order of id
) STRICT, WITHOUT ROWID;

CREATE TABLE call (
  span            INTEGER PRIMARY KEY REFERENCES span (id),
  run             INTEGER NOT NULL,
  candidate       INTEGER NOT NULL,       -- 1: it can be counted: it tells something, repeats none
  counted         INTEGER NOT NULL,       -- 1: in the run's totals
  operation       TEXT,
  provider        TEXT,
  request_model   TEXT,
  response_model  TEXT,
  response_id     TEXT,
  finish_reason   TEXT,
  input_prefix    INTEGER,                -- message_prefix.id of the last input message
  output_prefix   INTEGER,
  input_is_delta  INTEGER NOT NULL,
  tokens_input       INTEGER,
  tokens_output      INTEGER,
  tokens_cache_read  INTEGER,
  tokens_cache_write INTEGER,
  tokens_reasoning   INTEGER,
  cost_usd_nano      INTEGER,
  cost_source     TEXT,
  first_token_ms  REAL
) STRICT;
CREATE INDEX call_run ON call (run, span);                               -- calls of a run in order
CREATE INDEX call_response ON call (run, response_id) WHERE response_id IS NOT NULL; -- one call twice
CREATE INDEX call_input ON call (input_prefix) WHERE input_prefix IS NOT NULL;   -- uses of a text
CREATE INDEX call_output ON call (output_prefix) WHERE output_prefix IS NOT NULL;

-- Sums that a non-call step repeats; counted only while no descendant reports any.
CREATE TABLE usage_sum (
  span    INTEGER PRIMARY KEY REFERENCES span (id),
  run     INTEGER NOT NULL,
  counted INTEGER NOT NULL,
  tokens_input       INTEGER,
  tokens_output      INTEGER,
  tokens_cache_read  INTEGER,
  tokens_cache_write INTEGER,
  tokens_reasoning   INTEGER,
  cost_usd_nano      INTEGER
) STRICT;
CREATE INDEX usage_sum_run ON usage_sum (run);          -- does any sum still tell a number; deletion

-- Ancestors, arrived or not, that have a counted usage below them: a sum that such a span repeats
-- is not counted. Marked upwards once, so the cost is one row per inner node of the tree.
CREATE TABLE usage_below (
  trace_id BLOB NOT NULL,
  span_id  BLOB NOT NULL,
  PRIMARY KEY (trace_id, span_id)
) STRICT, WITHOUT ROWID;

-- One row per distinct text: messages in normal form, span names, errors, arguments, results.
CREATE TABLE text (
  id         INTEGER PRIMARY KEY,         -- the order of first sight
  hash       BLOB NOT NULL UNIQUE,
  field      TEXT NOT NULL,               -- message span_name error tool_arguments tool_result input output log
  role       TEXT,                        -- of a message
  match_hash BLOB,                        -- of a message: what was said, in any dialect
  first_span INTEGER NOT NULL,            -- span.id that first carried it
  body       BLOB NOT NULL                -- packed by hansard_store/content/text_bodies.py
) STRICT;
CREATE INDEX text_match ON text (match_hash) WHERE match_hash IS NOT NULL;
CREATE TABLE text_use (
  text INTEGER NOT NULL,
  run  INTEGER NOT NULL,
  PRIMARY KEY (text, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX text_use_run ON text_use (run, text);                       -- texts of a run: q, deletion
CREATE VIRTUAL TABLE text_fts USING fts5 (
  body, content = '', contentless_delete = 1, detail = full, tokenize = 'unicode61'
);

-- Lists of messages as a tree of prefixes: a call names its last node. Two calls share exactly
-- the nodes of their common prefix, so a cache break is where their ways part.
CREATE TABLE message_prefix (
  id     INTEGER PRIMARY KEY,
  parent INTEGER NOT NULL,                -- 0: first message
  text   INTEGER NOT NULL REFERENCES text (id),
  depth  INTEGER NOT NULL,                -- messages up to and including this one
  hash   BLOB NOT NULL                    -- sha256(parent's hash, message hash)[:16]
) STRICT;
CREATE UNIQUE INDEX message_prefix_node ON message_prefix (parent, text);
CREATE INDEX message_prefix_text ON message_prefix (text);               -- uses of a text

-- A tool call as a model asked for it and as a span ran it, joined by call id: counted once.
CREATE TABLE tool_event (
  id        INTEGER PRIMARY KEY,
  run       INTEGER NOT NULL,
  call_id   TEXT,
  name      TEXT,
  requested INTEGER,                      -- span.id of the model call
  ran       INTEGER                       -- span.id of the tool step
) STRICT;
CREATE UNIQUE INDEX tool_event_call ON tool_event (run, call_id) WHERE call_id IS NOT NULL;
CREATE INDEX tool_event_requested ON tool_event (requested) WHERE requested IS NOT NULL;
CREATE INDEX tool_event_ran ON tool_event (ran) WHERE ran IS NOT NULL;
-- halves that wait for the other one, for those without a call id
CREATE INDEX tool_event_unrun ON tool_event (run, name, call_id) WHERE ran IS NULL;
CREATE INDEX tool_event_unrequested ON tool_event (run, name, call_id) WHERE requested IS NULL;

-- Links between spans, for "linked from": the link itself is in the record.
CREATE TABLE span_link (
  span          INTEGER NOT NULL REFERENCES span (id),
  ordinal       INTEGER NOT NULL,
  to_trace_id   BLOB NOT NULL,
  to_span_id    BLOB NOT NULL,
  PRIMARY KEY (span, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX span_link_to ON span_link (to_trace_id, to_span_id);

-- Any attribute of any span: hashed key=value tokens, rowid = span.id.
CREATE VIRTUAL TABLE attribute_fts USING fts5 (
  tokens, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);

-- ------------------------------------------------------------------ the collector's count (primary)

CREATE TABLE sender (
  id         INTEGER PRIMARY KEY,
  service    TEXT NOT NULL,               -- '' where a refused request named none
  transport  TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  dialect    TEXT NOT NULL DEFAULT '',    -- the last one seen
  address    TEXT NOT NULL,               -- the last one seen
  first_ns   INTEGER NOT NULL,
  last_ns    INTEGER NOT NULL,
  UNIQUE (service, transport, user_agent)
) STRICT;
CREATE TABLE ledger (
  quarter_ns INTEGER NOT NULL,            -- start of the quarter hour
  sender     INTEGER NOT NULL REFERENCES sender (id),
  signal     TEXT NOT NULL,               -- traces logs metrics
  received   INTEGER NOT NULL DEFAULT 0,  -- items; = stored + duplicate + rejected + opened + deleted
  stored     INTEGER NOT NULL DEFAULT 0,
  duplicate  INTEGER NOT NULL DEFAULT 0,
  rejected   INTEGER NOT NULL DEFAULT 0,
  opened     INTEGER NOT NULL DEFAULT 0,  -- start records replaced by their span
  deleted    INTEGER NOT NULL DEFAULT 0,  -- late items of deleted runs
  requests   INTEGER NOT NULL DEFAULT 0,
  refused    INTEGER NOT NULL DEFAULT 0,  -- whole requests
  bytes      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (quarter_ns, sender, signal)
) STRICT, WITHOUT ROWID;
-- The last refusals, whole requests and single items, with the sentence the sender was told.
CREATE TABLE refusal (
  id      INTEGER PRIMARY KEY,
  time_ns INTEGER NOT NULL,
  sender  INTEGER NOT NULL REFERENCES sender (id),
  signal  TEXT NOT NULL,
  code    TEXT NOT NULL,
  message TEXT NOT NULL,
  items   INTEGER,                        -- NULL: the whole request
  bytes   INTEGER NOT NULL
) STRICT;
