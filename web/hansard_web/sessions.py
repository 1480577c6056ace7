"""Signed values for browsers: the sign-in cookie and the token of forms. Nothing is stored.

Both are keyed by the store's local key. The cookie proves that its holder knew a token, without
holding the token itself: cookies are shared by all ports of a host.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from hansard_web.settings import Token

SESSION_COOKIE = "hansard_session"
SESSION_S = 30 * 86_400


class Sessions:
    """Makes and checks the signed values of one store."""

    def __init__(self, key: bytes, tokens: Iterable[Token]) -> None:
        self._key = hmac.digest(key, b"hansard web sessions v1", "sha256")
        self._tokens = tuple(tokens)

    def cookie_for(self, token: Token, *, now_s: int) -> str:
        """Return a cookie value that stands for the token until SESSION_S from now."""
        expires_s = now_s + SESSION_S
        return f"{expires_s}.{self._proof(token, expires_s)}"

    def find(self, cookie: str, *, now_s: int) -> Token | None:
        """Return the token a cookie stands for; None if it is forged, old or of no token now."""
        expires, _, proof = cookie.partition(".")
        if not expires.isascii() or not expires.isdecimal() or len(expires) > 12:
            return None
        if int(expires) < now_s:
            return None
        presented = proof.encode("utf-8", "surrogateescape")
        found = None
        for token in self._tokens:
            if hmac.compare_digest(self._proof(token, int(expires)).encode(), presented):
                found = token
        return found

    def form_token(self, session: str) -> str:
        """Return the token that a form of this session carries ("" where nobody signs in)."""
        return hmac.digest(
            self._key, b"form\0" + session.encode("utf-8", "replace"), "sha256"
        ).hex()

    def is_form_token(self, presented: str, session: str) -> bool:
        wanted = self.form_token(session).encode()
        return hmac.compare_digest(wanted, presented.encode("utf-8", "surrogateescape"))

    def _proof(self, token: Token, expires_s: int) -> str:
        digest = hashlib.sha256(token.secret.encode()).digest()
        return hmac.digest(self._key, b"session\0%d\0" % expires_s + digest, "sha256").hex()
