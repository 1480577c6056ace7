"""Bodies of requests and answers about approvals and events."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from hansard_compiler.compile.models import Model, TopLevel
from hansard_compiler.models.json_schema import (
    A_NUMBER,
    NOT_BLANK,
    Schema,
    any_of,
    both,
    having,
    left_out,
)
from hansard_store.approvals.errors import InvalidProposal
from hansard_store.approvals.json import ApprovalItem, AuditEvent, ChainReportBody, HeadItem
from hansard_store.approvals.records import (
    HOUR_NS,
    Action,
    Approver,
    Flag,
    Outcome,
    PolicyNote,
    Proposal,
)
from hansard_store.audit.event_types import EventType
from hansard_store.audit.external_events import REPORTED_TYPES
from hansard_store.bodies import Answer, Description, Page
from hansard_store.policy.stored_policy import FACTS

Name = Annotated[
    str, Field(min_length=1, max_length=200, json_schema_extra={"format": "printable"})
]
Text = Annotated[str, Field(max_length=20_000)]
Note = Annotated[str, Field(max_length=20_000, json_schema_extra={"pattern": NOT_BLANK})]
Seconds = Annotated[float, Field(gt=0, le=90 * 24 * 3600), A_NUMBER]
HexId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
StepId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}-[0-9a-f]{16}$")]
_SECOND_NS = 1_000_000_000


class FieldInput(Model):
    """What the proposer knows of one argument; its value is taken from the arguments."""

    name: str
    flag: Flag | None = None
    value: Any = None


class ApproverInput(Model):
    """Somebody who is asked, and for how long before the next one is."""

    name: Name
    escalates_after_s: Seconds | None = None


class ActionInput(Model):
    tool: Name
    arguments: dict[str, Any]


class PolicyNoteInput(Model):
    """What the proposer's own rules said of the action."""

    rule_ids: list[Name] = Field(default=[], max_length=100)
    reason: Text | None = None
    obligations: list[Literal["require_approval", "require_receipt"]] = Field(
        default=[], max_length=2, description="what must be met before the action runs"
    )
    receipts: list[Name] = Field(default=[], max_length=1000)


_OF_CHANNEL: Final[list[Schema]] = [
    {"properties": {"one_per_channel": {"const": False}}},
    having("channel"),
]


class ProposalInput(Model):
    """An action that is to be approved before it runs."""

    model_config = ConfigDict(json_schema_extra=any_of(*_OF_CHANNEL))

    tool: Name
    arguments: dict[str, Any] = Field(description="the exact ones; secrets in them are not kept")
    description: Text | None = None
    fields: list[FieldInput] = Field(default=[])
    flags: dict[str, Flag] = Field(default={}, description="of arguments, by name")
    effect: Literal["read", "write"] = "write"
    agent: Name | None = None
    run_id: HexId | None = None
    step_id: StepId | None = None
    channel: Name | None = None
    expires_in_s: Annotated[Seconds, Field(json_schema_extra={"minimum": 1})] | None = Field(
        default=None, description="3600 unless given"
    )
    one_per_channel: bool = Field(default=False, description="end what is pending there")
    batch_id: HexId | None = None
    undo_of: str | None = None
    undo: ActionInput | None = Field(default=None, description="the action that would undo this")
    has_undo: bool = Field(default=False, description="its program says how, once it is done")
    approvers: list[ApproverInput | Name] = Field(default=[], max_length=20)
    approvals_required: Annotated[int, Field(ge=1, le=20), A_NUMBER] = Field(
        default=1, description="of distinct people, out of `approvers` where there are any"
    )
    policy: PolicyNoteInput | None = None
    facts: dict[str, Name] = Field(
        default={},
        description="for policy: tool_class, sensitivity …",
        json_schema_extra={"propertyNames": {"enum": [*FACTS]}},
    )
    proposal_key: Annotated[str, Field(min_length=16, max_length=200)] | None = Field(
        default=None, description="sent again, it is the same proposal"
    )

    def proposal(self) -> Proposal:
        """Return what the store is to keep."""
        flags = {one.name: one.flag for one in self.fields if one.flag} | self.flags
        return Proposal(
            tool=self.tool,
            arguments=self.arguments,
            description=self.description,
            flags=flags,
            effect=self.effect,
            agent=self.agent,
            run_id=self.run_id,
            step_id=self.step_id,
            channel=self.channel,
            lifetime_ns=_ns(self.expires_in_s) or HOUR_NS,
            one_per_channel=self.one_per_channel,
            undo_of=self.undo_of,
            undo=action_of(self.undo),
            approvers=[
                Approver(one)
                if isinstance(one, str)
                else Approver(one.name, _ns(one.escalates_after_s))
                for one in self.approvers
            ],
            approvals_required=self.approvals_required,
            batch_id=self.batch_id,
            proposer_policy=_policy_note(self.policy),
            proposal_key=self.proposal_key,
            facts=self.facts,
        )


