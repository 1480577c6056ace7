"""Approvals over HTTP: propose, wait, decide, claim, tell the result (docs/accountability.md)."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated

from anyio import to_thread
from fastapi import Header, Query
from pydantic import WithJsonSchema
from starlette.requests import Request

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.approvals.errors import ClaimRefused
from hansard_store.approvals.json import approval_body, approval_json
from hansard_store.approvals.records import (
    EXECUTION_STATES,
    PENDING,
    Approval,
    ApprovalFilter,
    Proposed,
    Status,
)
from hansard_store.approvals.rows import cursor_after, read_cursor, version_of
from hansard_store.bodies import body_of
from hansard_store.database.cursors import Page
from hansard_store.errors import InvalidQueryError
from hansard_store.principals.authority import ME
from hansard_store.principals.errors import ScopeMissing
from hansard_web.api.parameters import Cursor, Limit, one_of
from hansard_web.api.queries import read_word, trace_id_of
from hansard_web.api.request_bodies import JsonRoute
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep
from hansard_web.approvals import bodies
from hansard_web.approvals.bodies import (
    ApprovalBody,
    ApprovedBatch,
    Claimed,
    ProposedBatch,
    ProposedItem,
)
from hansard_web.approvals.worker import Accounts, AccountsDep
from hansard_web.principals.dependencies import is_own_only

router = NounRouter("approvals", route_class=JsonRoute)
ProposalKey = Annotated[
    str | None,
    Header(alias="Hansard-Proposal-Key", description="what the proposer was given"),
]
MAX_WAIT_S = 60.0
_PATH = "/v1/approvals/{approval_id}"


@router.post(
    "/v1/approvals",
    "approvals.bodies.ProposedBody",
    "approvals.bodies.ProposedBatch",
    status=201,
)
def propose(accounts: AccountsDep, request: bodies.Propose) -> ApiResponse:
    """Propose an action, or a batch of them; 403 `blocked` where policy denies it.

    Keep the `proposal_key`: it fetches the token once the action is approved.
    """
    proposals = request.proposals()
    if not request.batch:
        body = _proposed(accounts.store.propose(proposals[0]))
        return ApiResponse(body, status_code=HTTPStatus.CREATED)
    made = accounts.store.propose_batch(proposals)
    items = [_proposed(one) for one in made]
    batch = body_of(ProposedBatch, batch_id=made[0].approval.batch_id, items=items)
    return ApiResponse(batch, status_code=HTTPStatus.CREATED)


@router.get("/v1/approvals", "approvals.bodies.Approvals")
def list_approvals(
    accounts: AccountsDep,
    site: SiteDep,
    limit: Limit,
    status: Annotated[
        list[Annotated[str, one_of(*Status)]], Query(description="any of these")
    ] = [],  # noqa: B006
    channel: Annotated[str | None, Query()] = None,
    run: Annotated[str | None, Query(description="id of a run, or its beginning")] = None,
    agent: Annotated[str | None, Query()] = None,
    tool: Annotated[str | None, Query()] = None,
    batch: Annotated[
        str | None,
        WithJsonSchema({"type": "string", "pattern": "^[0-9a-f]{32}$"}),
        Query(description="id of a batch"),
    ] = None,
    execution: Annotated[
        str | None,
        one_of(*EXECUTION_STATES),
        Query(description="none, claimed, done, failed, unknown or not_run"),
    ] = None,
    cursor: Cursor = None,
) -> ApiResponse:
    """List approvals, the newest first."""
    statuses = (read_word("status", one, list(Status)) for one in status)
    filters = ApprovalFilter(
        status=tuple(str(one) for one in statuses if one),
        channel=channel or None,
        run_id=trace_id_of(run, site.readers.read).hex() if run else None,
        agent=agent or None,
        tool=tool or None,
        batch_id=batch or None,
        execution=read_word("execution", execution, EXECUTION_STATES),
    )
    found = accounts.store.approvals(filters, before=read_cursor(cursor), limit=limit)
    page = Page(found, cursor_after(found, limit=limit))
    return page_answer(page, approval_json, waiting=accounts.store.waiting())


@router.get(_PATH, "approvals.bodies.ApprovalBody")
async def get_approval(
    request: Request,
    accounts: AccountsDep,
    approval_id: str,
    wait: Annotated[
        str | None,
        WithJsonSchema({"type": "number", "minimum": 0, "maximum": MAX_WAIT_S}),
        Query(description="seconds, up to 60: until it is decided or redrafted"),
    ] = None,
    revision: Annotated[
        int | None, Query(ge=1, description="the draft that is known; another one answers at once")
    ] = None,
    proposal_key: ProposalKey = None,
) -> ApiResponse:
    """Return an approval with its drafts; `wait` holds the answer until something happens to it.

    A token that may only send gets what it proposed, with the key of the proposal.
    """
    until_s = time.monotonic() + _wait_s(wait)
    if is_own_only(request):
        await to_thread.run_sync(_require_own, accounts, approval_id, proposal_key)
    full_id = (await to_thread.run_sync(accounts.store.approval, approval_id)).approval_id
    async with accounts.watch.watching(lambda store: version_of(store, full_id)) as watching:
        first = found = await to_thread.run_sync(accounts.store.approval, full_id)
        known = first.revision if revision is None else revision
        while found.status in PENDING and found.revision == known and found.status == first.status:
            left_s = until_s - time.monotonic()
            # Its own time may be over before that.
            over_s = (found.expires_ns - accounts.store.now_ns()) / 1e9
            if left_s <= 0 or accounts.watch.is_closing:
                break
            await watching.changed(within_s=max(0.01, min(left_s, over_s)))
            found = await to_thread.run_sync(accounts.store.approval, full_id)
    return ApiResponse(await to_thread.run_sync(_whole, accounts, full_id, proposal_key))


@router.post(_PATH + "/approve", "approvals.bodies.ApprovalBody", "approvals.bodies.ApprovedBatch")
def approve(accounts: AccountsDep, approval_id: str, body: bodies.Approve) -> ApiResponse:
    """Grant an action; 409 with the first decision where somebody was first.

    One that has had several drafts takes the `revision` that was looked at, else it is 409
    `revision_required`.

    Where it requires several approvals it stays `awaiting` until the last of them.
    """
    by = body.by or ME
    if body.batch:
        batch_id = accounts.store.approval(approval_id).batch_id
        if batch_id is None:
            raise InvalidQueryError("batch", "this approval is of no batch")
        _refuse_of_one(body)
        # Without them: its proposer may have added to it since.
        granted = accounts.store.approve_batch(batch_id, by=by, revisions=body.revisions or {})
        items = [approval_json(one) for one in granted]
        return ApiResponse(body_of(ApprovedBatch, batch_id=batch_id, items=items))
    if body.revisions is not None:
        raise InvalidQueryError(
            "revisions", "revisions is of a batch: set `batch`, or give the `revision`"
        )
    return _approval_answer(
        accounts,
        accounts.store.approve(
            approval_id,
            by=by,
            arguments=body.arguments,
            revision=body.revision,
            comment=body.note,
        ),
    )


@router.post(_PATH + "/reject", "approvals.bodies.ApprovalBody")
def reject(accounts: AccountsDep, approval_id: str, body: bodies.Reject) -> ApiResponse:
    """End an action; nothing runs."""
    by = body.by or ME
    return _approval_answer(
        accounts,
        accounts.store.reject(approval_id, by=by, reason=body.reason, revision=body.revision),
    )


@router.post(_PATH + "/revise", "approvals.bodies.ApprovalBody")
def revise(accounts: AccountsDep, approval_id: str, body: bodies.Revise) -> ApiResponse:
    """Send an action back to its agent with a note."""
    by = body.by or ME
    return _approval_answer(
        accounts,
        accounts.store.revise(approval_id, by=by, note=body.note, revision=body.revision),
    )


@router.post(_PATH + "/repropose", "approvals.bodies.ApprovalBody")
def repropose(
    accounts: AccountsDep,
    approval_id: str,
    body: bodies.Repropose,
    proposal_key: ProposalKey = None,
) -> ApiResponse:
    """Bring a revised action back with a new draft; its time begins anew.

    Only its proposer may: the `proposal_key` is needed.
    """
    if proposal_key is None:
        raise ClaimRefused("bad_token", "the key of the proposal is needed")
    if body.tool is not None and body.tool != accounts.store.approval(approval_id).tool:
        raise InvalidQueryError("tool", "a new draft is of the same tool; propose another action")
    made = accounts.store.repropose(
        approval_id,
        body.arguments,
        description=body.description,
        flags=body.all_flags(),
        by=body.agent,
        proposal_key=proposal_key,
        step_id=body.step_id,
    )
    return _approval_answer(accounts, made)


@router.post(_PATH + "/claim", "approvals.bodies.Claimed")
def claim(
    accounts: AccountsDep,
    approval_id: str,
    body: bodies.ClaimBody,
    proposal_key: ProposalKey = None,
) -> ApiResponse:
    """Take the right to run an approved action, once, with exactly the approved arguments."""
    taken = accounts.store.claim(
        approval_id,
        body.arguments,
        token=body.token,
        proposal_key=body.proposal_key or proposal_key,
        lease_s=body.lease_s,
        holder="http",
        is_trusted=False,
    )
    return ApiResponse(body_of(Claimed, taken, approval_id=taken.approval.approval_id))


@router.post(_PATH + "/result", "approvals.bodies.ApprovalBody")
def report_result(accounts: AccountsDep, approval_id: str, body: bodies.Result) -> ApiResponse:
    """Tell how a claimed action ended, also after its outcome was believed unknown."""
    full_id = accounts.store.approval(approval_id).approval_id
    ended = accounts.store.finish(
        body.claim_id,
        ok=body.ok,
        result_ref=body.result_ref,
        error=body.error,
        undo=bodies.action_of(body.undo),
        approval_id=full_id,
        result_digest=body.result_digest,
    )
    return _approval_answer(accounts, ended)


@router.post(_PATH + "/settle", "approvals.bodies.ApprovalBody")
def settle(accounts: AccountsDep, approval_id: str, body: bodies.Settle) -> ApiResponse:
    """Say whether an action of unknown outcome had run; nothing runs by that.

    409 `outcome_known` where it is not unknown, or somebody was first.
    """
    settled = accounts.store.settle_outcome(
        approval_id,
        body.outcome,
        note=body.note,
        by=body.by or ME,
        result_ref=body.result_ref,
    )
    return _approval_answer(accounts, settled)


@router.post(_PATH + "/undo", "approvals.bodies.ProposedBody", status=201)
def undo(accounts: AccountsDep, approval_id: str, body: bodies.Undo) -> ApiResponse:
    """Propose the action that undoes an executed one; it is approved like any other."""
    made = accounts.store.undo(approval_id, by=body.by or ME)
    return ApiResponse(_proposed(made), status_code=HTTPStatus.CREATED)


def _refuse_of_one(body: bodies.Approve) -> None:
    """Raise InvalidQueryError where the approval of a batch says what is for one action alone."""
    for name in ("arguments", "note", "revision"):
        if getattr(body, name) is not None:
            raise InvalidQueryError(
                name, f"{name} is of one action: approve it alone, or the batch without {name}"
            )


def _approval_answer(accounts: Accounts, approval: Approval) -> ApiResponse:
    return ApiResponse(_whole(accounts, approval.approval_id, None))


def _require_own(accounts: Accounts, approval_id: str, proposal_key: str | None) -> None:
    """Refuse callers that may not read and do not hold the key of a proposal, if there is one."""
    with suppress(ClaimRefused, NotFoundError, AmbiguousIdError):
        if proposal_key is not None:
            accounts.store.token(approval_id, proposal_key)
            return
    raise ScopeMissing(
        "this token may not read; what it proposed itself it gets with the key of the proposal"
    )


def _whole(accounts: Accounts, approval_id: str, proposal_key: str | None) -> ApprovalBody:
    """Return an approval with its drafts; for its proposer the token, once there is one."""
    approval = accounts.store.approval(approval_id, with_drafts=True)
    memories = [one.memory_id for one in accounts.store.memories(approval_id)]
    body = approval_body(ApprovalBody, approval, memories=memories)
    if proposal_key is not None:
        try:
            body["token"] = accounts.store.token(approval_id, proposal_key)
        except ClaimRefused:
            body["token"] = None  # readers may read it; only the token is left out
    return body


def _proposed(made: Proposed) -> ProposedItem:
    # Its first draft is all there is, and it is above: the log need not be asked.
    return approval_body(
        ProposedItem,
        replace(made.approval, drafts=None),
        proposal_key=made.proposal_key,
        replaced=list(made.replaced),
    )


def _wait_s(text: str | None) -> float:
    if not text:
        return 0.0
    try:
        wait_s = float(text)
    except ValueError:
        wait_s = math.nan
    if not 0 <= wait_s <= MAX_WAIT_S:
        raise InvalidQueryError("wait", f"wait is {text[:40]!r}; it is 0 to {MAX_WAIT_S:g} seconds")
    return wait_s
