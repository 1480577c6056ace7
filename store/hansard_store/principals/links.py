"""Addresses that sign a browser in, each for one running server: of the code a keyed hash."""

from __future__ import annotations

import secrets
from typing import Any, Final

import apsw

from hansard_store.principals.tokens import keyed

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
    given = {"hash": hash, "server": server, "token": token_id, "once": is_once, "now": now_ns}
    connection.execute(_ADD, given)
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