_PROPOSED: Final = [
    *(both(having("tool"), {"properties": {"batch": {"maxItems": 0}}}, of) for of in _OF_CHANNEL),
    both(having(batch={"minItems": 1}), left_out("tool")),
]


class Propose(ProposalInput):
    """One action, or several that are shown and decided together (`batch`)."""

    model_config = ConfigDict(json_schema_extra=any_of(*_PROPOSED))

    schema_version: Literal["1"] = "1"
    tool: Name | None = None  # type: ignore[assignment]  # of a batch each has its own
    arguments: dict[str, Any] = Field(default={})
    batch: list[ProposalInput] = Field(default=[], max_length=100)

    def proposals(self) -> list[Proposal]:
        """Return what is proposed; raises InvalidProposal for both kinds at once, or none."""
        if self.batch and self.tool is None:
            return [one.proposal() for one in self.batch]
        if self.batch or self.tool is None:
            raise InvalidProposal("tool", "propose one tool with its arguments, or a batch of them")
        return [self.proposal()]


class Approve(TopLevel):
    """Edited arguments are a draft of their own, and pass policy again."""

    model_config = ConfigDict(
        json_schema_extra=any_of(
            both({"properties": {"batch": {"const": False}}}, left_out("revisions")),
            both(
                having(batch={"const": True}, revisions={"minProperties": 1}),
                left_out("arguments", "note", "revision"),
            ),
        )
    )

    by: Name | None = None
    arguments: dict[str, Any] | None = None
    note: Text | None = Field(default=None, description="kept with this approval in the log")
    revision: Annotated[int, Field(ge=1), A_NUMBER] | None = Field(
        default=None,
        description="of the draft that was looked at; another one is refused. Needed where there "
        "have been several drafts, unless `arguments` says what is approved",
    )
    batch: bool = Field(default=False, description="those of its batch that `revisions` names")
    revisions: (
        Annotated[
            dict[HexId, Annotated[int, Field(ge=1), A_NUMBER]],
            Field(json_schema_extra={"additionalProperties": False}),
        ]
        | None
    ) = Field(
        default=None, description="of a batch: the drafts looked at, `{approval_id: revision}`"
    )


class Reject(TopLevel):
    by: Name | None = None
    reason: Text | None = None
    revision: Annotated[int, Field(ge=1), A_NUMBER] | None = None


class Revise(TopLevel):
    by: Name | None = None
    note: Note
    revision: Annotated[int, Field(ge=1), A_NUMBER] | None = None


