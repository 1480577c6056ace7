"""The principal of a request, as the security middleware found it."""

from __future__ import annotations

from starlette.requests import Request

from hansard_store.principals.model import Principal, Scope
from hansard_web.app.config import WebSettings


def principal_of(request: Request) -> Principal | None:
    """Return who sends a request; None where it has no credential."""
    found: Principal | None = request.scope.get("state", {}).get("principal")
    return found


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
