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
from hansard_store.database.transactions import altered_objects, store_errors, transaction
from hansard_store.errors import SchemaAlteredError
from hansard_store.principals import tokens
from hansard_store.principals.errors import TokenExists, TokenNameConfusable, UnknownToken
from hansard_store.principals.model import (
    ALL_SCOPES,
    Principal,
    Scope,
    as_name,
    check_name,
    is_same,
    looks_like,
    scopes_text,
)
from hansard_store.principals.tokens import NamedToken, Session, keyed

# Addresses that sign a browser in, each for one running server: of the code a keyed hash.

MOST_OF_ONE: Final = 50  # links of one server that were not used up; the oldest go first
_WORD: Final = b"hansard sign-in link v1\0"
_ADD = """
INSERT INTO sign_in_link (hash, server, token, is_once, created_ns)
VALUES (:hash, :server, :token, :once, :now)
"""
_FIND = "SELECT token, is_once FROM sign_in_link WHERE hash = :hash AND server = :server"
_REMOVE = "DELETE FROM sign_in_link WHERE hash = ?"
_REMOVE_OF_SERVER = "DELETE FROM sign_in_link WHERE server = ?"
_REMOVE_OF_TOKEN = "DELETE FROM sign_in_link WHERE token = ?"
_REMOVE_MOST = """
DELETE FROM sign_in_link WHERE is_once AND id IN (
  SELECT id FROM sign_in_link WHERE is_once ORDER BY id DESC LIMIT -1 OFFSET :most
)
"""


def new_code() -> str:
    """Return the code of a new link: 256 random bits."""
    return secrets.token_urlsafe(32)


def link_hash(key: bytes, code: str) -> bytes:
    """Return what is stored of a code."""
    return keyed(key, _WORD, code)


def add_link(
    connection: apsw.Connection,
    hash: bytes,
    *,
    server: str,
    token_id: int,
    is_once: bool,
    now_ns: int,
) -> None:
    """Add a link in the caller's transaction."""
    parameters = {"hash": hash, "server": server, "token": token_id, "once": is_once, "now": now_ns}
    connection.execute(_ADD, parameters)
    connection.execute(_REMOVE_MOST, {"most": MOST_OF_ONE})


def take_link(connection: apsw.Connection, hash: bytes, *, server: str) -> int | None:
    """Return the token that a link of this server signs in with; one for one use is used up."""
    row: Any = connection.execute(_FIND, {"hash": hash, "server": server}).fetchone()
    if row is None:
        return None
    token_id, is_once = row
    if is_once:
        connection.execute(_REMOVE, (hash,))
    return int(token_id)


def remove_links_of_server(connection: apsw.Connection, server: str) -> None:
    """End the links of a server."""
    connection.execute(_REMOVE_OF_SERVER, (server,))


def remove_links_of_token(connection: apsw.Connection, token_id: int) -> None:
    """End the links of a token."""
    connection.execute(_REMOVE_OF_TOKEN, (token_id,))