class Repropose(BaseModel):
    """A new draft; the tool stays. Whatever else a proposal says is not looked at."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    schema_version: Literal["1"] = "1"
    arguments: dict[str, Any]
    description: Text | None = None
    fields: list[FieldInput] = Field(default=[])
    flags: dict[str, Flag] = {}
    agent: Name | None = None
    tool: Name | None = None
    step_id: str | None = Field(default=None, description="the step that proposes this draft")

    def all_flags(self) -> dict[str, Flag]:
        return {one.name: one.flag for one in self.fields if one.flag} | self.flags


class ClaimBody(TopLevel):
    """Without arguments those of the record are answered, where it has them exactly."""

    arguments: dict[str, Any] | None = None
    token: Annotated[str, Field(max_length=200)] | None = None
    proposal_key: Annotated[str, Field(max_length=200)] | None = None
    lease_s: Seconds = Field(default=900, description="without a result by then it is unknown")


class Result(TopLevel):
    claim_id: HexId
    ok: bool | None = Field(description="null: it was cut off half-way, so nobody knows")
    result_ref: Name | None = None
    result_digest: Digest | None = Field(
        default=None,
        description="sha256: and the digest of the result: of a text its UTF-8, of JSON its "
        "canonical form. Kept as a keyed hash; memory of the writer approved_tool_output needs it",
    )
    error: Text | None = None
    undo: ActionInput | None = Field(default=None, description="what would undo it")


class Settle(TopLevel):
    """What a person found of an action whose outcome nobody knew."""

    by: Name | None = None
    outcome: Outcome
    note: Note = Field(description="how they know: what was looked at, and what was there")
    result_ref: Name | None = Field(default=None, description="what it made, where it ran")


class Undo(TopLevel):
    by: Name | None = None


# What an event of each type needs.
_EVENTS: Final = [
    having(needed, type={"enum": list(types)})
    for types, names in {
        (EventType.MESSAGE_INBOUND, EventType.MESSAGE_OUTBOUND): ("channel", "conversation"),
        (
            EventType.TOOL_CALLED, EventType.TOOL_RETURNED, EventType.POLICY_BLOCKED,
            EventType.ACTION_RECEIPTED,
        ): ("tool",),
        (EventType.FAILURE,): ("action", "tool"),
    }.items()
    for needed in names
]  # fmt: skip


class NoteEvent(BaseModel):
    """An event that a program tells; which parts it needs depends on its type."""

    model_config = ConfigDict(extra="ignore", frozen=True, json_schema_extra=any_of(*_EVENTS))

    schema_version: Literal["1"] = "1"
    type: Annotated[str, WithJsonSchema({"type": "string", "enum": list(REPORTED_TYPES)})]
    actor: Literal["agent", "tool"] | None = Field(
        default=None, description="the type says who it was; `me` and `system` are refused"
    )
    tool: Name | None = None
    action: Name | None = None
    subject: Name | None = None
    effect: Literal["read", "write"] | None = None
    agent: Name | None = None
    by: Name | None = None
    channel: Name | None = None
    conversation: Name | None = None
    run_id: HexId | None = None
    step_id: StepId | None = None
    approval_id: HexId | None = None
    call_id: Name | None = None
    arguments: dict[str, Any] | None = None
    result: Any = None
    result_ref: Name | None = None
    ref: Name | None = None
    text: str | None = None
    ok: bool | None = None
    error: Text | None = None
    reason: Text | None = None
    rule_ids: list[Name] | None = None
    time_ns: Annotated[int, Field(ge=0, lt=1 << 63), A_NUMBER] | None = Field(
        default=None, description="when it happened; earlier than now makes it late"
    )


def action_of(action: ActionInput | None) -> Action | None:
    """Return an action as the store has it."""
    return None if action is None else Action(action.tool, action.arguments)


def _policy_note(note: PolicyNoteInput | None) -> PolicyNote | None:
    if note is None:
        return None
    return PolicyNote(
        rule_ids=tuple(note.rule_ids),
        reason=note.reason,
        obligations=tuple(note.obligations),
        receipts=tuple(note.receipts),
    )


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * _SECOND_NS)


# Answers.


class ApprovalBody(ApprovalItem, Answer):
    memories: Annotated[list[str], Description("ids of what was written to memory under it")]
    token: NotRequired[
        Annotated[
            str | None,
            Description("to claim with; only for the proposal key, once approved"),
        ]
    ]


class ProposedBody(ApprovalItem, Answer):
    proposal_key: Annotated[str, Description("keep it: it fetches the token")]
    replaced: Annotated[list[str], Description("approvals that ended for this one")]


class ProposedItem(ApprovalItem):
    proposal_key: str
    replaced: list[str]


class ProposedBatch(Answer):
    batch_id: str
    items: list[ProposedItem]


class ApprovedBatch(Answer):
    batch_id: str
    items: list[ApprovalItem]


class Approvals(Page):
    """Approvals, the newest first."""

    items: list[ApprovalItem]
    waiting: Annotated[dict[str, int], Description("how many are awaiting and revised, in all")]


class Claimed(Answer):
    claim_id: str
    arguments: dict[str, Any]
    approval_id: str


class Events(Page):
    """Events, the newest first."""

    items: list[AuditEvent]


class Noted(Answer):
    seq: int


class HeadBody(HeadItem, Answer):
    pass


class Verified(Answer, ChainReportBody):
    """What checking the chain found; without an anchor a cut end is not seen."""
