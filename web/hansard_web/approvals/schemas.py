"""What the routes of approvals and events answer."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from hansard_store.approvals.json import ApprovalItem, AuditEvent, ChainReportBody, HeadItem
from hansard_store.bodies import Answer, Description, Page


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
