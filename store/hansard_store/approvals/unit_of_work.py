"""One compound write: what its record and its event share inside one transaction."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from hansard_store.approvals.errors import ApprovalConflict
from hansard_store.approvals.records import Approval
from hansard_store.audit.event_types import Actor, Content, Event, EventFilter, EventLog, EventType
from hansard_store.content.retention import Retention
from hansard_store.ingest.liveness import touch_run
from hansard_store.principals.model import Principal

_TOKEN_WORD = b"hansard approval token\0"


@dataclass(frozen=True, slots=True)
class Who:
    """Who acts: the kind, a name where one is known, and how it is known."""

    actor: Actor
    name: str = ""
    principal: Principal | None = None  # None: not asked for
    stated: str = ""  # the name that was given, where the principal has another

    @property
    def text(self) -> str:
        return f"{self.actor}:{self.name}" if self.name else str(self.actor)

    @property
    def method(self) -> str | None:
        """How the principal was authenticated, as records keep it."""
        return None if self.principal is None else self.principal.method

    @property
    def proof(self) -> dict[str, str]:
        """What an event's body says of the principal: its name only where it was proved."""
        if self.principal is None:
            return {}
        name = {"principal": self.principal.name} if self.principal.is_authenticated else {}
        stated = {"stated_by": self.stated} if self.stated else {}
        return {**name, **stated, "auth_method": self.principal.method}


SYSTEM = Who(Actor.SYSTEM, "hansard")


@dataclass(frozen=True, slots=True)
class ApprovalRefusal:
    """Refused, and what was found out on the way is committed all the same."""

    error: ApprovalConflict


@dataclass(frozen=True, slots=True)
class Work:
    """A transaction that is open, and what it is done with."""

    connection: apsw.Connection
    log: EventLog
    keeper: Retention
    now_ns: int
    source: str
    is_open: bool = False  # anyone decides about anything, as the setting `decide` says

    def tell(
        self,
        type: EventType,
        who: Who,
        *,
        action: str,
        subject: str,
        body: Mapping[str, Any] = {},
        contents: Sequence[Content] = (),
        approval_id: bytes | None = None,
        run_id: str | None = None,
        step_id: str | None = None,
        time_ns: int | None = None,
    ) -> int:
        """Append an event, and return its number; one of a later time than now happened now."""
        span = step_id.partition("-")[2] if step_id else ""
        is_late = time_ns is not None and time_ns < self.now_ns
        return self.log.append(
            Event(
                type=type,
                actor=who.actor,
                who=who.name,
                action=action,
                source=self.source,
                subject=subject,
                time_ns=self.now_ns if time_ns is None else min(time_ns, self.now_ns),
                late=is_late,
                approval_id=approval_id,
                trace_id=bytes.fromhex(run_id) if run_id else None,
                span_id=bytes.fromhex(span) if span else None,
                body={
                    name: value
                    for name, value in {**body, **who.proof}.items()
                    if value is not None
                },
                contents=tuple(contents),
            )
        )

    def tell_of(
        self,
        type: EventType,
        who: Who,
        approval: Approval,
        *,
        body: Mapping[str, Any] = {},
        contents: Sequence[Content] = (),
        step_id: str | None = None,
    ) -> int:
        """Append an event of an approval; its run is shown again wherever it is followed.

        It names the step that proposed the draft which it is about; `step_id` is that of a new one.
        """
        step_id = step_id or self._step_of_draft(approval)
        run_id = approval.run_id if step_id is None else step_id.partition("-")[0]
        seq = self.tell(
            type,
            who,
            action=approval.tool,
            subject=f"approval:{approval.approval_id}",
            body={"revision": approval.revision, **body},
            contents=contents,
            approval_id=approval.key,
            run_id=run_id,
            step_id=step_id,
        )
        for one in {run_id, approval.run_id} - {None}:
            touch_run(self.connection, bytes.fromhex(str(one)))
        return seq

    def _step_of_draft(self, approval: Approval) -> str | None:
        """Return the step that proposed the current draft, as far as the log has it."""
        if approval.revision == 1:
            return approval.step_id
        filters = EventFilter(type=EventType.ACTION_REPROPOSED, approval_id=approval.key)
        for event in self.log.read(filters, limit=1):
            if event.trace_id is not None and event.span_id is not None:
                return f"{event.trace_id.hex()}-{event.span_id.hex()}"
        return approval.step_id


def new_proposal_key() -> str:
    """Return what only the proposer holds."""
    return f"hpk_{secrets.token_urlsafe(24)}"


def hash_of_secret(text: str) -> bytes:
    """Return what is stored of a key or token."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def token_of(key: bytes, approval: Approval) -> str:
    """Return the token of an approved draft: which action, with which arguments, until when.

    It follows from the store's key, so that only its hash need be stored; and it follows from the
    record, so that an altered record does not fit it.
    """
    bound = "\0".join(
        (
            approval.approval_id, str(approval.revision), approval.tool, approval.arguments_hash,
            str(approval.token_ends_ns),
        )
    )  # fmt: skip
    return "hat_" + hmac.digest(key, _TOKEN_WORD + bound.encode(), hashlib.sha256).hex()
