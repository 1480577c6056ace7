"""What is refused because of who asks.

PrincipalError
├── CredentialsRequired    a decision without a credential                          (HTTP 401)
├── SelfApproval          the principal that requested an action decides about it  (HTTP 403)
├── ScopeMissing        the token may not do this                                (HTTP 403)
├── NameReserved        a name of Hansard's own, given for somebody else         (HTTP 400)
├── InvalidTokenName        a name that no token may have                            (exit 2)
├── TokenExists         a token of this name is in force
├── TokenNameConfusable     a token in force has a name that is read as this one
└── UnknownToken        no token of this name is in force
"""

from __future__ import annotations

from hansard_compiler.errors import ConfigError
from hansard_store.errors import StoreError

HOW_TO_SIGN_IN = (
    "make one with `hansard tokens add NAME --scope decide` and send it as "
    "`Authorization: Bearer TOKEN`, or run `hansard open` for a browser that is signed in"
)


class PrincipalError(StoreError):
    """Refused because of who asks."""

    code = "principal_refused"


class CredentialsRequired(PrincipalError):
    """A decision needs to know who decides."""

    code = "credentials_required"

    def __init__(self, *, was_sent: bool = False) -> None:
        found = "the token is wrong or revoked" if was_sent else "a decision needs a token"
        super().__init__(f"{found}: {HOW_TO_SIGN_IN}")


class SelfApproval(PrincipalError):
    """Nobody decides about what they requested themselves."""

    code = "self_approval"

    def __init__(self, name: str, requester: str) -> None:
        who = repr(name) if name == requester else f"{requester!r}, as which {name!r} is read,"
        super().__init__(
            f"{who} requested this action and cannot decide about it: another principal must; "
            f"{HOW_TO_SIGN_IN}"
        )


class ScopeMissing(PrincipalError):
    """The token of a request may not do what it asks for."""

    code = "scope_missing"


class NameReserved(PrincipalError):
    """A caller gives a name that the record uses for Hansard itself, or one that is read as it."""

    code = "name_reserved"

    def __init__(self, name: str) -> None:
        super().__init__(reserved_text(name))


def reserved_text(name: str) -> str:
    """Return why a name cannot be given for a person, an agent or a tool."""
    return f"{name[:80]!r} is a name of Hansard's own: give another one"


class InvalidTokenName(ConfigError):
    """A name that no token may have."""

    code = "invalid_token_name"


class TokenExists(PrincipalError):
    """A token of this name is in force."""

    code = "token_exists"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is a token of the name {name!r}; revoke it first: hansard tokens revoke {name}"
        )


class TokenNameConfusable(PrincipalError):
    """A token in force has a name that people take for this one."""

    code = "token_name_confusable"

    def __init__(self, name: str, other: str) -> None:
        super().__init__(
            f"{name!r} is read as {other!r}, a token in force: who decided could not be"
            " distinguished; choose another name"
        )


class UnknownToken(PrincipalError):
    """No token of this name is in force."""

    code = "unknown_token"

    def __init__(self, name: str) -> None:
        super().__init__(f"no token of the name {name[:80]!r} is in force: see hansard tokens list")
