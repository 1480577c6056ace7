"""What the routes of approvals and events answer."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field

from hansard_store.approvals.json import ApprovalItem, AuditEvent, ChainReportBody, HeadItem
from hansard_store.bodies import Answer, Page


class ApprovalBody(ApprovalItem, Answer):
    memories: Annotated[list[str], Field(description="ids of what was written to memory under it")]
    token: NotRequired[
        Annotated[
            str | None,
            Field(description="to claim with; only for the proposal key, once approved"),
        ]
    ]


class ProposedBody(ApprovalItem, Answer):
    proposal_key: Annotated[str, Field(description="keep it: it fetches the token")]
    replaced: Annotated[list[str], Field(description="approvals that ended for this one")]


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
    waiting: Annotated[
        dict[str, int], Field(description="how many are awaiting and revised, in all")
    ]


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
