"""Principals of one store: the one way to authenticate, and to manage tokens, sessions and links.

Every write is one transaction on the caller's thread. What is revoked in another process is refused
with the next request: nothing of it stays in memory.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_store.audit.event_types import Actor, Event, EventType
from hansard_store.audit.events import append
from hansard_store.audit.seal_marks import is_altered
from hansard_store.database.connections import OwnConnections
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import altered_objects, store_errors
from hansard_store.errors import SchemaAlteredError
from hansard_store.principals.errors import TokenExists, TokenNameConfusable, UnknownToken
from hansard_store.principals.model import (
    ALL_SCOPES,
    Principal,
    Scope,
    as_name,
    check_name,
    is_same,
    looks_like,
    read_scopes,
    scopes_text,
)

# Named tokens: of each a keyed hash, never the secret.

PREFIX: Final = "hst_"  # tells a named token from one of the configuration
_TOKEN_WORD: Final = b"hansard principal token v1\0"
_SELECT_TOKEN: Final = """
SELECT id, name, scopes, hash IS NOT NULL, created_ns, created_by, revoked_ns, revoked_by, used_ns
FROM principal_token
"""
_ADD_TOKEN: Final = """
INSERT INTO principal_token (name, scopes, hash, created_ns, created_by)
VALUES (:name, :scopes, :hash, :now, :by)
"""
_TOKEN_OF_HASH: Final = f"{_SELECT_TOKEN} WHERE hash = ? AND revoked_ns IS NULL"
_TOKEN_OF_NAME: Final = f"""
{_SELECT_TOKEN} INDEXED BY principal_token_name
WHERE lower(name) = lower(?) AND revoked_ns IS NULL
"""
_HAS_SECRET: Final = (
    "SELECT 1 FROM principal_token WHERE hash IS NOT NULL AND revoked_ns IS NULL LIMIT 1"
)
_ALL_TOKENS: Final = f"{_SELECT_TOKEN} ORDER BY id"
_REVOKE: Final = """
UPDATE principal_token SET revoked_ns = :now, revoked_by = :by
WHERE id = :id AND revoked_ns IS NULL
"""
_USED: Final = "UPDATE principal_token SET used_ns = max(used_ns, :now) WHERE id = :id"


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


# Sessions of browsers: of each cookie a keyed hash, until sign-out or its end.

SESSION_S: Final = 30 * 86_400
_MOST_SESSIONS: Final = 50  # of one name; the oldest end first
_SESSION_WORD: Final = b"hansard browser session v1\0"
_ADD_SESSION: Final = """
INSERT INTO browser_session (hash, name, scopes, token, configured, created_ns, expires_ns)
VALUES (:hash, :name, :scopes, :token, :configured, :now, :expires)
"""
_FIND_SESSION: Final = """
SELECT name, scopes, token, configured FROM browser_session
WHERE hash = :hash AND expires_ns > :now
"""
_END_SESSION: Final = "DELETE FROM browser_session WHERE hash = ?"
_END_SESSIONS_OF_TOKEN: Final = (
    "DELETE FROM browser_session INDEXED BY browser_session_token WHERE token = ?"
)
_END_OLD_SESSIONS: Final = """
DELETE FROM browser_session WHERE expires_ns <= :now OR id IN (
  SELECT id FROM browser_session WHERE name = :name ORDER BY id DESC LIMIT -1 OFFSET :most
)
"""


# Addresses that sign a browser in, each for one running server: of the code a keyed hash.

_MOST_LINKS: Final = 50  # of one server that were not used up; the oldest go first
_LINK_WORD: Final = b"hansard sign-in link v1\0"
_ADD_LINK: Final = """
INSERT INTO sign_in_link (hash, server, token, is_once, created_ns)
VALUES (:hash, :server, :token, :once, :now)
"""
_FIND_LINK: Final = (
    "SELECT token, is_once FROM sign_in_link WHERE hash = :hash AND server = :server"
)
_REMOVE_LINK: Final = "DELETE FROM sign_in_link WHERE hash = ?"
_REMOVE_LINKS_OF_SERVER: Final = "DELETE FROM sign_in_link WHERE server = ?"
_REMOVE_LINKS_OF_TOKEN: Final = "DELETE FROM sign_in_link WHERE token = ?"
_REMOVE_OLD_LINKS: Final = """
DELETE FROM sign_in_link WHERE is_once AND id IN (
  SELECT id FROM sign_in_link WHERE is_once ORDER BY id DESC LIMIT -1 OFFSET :most
)
"""

_CONFIGURED_WORD: Final = b"hansard configured token v1\0"
_TABLES: Final = frozenset({"principal_token", "browser_session", "sign_in_link"})
_log = logging.getLogger("hansard.principals")
_MINUTE_NS: Final = 60 * 1_000_000_000
_SHOWN_DIGITS: Final = 8
_RANDOM_BYTES: Final = 32  # of a secret, a cookie and the code of a link


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session that has begun: the cookie's value is known to the browser alone."""

    cookie: str
    principal: Principal


