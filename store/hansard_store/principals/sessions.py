"""Sessions of browsers in SQLite: of each cookie a keyed hash, until sign-out or its end."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_store.principals.model import Scope, read_scopes, scopes_text
from hansard_store.principals.tokens import keyed

SESSION_S: Final = 30 * 86_400
MOST_OF_ONE: Final = 50  # sessions of one name; the oldest end first
_WORD: Final = b"hansard browser session v1\0"
_ADD = """
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
    return keyed(key, _WORD, cookie)


def add_session(connection: apsw.Connection, hash: bytes, session: Session, *, now_ns: int) -> None:
    """Begin a session in the caller's transaction; those that are over are removed."""
    given = {
        "hash": hash,
        "name": session.name,
        "scopes": scopes_text(session.scopes),
        "token": session.token_id,
        "configured": session.configured,
        "now": now_ns,
        "expires": now_ns + SESSION_S * 1_000_000_000,
    }
    connection.execute(_ADD, given)
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
