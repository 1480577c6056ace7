"""A principal: who acts, how that is known, and what it may do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal, get_args

from hansard_store.lookalikes import imitating_word, skeleton
from hansard_store.principals.errors import InvalidTokenName, NameReserved

Method = Literal["token", "session", "claimed", "none"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
AUTHENTICATED: Final = frozenset({"token", "session"})
# Plain characters that are read as others, as Unicode's table of confusables has them.
_READ_AS: Final = {"1": "l", "|": "l", "0": "o", "rn": "m", "vv": "w"}
_UNSEEN: Final = re.compile("[\u034f\ufe00-\ufe0f\U000e0100-\U000e01ef]")  # no letter, no space
_PAIRS: Final = re.compile("|".join(re.escape(one) for one in _READ_AS))
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
OWN_NAMES: Final = ("hansard", "system")  # of what Hansard does by itself
# Words that the record uses for something else than a person or program with a token.
_RESERVED: Final = frozenset(
    {*OWN_NAMES, "me", "agent", "tool", "none", "claimed", "anyone", "config", "unknown"}
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
    - `claimed`: a name was given, which nobody checked: by a program with the data folder at hand,
      or, with `decide = "anyone"`, by a request without a credential;
    - `none`: a request to a server without a credential, and without a name.
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


def name_key(name: str) -> str:
    """Return what makes a name one name, wherever names are compared.

    Letters of either case, forms of one letter (NFKC) and runs of spaces are the same; characters
    that are not seen, or that only turn the direction of writing, do not count.
    """
    return " ".join(unicodedata.normalize("NFKC", _seen(name)).casefold().split())


def is_same(one: str | None, other: str | None) -> bool:
    """Whether two names are of one principal; None is nobody."""
    return one is not None and other is not None and name_key(one) == name_key(other)


def looks_like(one: str, other: str) -> bool:
    """Whether two names are one, or are taken for one when they are read: `alice` and `a1ice`."""
    return is_same(one, other) or not _readings(one).isdisjoint(_readings(other))


def read_as(name: str, names: Iterable[str | None]) -> str | None:
    """Return the first of some names that a name is, or is taken for when it is read."""
    return next((one for one in names if one is not None and looks_like(name, one)), None)


def person_text(name: str | None, method: str | None) -> str:
    """Return who did something, for people: a name that nobody proved is marked as claimed.

    `method` is how it is known, None where no person did it.
    """
    if method is None or method in AUTHENTICATED:
        return name_text(name or "somebody")
    if method == NOBODY.method:
        return "somebody without a credential"
    return f"{name_text(name or 'somebody')} (claimed)"


def name_text(name: str) -> str:
    """Return a name, for people: one whose letters pass for plain ones is marked."""
    word = imitating_word(name)
    return name if word is None else f"{name} (looks like {skeleton(name)}, and is not)"


def distinct(names: Iterable[str]) -> list[str]:
    """Return names without those that are read as one before: of so many people they are."""
    found: list[str] = []
    for name in names:
        if not any(looks_like(name, one) for one in found):
            found.append(name)
    return found


def _seen(name: str) -> str:
    """Return a name without what is not seen of it."""
    shown = _UNSEEN.sub("", name)
    return "".join(one for one in shown if unicodedata.category(one) != "Cf")


def _readings(name: str) -> frozenset[str]:
    """Return what a name is read as: a capital I is an i or an l."""
    seen = _seen(name)
    both = (skeleton(seen), skeleton(seen.replace("I", "l")))
    return frozenset(_PAIRS.sub(lambda found: _READ_AS[found[0]], one) for one in both)


@lru_cache(maxsize=1_024)
def is_own_name(name: str) -> bool:
    """Whether a name is, or is read as, one that the record uses for Hansard itself."""
    return any(looks_like(name, one) for one in OWN_NAMES)


def check_given(name: str) -> str:
    """Return a name that a caller gives for a person, an agent or a tool; raises NameReserved."""
    if is_own_name(name):
        raise NameReserved(name)
    return name


def check_name(name: str) -> str:
    """Return a name that a token may have; raises InvalidTokenName."""
    if not _NAME.fullmatch(name):
        raise InvalidTokenName(
            f"{name[:80]!r} is no name of a token: up to 64 letters, digits and ._@- in ASCII, "
            "beginning with a letter or digit"
        )
    if any(looks_like(name, one) for one in _RESERVED):
        raise InvalidTokenName(f"{name!r} means something else in the record; choose another name")
    return name


def as_name(text: str) -> str:
    """Return a name made of what a system calls its user, where that is none by itself."""
    name = re.sub(r"[^A-Za-z0-9._@-]", "-", text)[:60].lstrip("._@-")
    if not name:
        return "user"
    return f"user-{name}" if any(looks_like(name, one) for one in _RESERVED) else name


def scopes_text(scopes: frozenset[Scope]) -> str:
    """Return scopes as they are written: `decide+read`."""
    return "+".join(sorted(scopes))


def read_scopes(text: str) -> frozenset[Scope]:
    """Return the scopes that `scopes_text` wrote; unknown ones of a newer version are left out."""
    known = {str(one) for one in Scope}
    return frozenset(Scope(one) for one in text.split("+") if one in known)