class Principals:
    """Who may do what in one store. Threads share it, each with a connection of its own."""

    def __init__(
        self,
        folder: DataFolder,
        *,
        configured: Iterable[tuple[str, frozenset[Scope]]] = (),
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Make it; `configured` are secrets and scopes of the server's configuration."""
        self._key = folder.key()
        self._clock = clock
        self._connections = OwnConnections(folder)
        # By keyed hashes: a guess is hashed before it is looked up.
        self._configured = dict(self._of_configuration(*one) for one in configured)
        # Guards when which token was used; threads that authenticate add, the flush takes.
        self._lock = threading.Lock()
        self._used: dict[int, int] = {}

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self._connections.close()

    # ---- authenticating

    def authenticate(self, secret: str) -> Principal | None:
        """Return whose token this is; None where it is of nobody, or revoked."""
        if found := self._configured.get(self._hash(_CONFIGURED_WORD, secret)):
            return found
        if (token := self._find_token(secret)) is None:
            return None
        self._note_use(token)
        return Principal(token.name, token.scopes, "token")

    def is_wrong(self, secret: str) -> bool:
        """Say whether a secret is a failed attempt: it is of nobody, though others' are known.

        Where no token is known, in the configuration or by name, none can be right: a program that
        sends one to such a server is not refused for it.
        """
        if self.authenticate(secret) is not None:
            return False
        if self._configured:
            return True
        with self._reading() as connection:
            return connection.execute(_HAS_SECRET).get is not None

    def of_cookie(self, cookie: str) -> Principal | None:
        """Return whose session this is; None where it ended, or never was one."""
        hash = self._hash(_SESSION_WORD, cookie)
        with self._reading() as connection:
            parameters = {"hash": hash, "now": self._clock()}
            row: Any = connection.execute(_FIND_SESSION, parameters).fetchone()
            if row is None or _is_forged(connection, "browser_session", "hash", hash):
                return None
            name, scopes, token_id, configured = row
            if token_id is not None and _is_forged(connection, "principal_token", "id", token_id):
                return None
        # One of a named token ends with it; of the configuration, when that has it no more.
        if token_id is None and configured not in self._configured:
            return None
        return Principal(name, read_scopes(scopes), "session")

    def sign_in(self, secret: str) -> SignedIn | None:
        """Begin a session for the holder of a token; None where it is none."""
        hash = self._hash(_CONFIGURED_WORD, secret)
        if known := self._configured.get(hash):
            return self._begin(known, configured=hash)
        if (token := self._find_token(secret)) is None:
            return None
        self._note_use(token)
        return self._begin(token, token_id=token.id)

    def sign_out(self, cookie: str) -> None:
        """End a session: its cookie opens nothing any more."""
        with self._connections.writing() as connection:
            connection.execute(_END_SESSION, (self._hash(_SESSION_WORD, cookie),))

    # ---- links

    def add_link(self, user: str, *, server: str, is_once: bool) -> str:
        """Return the code of a link that signs a user in at one running server.

        Its session may do what the token of that name may; all, where the name has no token.
        """
        code = secrets.token_urlsafe(_RANDOM_BYTES)
        with self._connections.writing() as connection:
            token = self._token_of_user(connection, user)
            parameters = {
                "hash": self._hash(_LINK_WORD, code),
                "server": server,
                "token": token.id,
                "once": is_once,
                "now": self._clock(),
            }
            connection.execute(_ADD_LINK, parameters)
            connection.execute(_REMOVE_OLD_LINKS, {"most": _MOST_LINKS})
        return code

    def use_link(self, code: str, *, server: str) -> SignedIn | None:
        """Begin the session that a link is for; None where it is none of this server."""
        hash = self._hash(_LINK_WORD, code)
        with self._connections.writing() as connection:
            is_forged = _is_forged(connection, "sign_in_link", "hash", hash)
            row: Any = connection.execute(_FIND_LINK, {"hash": hash, "server": server}).fetchone()
            token_id, is_once = row or (None, False)
            if is_once:
                connection.execute(_REMOVE_LINK, (hash,))
            is_forged |= _is_forged(connection, "principal_token", "id", token_id)
            found = [one for one in _tokens(connection, _ALL_TOKENS) if one.id == token_id]
        if is_forged or not found or not found[0].is_in_force:
            return None
        token = found[0]
        return self._begin(token, token_id=token.id)

    def end_links(self, server: str) -> None:
        """End the links of a server that stops."""
        with self._connections.writing() as connection:
            connection.execute(_REMOVE_LINKS_OF_SERVER, (server,))

    # ---- managing tokens

    def add(self, name: str, scopes: frozenset[Scope], *, by: Principal, who: str = "") -> str:
        """Add a token and return its secret, which is stored nowhere.

        Who may decide may read too: nobody decides about what they cannot see. Raises
        InvalidTokenName, TokenExists, TokenNameConfusable.
        """
        name, now_ns = check_name(name), self._clock()
        if Scope.DECIDE in scopes:
            scopes |= {Scope.READ}
        secret = PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
        with self._connections.writing() as connection:
            known = _named(connection, name)
            if known is not None and known.has_secret:
                raise TokenExists(name)
            if (other := _alike(connection, name)) is not None:
                raise TokenNameConfusable(name, other)
            if known is not None:  # of links alone: from now on the name has a secret too
                self._end(connection, known, by=by.name or who, now_ns=now_ns)
            hash = self._hash(_TOKEN_WORD, secret)
            _add_token(connection, name, scopes, hash=hash, by=by.name or who, now_ns=now_ns)
            body = {"scopes": scopes_text(scopes)}
            self._tell(connection, EventType.TOKEN_ADDED, name, by, who, body)
        return secret

    def revoke(self, name: str, *, by: Principal, who: str = "") -> NamedToken:
        """End a token with its sessions and links. Raises UnknownToken."""
        now_ns = self._clock()
        with self._connections.writing() as connection:
            token = _named(connection, name)
            if token is None:
                raise UnknownToken(name)
            self._end(connection, token, by=by.name or who, now_ns=now_ns)
            self._tell(connection, EventType.TOKEN_REVOKED, token.name, by, who, {})
        return token

    def tokens(self) -> list[NamedToken]:
        """Return all named tokens, revoked ones too, in the order of adding."""
        self.flush_uses()
        with self._reading() as connection:
            return _tokens(connection, _ALL_TOKENS)

    def configured(self) -> list[Principal]:
        """Return the principals of the configuration's tokens."""
        return list(self._configured.values())

    def flush_uses(self) -> None:
        """Write down which tokens were used; held in memory meanwhile, one id a token."""
        with self._lock:
            used, self._used = self._used, {}
        if not used:
            return
        with self._connections.writing() as connection:
            rows = [{"id": token_id, "now": used_ns} for token_id, used_ns in used.items()]
            connection.executemany(_USED, rows)

    # ---- inside

    def _of_configuration(self, secret: str, scopes: frozenset[Scope]) -> tuple[bytes, Principal]:
        hash = self._hash(_CONFIGURED_WORD, secret)
        # No name of a token has a colon, so it is nobody else's.
        name = f"config:{scopes_text(scopes)}:{hash.hex()[:_SHOWN_DIGITS]}"
        return hash, Principal(name, scopes, "token")

    def _find_token(self, secret: str) -> NamedToken | None:
        if not secret.startswith(PREFIX):
            return None
        with self._reading() as connection:
            for found in _tokens(connection, _TOKEN_OF_HASH, self._hash(_TOKEN_WORD, secret)):
                if not _is_forged(connection, "principal_token", "id", found.id):
                    return found
        return None

    def _begin(
        self,
        one: Principal | NamedToken,
        *,
        token_id: int | None = None,
        configured: bytes | None = None,
    ) -> SignedIn:
        """Begin a session of a named token, or of one of the configuration by its keyed hash.

        Those that are over are removed.
        """
        cookie, now_ns = secrets.token_urlsafe(_RANDOM_BYTES), self._clock()
        parameters = {
            "hash": self._hash(_SESSION_WORD, cookie),
            "name": one.name,
            "scopes": scopes_text(one.scopes),
            "token": token_id,
            "configured": configured,
            "now": now_ns,
            "expires": now_ns + SESSION_S * 1_000_000_000,
        }
        old = {"now": now_ns, "name": one.name, "most": _MOST_SESSIONS}
        with self._connections.writing() as connection:
            connection.execute(_ADD_SESSION, parameters)
            connection.execute(_END_OLD_SESSIONS, old)
        return SignedIn(cookie, Principal(one.name, one.scopes, "session"))

    def _token_of_user(self, connection: apsw.Connection, user: str) -> NamedToken:
        """Return the token of a name, made without a secret where there is none."""
        name = as_name(user)
        if _alike(connection, name) is not None:
            name = f"user-{name}"
        found, now_ns = _named(connection, name), self._clock()
        if found is not None and _is_forged(connection, "principal_token", "id", found.id):
            self._end(connection, found, by=name, now_ns=now_ns)
            found = None
        if found is None:
            _add_token(connection, name, ALL_SCOPES, hash=None, by=name, now_ns=now_ns)
            found = _named(connection, name)
            assert found is not None
        return found

    def _end(self, connection: apsw.Connection, token: NamedToken, *, by: str, now_ns: int) -> None:
        connection.execute(_REVOKE, {"id": token.id, "now": now_ns, "by": by})
        connection.execute(_END_SESSIONS_OF_TOKEN, (token.id,))
        connection.execute(_REMOVE_LINKS_OF_TOKEN, (token.id,))

    def _tell(
        self,
        connection: apsw.Connection,
        type: EventType,
        name: str,
        by: Principal,
        who: str,
        body: dict[str, str],
    ) -> None:
        principal = {"principal": by.name} if by.is_authenticated else {}
        event = Event(
            type=type,
            actor=Actor.ME,
            who=by.name or who,
            action=str(type),
            source="cli",
            subject=f"token:{name}",
            time_ns=self._clock(),
            body={**body, **principal, "auth_method": by.method},
        )
        append(connection, event)

    def _note_use(self, token: NamedToken) -> None:
        now_ns = self._clock()
        if now_ns - token.used_ns >= _MINUTE_NS:
            with self._lock:
                self._used[token.id] = now_ns

    def _hash(self, word: bytes, secret: str) -> bytes:
        """Return what is stored of a secret: without the store's key no guess can be tested."""
        return hmac.digest(self._key, word + secret.encode("utf-8", "surrogateescape"), "sha256")

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        """Lend this thread's connection; raises SchemaAlteredError where credentials are altered.

        Other objects do not matter here: pages stay readable, and decisions are refused.
        """
        with store_errors():
            connection = self._connections.get()
            altered = [one for one in altered_objects(connection) if one.table in _TABLES]
            if altered:
                raise SchemaAlteredError([str(one) for one in altered])
            yield connection


def _is_forged(connection: apsw.Connection, table: str, column: str, value: object) -> bool:
    """Return whether a credential is not as Hansard wrote it, which is logged: it is none then."""
    is_forged = is_altered(connection, table, column, value)
    if is_forged:
        _log.error("a row of %s was altered by something other than Hansard, and is void", table)
    return is_forged


def _alike(connection: apsw.Connection, name: str) -> str | None:
    """Return the name of a token in force that is read as another name; None for none."""
    names = [one.name for one in _tokens(connection, _ALL_TOKENS) if one.is_in_force]
    return next((one for one in names if looks_like(one, name) and not is_same(one, name)), None)


def _add_token(
    connection: apsw.Connection,
    name: str,
    scopes: frozenset[Scope],
    *,
    hash: bytes | None,
    by: str,
    now_ns: int,
) -> None:
    """Add a token in the caller's transaction; None for a name that only links sign in with."""
    parameters = {
        "name": name,
        "scopes": scopes_text(scopes),
        "hash": hash,
        "now": now_ns,
        "by": by,
    }
    connection.execute(_ADD_TOKEN, parameters)


def _named(connection: apsw.Connection, name: str) -> NamedToken | None:
    """Return the token in force of a name, in letters of either case."""
    return next(iter(_tokens(connection, _TOKEN_OF_NAME, name)), None)


def _tokens(connection: apsw.Connection, sql: str, *bindings: str | bytes) -> list[NamedToken]:
    rows: list[Any] = connection.execute(sql, bindings).fetchall()
    return [
        NamedToken(number, name, read_scopes(scopes), bool(has_secret), *rest)
        for number, name, scopes, has_secret, *rest in rows
    ]
