-- Policy: the rules in force at any time, and every check that was made against rules.

-- A list of rule sets that took effect as a whole. Never changed or removed: what a check says of
-- a rule can be read again for ever.
CREATE TABLE policy_version (
  id      INTEGER PRIMARY KEY,
  time_ns INTEGER NOT NULL,
  source  TEXT NOT NULL,                  -- api: put by somebody; file: read from --policy
  actor   TEXT NOT NULL,                  -- who put them; of a file its path
  hash    TEXT NOT NULL                   -- of the rule sets, as the checks name it
) STRICT;
CREATE INDEX policy_version_source ON policy_version (source, id);       -- the latest of one source

CREATE TABLE policy_rule_set (
  policy   INTEGER NOT NULL REFERENCES policy_version (id),
  position INTEGER NOT NULL,              -- from 0, as given
  name     TEXT NOT NULL,
  version  TEXT NOT NULL,                 -- as the author numbers it
  hash     TEXT NOT NULL,
  document TEXT NOT NULL,                 -- JSON, as given
  PRIMARY KEY (policy, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE policy_rule (
  policy   INTEGER NOT NULL REFERENCES policy_version (id),
  rule_set TEXT NOT NULL,
  rule_id  TEXT NOT NULL,
  version  TEXT NOT NULL,
  effect   TEXT NOT NULL,
  priority INTEGER NOT NULL,
  body     TEXT NOT NULL,                 -- JSON of the rule, as given
  PRIMARY KEY (policy, rule_set, rule_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX policy_rule_history ON policy_rule (rule_id, policy);       -- the versions of one rule

-- One check: what was asked and what was decided, allows included. It holds no content: arguments
-- are a keyed hash. Primary where `span` is NULL (the check was made through the API, and is
-- committed before it is answered), else derived from that span.
CREATE TABLE policy_check (
  id          INTEGER PRIMARY KEY,
  time_ns     INTEGER NOT NULL,
  span        INTEGER,                    -- the step that tells it
  trace_id    BLOB,                       -- NULL: of no run
  span_id     BLOB,
  ordinal     INTEGER NOT NULL,           -- nth check of that step
  action      TEXT NOT NULL,              -- see do
  effect      TEXT NOT NULL,              -- allow deny redact require_approval require_receipt
  reason_code TEXT NOT NULL,              -- rule default condition_error
  reason      TEXT,                       -- the decision in a sentence
  rule_id     TEXT,                       -- the one that decided; NULL: a default did
  rule_set    TEXT,
  rule_version TEXT,
  rules       TEXT NOT NULL,              -- JSON: every rule that fitted or failed, and how it came out
  obligations TEXT NOT NULL,              -- JSON: all that must be met
  agent       TEXT,
  subject     TEXT,                       -- the item's id, the tool's name
  inputs      TEXT NOT NULL,              -- JSON: what the rules were judged on
  policy_hash TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX policy_check_step ON policy_check (trace_id, span_id, ordinal)
  WHERE trace_id IS NOT NULL;                                            -- of a step; told twice
CREATE INDEX policy_check_span ON policy_check (span) WHERE span IS NOT NULL; -- made again; deletion
CREATE INDEX policy_check_effect ON policy_check (effect, id);           -- what was denied
CREATE INDEX policy_check_rule ON policy_check (rule_id, id) WHERE rule_id IS NOT NULL;
CREATE INDEX policy_check_agent ON policy_check (agent, id) WHERE agent IS NOT NULL;