_CONFIGURED_WORD: Final = b"hansard configured token v1\0"
_TABLES: Final = frozenset({"principal_token", "browser_session", "sign_in_link"})
_log = logging.getLogger("hansard.principals")
_MINUTE_NS: Final = 60 * 1_000_000_000
_SHOWN_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class _Configured:
    """A token of the configuration: its keyed hash, and the principal that it is."""

    hash: bytes
    principal: Principal


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
        self._configured = [self._of_configuration(*one) for one in configured]
        # Guards when which token was used; threads that authenticate add, the flush takes.
        self._lock = threading.Lock()
        self._used: dict[int, int] = {}

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self._connections.close()

    # ---- authenticating

    def authenticate(self, secret: str) -> Principal | None:
        """Return whose token this is; None where it is of nobody, or revoked."""
        if found := self._find_configured(secret):
            return found.principal
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
            return tokens.has_secret(connection)

    def of_cookie(self, cookie: str) -> Principal | None:
        """Return whose session this is; None where it ended, or never was one."""
        hash = tokens.session_hash(self._key, cookie)
        with self._reading() as connection:
            found = tokens.find_session(connection, hash, now_ns=self._clock())
            if found is not None and _is_forged(connection, "browser_session", "hash", hash):
                return None
            token_id = None if found is None else found.token_id
            if token_id is not None and _is_forged(connection, "principal_token", "id", token_id):
                return None
        if found is None or not self._is_in_force(found):
            return None
        return Principal(found.name, found.scopes, "session")

    def sign_in(self, secret: str) -> SignedIn | None:
        """Begin a session for the holder of a token; None where it is none."""
        if known := self._find_configured(secret):
            one = known.principal
            return self._begin(Session(one.name, one.scopes, None, known.hash))
        if (token := self._find_token(secret)) is None:
            return None
        self._note_use(token)
        return self._begin(Session(token.name, token.scopes, token.id, None))

    def sign_in_user(self, user: str) -> SignedIn:
        """Begin a session for the user who runs the server, and may do everything with it."""
        with self._writing() as connection:
            token = self._token_of_user(connection, user)
        return self._begin(Session(token.name, ALL_SCOPES, token.id, None))

    def sign_out(self, cookie: str) -> None:
        """End a session: its cookie opens nothing any more."""
        with self._writing() as connection:
            tokens.end_session(connection, tokens.session_hash(self._key, cookie))

    # ---- links

    def add_link(self, user: str, *, server: str, is_once: bool) -> str:
        """Return the code of a link that signs a user in at one running server.

        Its session may do what the token of that name may; all, where the name has no token.
        """
        code, now_ns = new_code(), self._clock()
        with self._writing() as connection:
            token = self._token_of_user(connection, user)
            add_link(
                connection,
                link_hash(self._key, code),
                server=server,
                token_id=token.id,
                is_once=is_once,
                now_ns=now_ns,
            )
        return code

    def use_link(self, code: str, *, server: str) -> SignedIn | None:
        """Begin the session that a link is for; None where it is none of this server."""
        with self._writing() as connection:
            hash = link_hash(self._key, code)
            is_forged = _is_forged(connection, "sign_in_link", "hash", hash)
            token_id = take_link(connection, hash, server=server)
            is_forged |= _is_forged(connection, "principal_token", "id", token_id)
            found = [one for one in tokens.list_tokens(connection) if one.id == token_id]
        if is_forged or not found or not found[0].is_in_force:
            return None
        return self._begin(Session(found[0].name, found[0].scopes, found[0].id, None))

    def end_links(self, server: str) -> None:
        """End the links of a server that stops."""
        with self._writing() as connection:
            remove_links_of_server(connection, server)

    # ---- managing tokens

    def add(self, name: str, scopes: frozenset[Scope], *, by: Principal, who: str = "") -> str:
        """Add a token and return its secret, which is stored nowhere.

        Who may decide may read too: nobody decides about what they cannot see. Raises
        InvalidTokenName, TokenExists, TokenNameConfusable.
        """
        name, now_ns = check_name(name), self._clock()
        if Scope.DECIDE in scopes:
            scopes |= {Scope.READ}
        secret = tokens.new_secret()
        hash = tokens.token_hash(self._key, secret)
        with self._writing() as connection:
            known = tokens.find_by_name(connection, name)
            if known is not None and known.has_secret:
                raise TokenExists(name)
            if (other := _alike(connection, name)) is not None:
                raise TokenNameConfusable(name, other)
            if known is not None:  # of links alone: from now on the name has a secret too
                self._end(connection, known, by=by.name or who, now_ns=now_ns)
            tokens.add_token(connection, name, scopes, hash=hash, by=by.name or who, now_ns=now_ns)
            body = {"scopes": scopes_text(scopes)}
            self._tell(connection, EventType.TOKEN_ADDED, name, by, who, body)
        return secret

    def revoke(self, name: str, *, by: Principal, who: str = "") -> NamedToken:
        """End a token with its sessions and links. Raises UnknownToken."""
        now_ns = self._clock()
        with self._writing() as connection:
            token = tokens.find_by_name(connection, name)
            if token is None:
                raise UnknownToken(name)
            self._end(connection, token, by=by.name or who, now_ns=now_ns)
            self._tell(connection, EventType.TOKEN_REVOKED, token.name, by, who, {})
        return token

    def tokens(self) -> list[NamedToken]:
        """Return all named tokens, revoked ones too, in the order of adding."""
        self.flush_uses()
        with self._reading() as connection:
            return tokens.list_tokens(connection)

    def configured(self) -> list[Principal]:
        """Return the principals of the configuration's tokens."""
        return [one.principal for one in self._configured]

    def flush_uses(self) -> None:
        """Write down which tokens were used; held in memory meanwhile, one id a token."""
        with self._lock:
            used, self._used = self._used, {}
        if not used:
            return
        with self._writing() as connection:
            for token_id, used_ns in used.items():
                tokens.note_use(connection, token_id, now_ns=used_ns)

    # ---- inside

    def _of_configuration(self, secret: str, scopes: frozenset[Scope]) -> _Configured:
        hash = tokens.keyed(self._key, _CONFIGURED_WORD, secret)
        # No name of a token has a colon, so it is nobody else's.
        name = f"config:{scopes_text(scopes)}:{hash.hex()[:_SHOWN_DIGITS]}"
        return _Configured(hash, Principal(name, scopes, "token"))

    def _find_configured(self, secret: str) -> _Configured | None:
        digest, found = tokens.keyed(self._key, _CONFIGURED_WORD, secret), None
        for one in self._configured:
            if hmac.compare_digest(one.hash, digest):
                found = one
        return found

    def _find_token(self, secret: str) -> NamedToken | None:
        if not secret.startswith(tokens.PREFIX):
            return None
        with self._reading() as connection:
            found = tokens.find_by_hash(connection, tokens.token_hash(self._key, secret))
            if found is not None and _is_forged(connection, "principal_token", "id", found.id):
                return None
            return found

    def _is_in_force(self, session: Session) -> bool:
        """Say whether the configuration still has the token; one of a named token ends with it."""
        known = [one.hash for one in self._configured]
        return session.token_id is not None or session.configured in known

    def _begin(self, session: Session) -> SignedIn:
        cookie = tokens.new_cookie()
        hash = tokens.session_hash(self._key, cookie)
        with self._writing() as connection:
            tokens.add_session(connection, hash, session, now_ns=self._clock())
        return SignedIn(cookie, Principal(session.name, session.scopes, "session"))

    def _token_of_user(self, connection: apsw.Connection, user: str) -> NamedToken:
        """Return the token of a name, made without a secret where there is none."""
        name = as_name(user)
        if _alike(connection, name) is not None:
            name = f"user-{name}"
        found, now_ns = tokens.find_by_name(connection, name), self._clock()
        if found is not None and _is_forged(connection, "principal_token", "id", found.id):
            self._end(connection, found, by=name, now_ns=now_ns)
            found = None
        if found is None:
            tokens.add_token(connection, name, ALL_SCOPES, hash=None, by=name, now_ns=now_ns)
            found = tokens.find_by_name(connection, name)
            assert found is not None
        return found

    def _end(self, connection: apsw.Connection, token: NamedToken, *, by: str, now_ns: int) -> None:
        tokens.revoke_token(connection, token, by=by, now_ns=now_ns)
        tokens.end_sessions_of(connection, token.id)
        remove_links_of_token(connection, token.id)

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

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        connection = self._connections.get()
        with transaction(connection):
            yield connection


def _is_forged(connection: apsw.Connection, table: str, column: str, value: object) -> bool:
    """Return whether a credential is not as Hansard wrote it, which is logged: it is none then."""
    is_forged = is_altered(connection, table, column, value)
    if is_forged:
        _log.error("a row of %s was altered by something other than Hansard, and is void", table)
    return is_forged


def _alike(connection: apsw.Connection, name: str) -> str | None:
    """Return the name of a token in force that is read as another name; None for none."""
    names = [one.name for one in tokens.list_tokens(connection) if one.is_in_force]
    return next((one for one in names if looks_like(one, name) and not is_same(one, name)), None)
