-- Who decided: named tokens, sessions of browsers, links that sign in; and with each decision how it
-- is known who took it. Rows from before have NULL there: nobody was authenticated.

-- Who may do what. Of a secret there is a keyed hash alone.
CREATE TABLE principal_token (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,               -- whom it stands for in the record
  scopes     TEXT NOT NULL,               -- ingest read decide admin, joined by +
  hash       BLOB UNIQUE,                 -- HMAC(key, secret); NULL: only links sign in with this name
  created_ns INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  revoked_ns INTEGER,
  revoked_by TEXT,
  used_ns    INTEGER NOT NULL DEFAULT 0   -- to the minute; 0: never
) STRICT;
CREATE UNIQUE INDEX principal_token_name ON principal_token (lower(name))     -- one in force a name
  WHERE revoked_ns IS NULL;

-- A browser that is signed in. Removed at sign-out, and when its token is revoked.
CREATE TABLE browser_session (
  id         INTEGER PRIMARY KEY,
  hash       BLOB NOT NULL UNIQUE,        -- HMAC(key, cookie)
  name       TEXT NOT NULL,
  scopes     TEXT NOT NULL,
  token      INTEGER REFERENCES principal_token (id), -- NULL: a token of the configuration
  configured BLOB,                        -- HMAC(key, that token): the session ends with it
  created_ns INTEGER NOT NULL,
  expires_ns INTEGER NOT NULL
) STRICT;
CREATE INDEX browser_session_token ON browser_session (token) WHERE token IS NOT NULL; -- revoking
CREATE INDEX browser_session_name ON browser_session (name, id);                -- the oldest of a name

-- An address that signs a browser in, while one server runs.
CREATE TABLE sign_in_link (
  id         INTEGER PRIMARY KEY,
  hash       BLOB NOT NULL UNIQUE,        -- HMAC(key, code)
  server     TEXT NOT NULL,               -- which run of a server takes it
  token      INTEGER NOT NULL REFERENCES principal_token (id),
  is_once    INTEGER NOT NULL,            -- 1: removed by its first use
  created_ns INTEGER NOT NULL
) STRICT;
CREATE INDEX sign_in_link_token ON sign_in_link (token);                        -- revoking

ALTER TABLE approval ADD COLUMN requested_by TEXT;       -- JSON: principals that requested it
ALTER TABLE approval ADD COLUMN requested_method TEXT;   -- token session claimed none
ALTER TABLE approval ADD COLUMN decided_method TEXT;     -- token session claimed none
ALTER TABLE approval_claim ADD COLUMN settled_method TEXT; -- token session claimed none
ALTER TABLE memory ADD COLUMN ended_method TEXT;         -- token session claimed none
ALTER TABLE task ADD COLUMN decided_method TEXT;         -- token session claimed none
ALTER TABLE task ADD COLUMN done_method TEXT;            -- token session claimed none
