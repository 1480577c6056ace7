"""In whose name a store is used: what becomes of the name that somebody gives with a decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from hansard_store.approvals.unit_of_work import Who
from hansard_store.audit.event_types import Actor
from hansard_store.principals.errors import CredentialsRequired
from hansard_store.principals.model import CLAIMED, NOBODY, Principal, check_given

ME: Final = "me"  # a person without a name
DecideMode = Literal["claimed", "principals", "anyone"]


@dataclass(frozen=True, slots=True)
class Authority:
    """Who may decide in a store, and who uses it now.

    A program with the data folder at hand decides in the name that it gives, `claimed`. A server
    knows its callers, as `principals`, unless its setting lets `anyone` decide.
    """

    mode: DecideMode = "claimed"
    principal: Principal = CLAIMED

    @classmethod
    def of(cls, mode: DecideMode) -> Authority:
        """Return the authority of a mode before anybody is known."""
        return cls(mode, CLAIMED if mode == "claimed" else NOBODY)

    @property
    def is_open(self) -> bool:
        """Whether anyone decides about anything, also about what they requested."""
        return self.mode == "anyone"

    def acting(self, principal: Principal | None) -> Authority:
        """Return the same for a caller; None: a request without a credential."""
        return replace(self, principal=principal or NOBODY)

    def requester(self, agent: str) -> Who:
        """Return who requests an action: an agent by name, as a principal. Raises NameReserved."""
        return Who(Actor.AGENT, check_given(agent), self.principal)

    def decider(self, stated: str) -> Who:
        """Return who decides: the principal, whatever name was given beside it.

        Raises CredentialsRequired where a principal is needed and there is none, NameReserved for a
        name of Hansard's own.
        """
        check_given(stated)
        principal = self.principal
        if principal.is_authenticated:
            is_other = stated not in ("", ME, principal.name)
            return Who(Actor.ME, principal.name, principal, stated if is_other else "")
        if self.mode == "principals":
            raise CredentialsRequired
        return Who(Actor.ME, stated, CLAIMED if stated not in ("", ME) else principal)
