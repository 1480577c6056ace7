"""Named tokens in SQLite: of each a keyed hash, never the secret."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_store.principals.model import Scope, read_scopes, scopes_text

PREFIX: Final = "hst_"  # tells a named token from one of the configuration
_WORD: Final = b"hansard principal token v1\0"
_SECRET_BYTES: Final = 32
_COLUMNS = (
    "id, name, scopes, hash IS NOT NULL, created_ns, created_by, revoked_ns, revoked_by, used_ns"
)
_ADD = """
INSERT INTO principal_token (name, scopes, hash, created_ns, created_by)
VALUES (:name, :scopes, :hash, :now, :by) RETURNING id
"""
_BY_HASH = f"SELECT {_COLUMNS} FROM principal_token WHERE hash = ? AND revoked_ns IS NULL"
_BY_NAME = f"""
SELECT {_COLUMNS} FROM principal_token INDEXED BY principal_token_name
WHERE lower(name) = lower(?) AND revoked_ns IS NULL
"""
_HAS_SECRET = "SELECT 1 FROM principal_token WHERE hash IS NOT NULL AND revoked_ns IS NULL LIMIT 1"
_LIST = f"SELECT {_COLUMNS} FROM principal_token ORDER BY id"
_REVOKE = """
UPDATE principal_token SET revoked_ns = :now, revoked_by = :by
WHERE id = :id AND revoked_ns IS NULL
"""
_USED = "UPDATE principal_token SET used_ns = max(used_ns, :now) WHERE id = :id"


@dataclass(frozen=True, slots=True)
class NamedToken:
    """A named token; the secret is known to its holder alone."""

    id: int
    name: str
    scopes: frozenset[Scope]
    has_secret: bool  # False: only links of a server sign in with this name
    created_ns: int
    created_by: str
    revoked_ns: int | None
    revoked_by: str | None
    used_ns: int  # 0: never; to the minute

    @property
    def is_in_force(self) -> bool:
        return self.revoked_ns is None


def new_secret() -> str:
    """Return a secret of 256 random bits."""
    return PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def keyed(key: bytes, word: bytes, secret: str) -> bytes:
    """Return what is stored of a secret: without the store's key no guess can be tested."""
    return hmac.digest(key, word + secret.encode("utf-8", "surrogateescape"), hashlib.sha256)


def token_hash(key: bytes, secret: str) -> bytes:
    """Return what is stored of a token."""
    return keyed(key, _WORD, secret)


def add_token(
    connection: apsw.Connection,
    name: str,
    scopes: frozenset[Scope],
    *,
    hash: bytes | None,
    by: str,
    now_ns: int,
) -> int:
    """Add a token in the caller's transaction; None for a name that only links sign in with."""
    parameters = {
        "name": name,
        "scopes": scopes_text(scopes),
        "hash": hash,
        "now": now_ns,
        "by": by,
    }
    return int(connection.execute(_ADD, parameters).get)


def find_by_hash(connection: apsw.Connection, hash: bytes) -> NamedToken | None:
    """Return the token in force that a hash belongs to."""
    return _token(connection.execute(_BY_HASH, (hash,)).fetchone())


def find_by_name(connection: apsw.Connection, name: str) -> NamedToken | None:
    """Return the token in force of a name, in letters of either case."""
    return _token(connection.execute(_BY_NAME, (name,)).fetchone())


def has_secret(connection: apsw.Connection) -> bool:
    """Return whether any token in force has a secret, which a request can present."""
    return connection.execute(_HAS_SECRET).get is not None


def list_tokens(connection: apsw.Connection) -> list[NamedToken]:
    """Return all tokens, revoked ones too, in the order of adding."""
    rows: Any = connection.execute(_LIST)
    return [token for row in rows if (token := _token(row)) is not None]


def revoke_token(connection: apsw.Connection, token: NamedToken, *, by: str, now_ns: int) -> bool:
    """End a token; False where it had ended already."""
    connection.execute(_REVOKE, {"id": token.id, "now": now_ns, "by": by})
    return connection.changes() == 1


def note_use(connection: apsw.Connection, token_id: int, *, now_ns: int) -> None:
    """Write down that a token was used."""
    connection.execute(_USED, {"id": token_id, "now": now_ns})


def _token(row: Any) -> NamedToken | None:
    if row is None:
        return None
    number, name, scopes, has_secret, *times = row
    return NamedToken(number, name, read_scopes(scopes), bool(has_secret), *times)


# Sessions of browsers in SQLite: of each cookie a keyed hash, until sign-out or its end.

SESSION_S: Final = 30 * 86_400
MOST_OF_ONE: Final = 50  # sessions of one name; the oldest end first
_SESSIONS_WORD: Final = b"hansard browser session v1\0"
_SESSIONS_ADD = """
INSERT INTO browser_session (hash, name, scopes, token, configured, created_ns, expires_ns)
VALUES (:hash, :name, :scopes, :token, :configured, :now, :expires)
"""
_FIND = """
SELECT name, scopes, token, configured FROM browser_session
WHERE hash = :hash AND expires_ns > :now
"""
_END = "DELETE FROM browser_session WHERE hash = ?"
_END_OF_TOKEN = "DELETE FROM browser_session INDEXED BY browser_session_token WHERE token = ?"
_END_OLD = """
DELETE FROM browser_session WHERE expires_ns <= :now OR id IN (
  SELECT id FROM browser_session WHERE name = :name ORDER BY id DESC LIMIT -1 OFFSET :most
)
"""


@dataclass(frozen=True, slots=True)
class Session:
    """What a cookie belongs to: a named token, or one of the configuration (by its keyed hash)."""

    name: str
    scopes: frozenset[Scope]
    token_id: int | None
    configured: bytes | None


def new_cookie() -> str:
    """Return the value of a new cookie: 256 random bits."""
    return secrets.token_urlsafe(32)


def session_hash(key: bytes, cookie: str) -> bytes:
    """Return what is stored of a cookie."""
    return keyed(key, _SESSIONS_WORD, cookie)


def add_session(connection: apsw.Connection, hash: bytes, session: Session, *, now_ns: int) -> None:
    """Begin a session in the caller's transaction; those that are over are removed."""
    parameters = {
        "hash": hash,
        "name": session.name,
        "scopes": scopes_text(session.scopes),
        "token": session.token_id,
        "configured": session.configured,
        "now": now_ns,
        "expires": now_ns + SESSION_S * 1_000_000_000,
    }
    connection.execute(_SESSIONS_ADD, parameters)
    connection.execute(_END_OLD, {"now": now_ns, "name": session.name, "most": MOST_OF_ONE})


def find_session(connection: apsw.Connection, hash: bytes, *, now_ns: int) -> Session | None:
    """Return the session of a cookie; None where it is none, or over."""
    row: Any = connection.execute(_FIND, {"hash": hash, "now": now_ns}).fetchone()
    if row is None:
        return None
    name, scopes, token_id, configured = row
    return Session(name, read_scopes(scopes), token_id, configured)


def end_session(connection: apsw.Connection, hash: bytes) -> bool:
    """End a session; False where there is none."""
    connection.execute(_END, (hash,))
    return connection.changes() == 1


def end_sessions_of(connection: apsw.Connection, token_id: int) -> int:
    """End all sessions of a token, and return how many there were."""
    connection.execute(_END_OF_TOKEN, (token_id,))
    return connection.changes()
