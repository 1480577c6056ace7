"""People who decide over HTTP: each has a named token, or a browser that is signed in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

import httpx2

from hansard_store.database.data_folder import DataFolder
from hansard_store.principals.errors import TokenExists
from hansard_store.principals.model import CLAIMED, Scope
from hansard_store.principals.service import Principals, SignedIn
from hansard_web.app.security import is_a_decision
from hansard_web.principals.dependencies import SESSION_COOKIE

PERSON: Final = "ana"  # who decides where a test names nobody


def add_token(folder: DataFolder | Path, name: str = PERSON, *scopes: Scope) -> str:
    """Return the secret of a new token for a name, which may decide unless other scopes are given.

    One that the name had before is revoked.
    """
    folder = folder if isinstance(folder, DataFolder) else DataFolder(folder)
    wanted = frozenset(scopes or (Scope.DECIDE,))
    with closing(Principals(folder)) as principals:
        try:
            return principals.add(name, wanted, by=CLAIMED, who="test")
        except TokenExists:
            principals.revoke(name, by=CLAIMED, who="test")
            return principals.add(name, wanted, by=CLAIMED, who="test")


def bearer(secret: str) -> dict[str, str]:
    """Return the header of a request with a token."""
    return {"Authorization": f"Bearer {secret}"}


def session_of(folder: DataFolder | Path, name: str = PERSON) -> dict[str, str]:
    """Return the cookie of a browser that a link has signed a person in with."""
    folder = folder if isinstance(folder, DataFolder) else DataFolder(folder)
    with closing(Principals(folder)) as principals:
        return {SESSION_COOKIE: sign_in_user(principals, name).cookie}


def sign_in_user(principals: Principals, name: str) -> SignedIn:
    """Begin the session of a person, by a link that is used at once."""
    code = principals.add_link(name, server="server", is_once=True)
    signed_in = principals.use_link(code, server="server")
    assert signed_in is not None
    return signed_in


@cache
def _secret_of(folder: Path, name: str) -> str:
    return add_token(folder, name)


def credential(folder: Path, path: str, name: str = PERSON) -> dict[str, str]:
    """Return what a POST to a path of a server needs beside it: a token, for a decision."""
    return bearer(_secret_of(folder, name)) if is_a_decision("POST", path) else {}


class People(httpx2.Auth):
    """Sends each decision with the token of the person whom it names, and nothing else with one.

    So a client can play a program, which has no token, and the people who decide about it.
    """

    requires_request_body = True

    def __init__(self, folder: DataFolder | Path) -> None:
        self._folder = folder
        self._secrets: dict[str, str] = {}

    def secret_of(self, name: str) -> str:
        """Return the token of a person, made when it is first needed."""
        if name not in self._secrets:
            self._secrets[name] = add_token(self._folder, name)
        return self._secrets[name]

    def auth_flow(self, request: httpx2.Request) -> Iterator[httpx2.Request]:  # type: ignore[override]
        is_known = "authorization" in request.headers or "cookie" in request.headers
        if is_a_decision(request.method, request.url.path) and not is_known:
            secret = self.secret_of(_named_in(request) or PERSON)
            request.headers["Authorization"] = f"Bearer {secret}"
        yield request


def _named_in(request: httpx2.Request) -> str:
    """Return the name that a JSON body or a form says `by`."""
    text = request.content.decode("utf-8", "replace")
    if "json" in request.headers.get("content-type", ""):
        try:
            told: Any = json.loads(text)
        except ValueError:
            return ""
        return str(told.get("by") or "") if isinstance(told, dict) else ""
    return parse_qs(text).get("by", [""])[0]
