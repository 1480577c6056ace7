"""A principal: who acts, how that is known, and what it may do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, get_args

from hansard_store.principals.errors import BadTokenName

Method = Literal["token", "session", "claimed", "none"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
AUTHENTICATED: Final = frozenset({"token", "session"})
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
# Words that the record uses for something else than a person or program with a token.
_RESERVED: Final = frozenset(
    {"me", "hansard", "system", "agent", "tool", "none", "claimed", "anyone", "config", "unknown"}
)


class Scope(StrEnum):
    """What a token may do. A sender's token cannot read or approve."""

    INGEST = "ingest"
    READ = "read"
    DECIDE = "decide"
    ADMIN = "admin"


ALL_SCOPES: Final = frozenset(Scope)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who acts. Without a name nothing was proved: see `method`.

    - `token`, `session`: a secret was presented, which belongs to the name;
    - `claimed`: a program with the data folder at hand gave a name, which nobody checked;
    - `none`: a request to a server without a credential.
    """

    name: str
    scopes: frozenset[Scope]
    method: Method

    @property
    def is_authenticated(self) -> bool:
        return self.method in AUTHENTICATED

    def allows(self, scope: Scope) -> bool:
        """Whether it may use routes of this scope; `admin` may use all."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


CLAIMED: Final = Principal("", frozenset(), "claimed")
NOBODY: Final = Principal("", frozenset(), "none")


def is_same(one: str, other: str) -> bool:
    """Whether two names are of one principal: letters of either case are the same."""
    return one.casefold() == other.casefold()


def check_name(name: str) -> str:
    """Return a name that a token may have; raises BadTokenName."""
    if not _NAME.fullmatch(name):
        raise BadTokenName(
            f"{name[:80]!r} is no name of a token: up to 64 letters, digits and ._@- in ASCII, "
            "beginning with a letter or digit"
        )
    if name.casefold() in _RESERVED:
        raise BadTokenName(f"{name!r} means something else in the record; choose another name")
    return name


def as_name(text: str) -> str:
    """Return a name made of what a system calls its user, where that is none by itself."""
    name = re.sub(r"[^A-Za-z0-9._@-]", "-", text)[:60].lstrip("._@-")
    if not name:
        return "user"
    return f"user-{name}" if name.casefold() in _RESERVED else name


def scopes_text(scopes: frozenset[Scope]) -> str:
    """Return scopes as they are written: `decide+read`."""
    return "+".join(sorted(scopes))


def read_scopes(text: str) -> frozenset[Scope]:
    """Return the scopes that `scopes_text` wrote; unknown ones of a newer version are left out."""
    known = {str(one) for one in Scope}
    return frozenset(Scope(one) for one in text.split("+") if one in known)
