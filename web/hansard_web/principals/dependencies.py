"""The principal of a request, as the security middleware found it."""

from __future__ import annotations

import hmac
from typing import Any

from fastapi import Depends
from starlette.requests import Request

from hansard_store.principals.model import Principal, Scope
from hansard_web.app.config import WebSettings


def principal_of(request: Request) -> Principal | None:
    """Return who sends a request; None where it has no credential."""
    found: Principal | None = request.scope.get("state", {}).get("principal")
    return found


def of_app(name: str, *, is_acting: bool = False) -> Any:
    """Return the dependency on a service of the app; `is_acting`: as the principal uses it."""

    # async: see `site_of`.
    async def service_of(request: Request) -> Any:
        service = getattr(request.app.state, name)
        return service.acting(principal_of(request)) if is_acting else service

    return Depends(service_of)


def is_own_only(request: Request) -> bool:
    """Say whether a token that only sends may have this of its own proposals, and of no other."""
    return bool(request.scope.get("state", {}).get("is_own_only"))


def must_sign_in(request: Request, settings: WebSettings) -> bool:
    """Say whether this reader can decide nothing before signing in."""
    return principal_of(request) is None and settings.needs_principal


def may_not_decide(request: Request, settings: WebSettings) -> str:
    """Return why the reader of a page cannot decide; "" for one who can."""
    principal = principal_of(request)
    if principal is None:
        return "You are not signed in." if settings.needs_principal else ""
    is_anyone = not settings.needs_principal and not settings.tokens
    if is_anyone or principal.allows(Scope.DECIDE):
        return ""
    scopes = ", ".join(sorted(principal.scopes))
    return f"Your token may {scopes}, and not decide. Sign in with one that has the scope decide."


# The cookie of a session, and the token of forms, which is signed and stored nowhere.

SESSION_COOKIE = "hansard_session"


class FormTokens:
    """Makes and checks the tokens of one store's forms."""

    def __init__(self, key: bytes) -> None:
        self._key = hmac.digest(key, b"hansard web sessions v1", "sha256")

    def of(self, session: str) -> str:
        """Return the token that a form of this session carries ("" where nobody signs in)."""
        return hmac.digest(
            self._key, b"form\0" + session.encode("utf-8", "replace"), "sha256"
        ).hex()

    def is_of(self, presented: str, session: str) -> bool:
        """Whether a token is that of a form of this session."""
        expected = self.of(session).encode()
        return hmac.compare_digest(expected, presented.encode("utf-8", "surrogateescape"))
