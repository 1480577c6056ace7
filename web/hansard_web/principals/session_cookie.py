"""The cookie of a session, and the token of forms, which is signed and stored nowhere."""

from __future__ import annotations

import hmac

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
        wanted = self.of(session).encode()
        return hmac.compare_digest(wanted, presented.encode("utf-8", "surrogateescape"))
