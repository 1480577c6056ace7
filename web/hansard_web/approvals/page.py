"""The inbox of approvals, and one approval with its whole story; decisions by plain forms."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends, Form, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_compiler.errors import HansardError
from hansard_store.approvals.errors import ActionBlocked, ApprovalConflict, BadProposal, NotAsked
from hansard_store.approvals.json import listed
from hansard_store.approvals.records import Approval
from hansard_store.approvals.service import Accountability
from hansard_store.principals.authority import ME
from hansard_store.principals.errors import PrincipalError
from hansard_store.principals.model import is_same, read_as
from hansard_web.app.addresses import way_back
from hansard_web.app.site import Site, SiteDep
from hansard_web.approvals.argument_editing import Edit, edit_of, looked_at
from hansard_web.approvals.decisions import Decision, decide, read_seen
from hansard_web.approvals.detail import Ask, read_ask
from hansard_web.approvals.inbox import Inbox, read_inbox
from hansard_web.approvals.labels import clean
from hansard_web.approvals.page_state import InboxState, read_state
from hansard_web.approvals.worker import AccountsDep
from hansard_web.principals.requests import may_not_decide, must_sign_in, principal_of
from hansard_web.ui.forms import OwnForm

router = APIRouter()
SOURCE: Final = "page"


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a decision was not taken, and what a person wrote that must not be lost."""

    title: str
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalsPage:
    """The list, and beside it the approval that was chosen or stands first."""

    inbox: Inbox
    ask: Ask | None
    edit: Edit | None
    refused: Refused | None
    may_not: str  # why this reader cannot decide; "" who can
    may_not_again: str  # why this reader cannot approve this draft, and can do all else; or ""
    must_sign_in: bool  # and it is that nobody is signed in
    needs_person: bool  # a decision takes a credential
    here: str  # the address of what is shown
    next_href: str | None  # what waits beside this one
    stream_href: str
    snippet: tuple[str, ...] = (
        '@hansard.tool(effect="write", describe="Send {to} an e-mail: {subject}", wait=True)',
        "def send_email(to: str, subject: str, body: str) -> str: ...",
        'send_email("ana@example.com", "Q3", "…")  # waits until you decide here',
    )


# async: reading the address is no work for a worker thread.
async def inbox_state(request: Request) -> InboxState:
    """Return the state of the list that the address describes."""
    return read_state(request.query_params)


StateDep = Annotated[InboxState, Depends(inbox_state)]


@router.get("/approvals")
def inbox(request: Request, site: SiteDep, accounts: AccountsDep, state: StateDep) -> Response:
    return _answer(request, site, accounts.store, state)


@router.get("/approvals/{approval_id}")
def approval(
    request: Request,
    site: SiteDep,
    accounts: AccountsDep,
    state: StateDep,
    approval_id: str,
    edit: Annotated[str, Query()] = "",
) -> Response:
    return _answer(request, site, accounts.store, state, approval_id, is_edit=bool(edit))


@router.post("/approvals/{approval_id}", dependencies=[OwnForm])
def take_decision(
    request: Request,
    site: SiteDep,
    accounts: AccountsDep,
    state: StateDep,
    approval_id: str,
    decision: Annotated[str, Form()] = "",
    note: Annotated[str, Form()] = "",
    revision: Annotated[int | None, Form()] = None,
    arguments: Annotated[str, Form()] = "",
    by: Annotated[str, Form()] = "",
    result_ref: Annotated[str, Form()] = "",
    seen: Annotated[list[str], Form()] = [],  # noqa: B006 - FastAPI copies it
    back: Annotated[str, Form()] = "",
) -> Response:
    """Decide, and go to what was decided; 409 with the first decision where somebody was first."""
    store = accounts.store.from_source(SOURCE)
    if decision == "preview":
        looked = looked_at(store.approval(approval_id), arguments)
        status = HTTPStatus.UNPROCESSABLE_ENTITY if looked.problem else HTTPStatus.OK
        return _answer(request, site, store, state, approval_id, edit=looked, status=status)
    given = Decision(
        kind=decision,
        by=by.strip() or ME,
        note=note,
        result_ref=result_ref.strip(),
        revision=revision,
        arguments=arguments,
        seen=read_seen(seen),
    )
    try:
        found = decide(store, approval_id, given)
    except (ApprovalConflict, BadProposal, ActionBlocked, PrincipalError) as error:
        status, refused = _refusal(error, note)
        edit = looked_at(store.approval(approval_id), arguments) if arguments else None
        return _answer(
            request, site, store, state, approval_id, edit=edit, refused=refused, status=status
        )
    there = way_back(back) if back else state.address(found.approval_id)
    return RedirectResponse(there, HTTPStatus.SEE_OTHER)


def page_of(
    request: Request,
    site: Site,
    store: Accountability,
    state: InboxState,
    approval_id: str | None,
    *,
    edit: Edit | None = None,
    refused: Refused | None = None,
) -> ApprovalsPage:
    """Read what a page shows; without a choice, what stands first."""
    inbox = read_inbox(store, state)
    wanted = approval_id or inbox.first_id
    ask = read_ask(store, wanted) if wanted else None
    shown = None if ask is None else ask.approval
    following = [
        one
        for group in inbox.groups
        if group.name == "awaiting"
        for one in group.items
        if shown is None or one.approval_id != shown.approval_id
    ]
    return ApprovalsPage(
        inbox=inbox,
        ask=ask,
        edit=edit,
        refused=refused,
        may_not=may_not(request, site, shown),
        may_not_again=_may_not_again(request, shown),
        must_sign_in=must_sign_in(request, site.settings),
        needs_person=site.settings.needs_principal,
        here=state.address("" if shown is None else shown.approval_id),
        next_href=following[0].href if following else None,
        stream_href=_stream_href(state, ask, is_busy=edit is not None),
    )


def may_not(request: Request, site: Site, approval: Approval | None) -> str:
    """Return why the reader of a request cannot decide about an approval, "" for one who can."""
    principal = principal_of(request)
    refused = may_not_decide(request, site.settings)
    if refused or principal is None or approval is None or not site.settings.needs_principal:
        return refused
    if read_as(principal.name, approval.requested_by) is not None:
        return f"{principal.name} requested this: another principal decides about it."
    asked = [one.name for one in approval.approvers[: approval.asked]]
    if asked and not any(is_same(principal.name, one) for one in asked):
        names = clean(listed(asked))
        return f"You are signed in as {principal.name}, and {names} decide about this."
    return ""


def _may_not_again(request: Request, approval: Approval | None) -> str:
    """Return that the reader approved this draft before, and it awaits somebody else."""
    principal = principal_of(request)
    if principal is None or approval is None or not approval.is_pending:
        return ""
    if not any(is_same(principal.name, one.name) for one in approval.approved_by):
        return ""
    return "You approved this draft. It awaits another person."


def _answer(
    request: Request,
    site: Site,
    store: Accountability,
    state: InboxState,
    approval_id: str | None = None,
    *,
    is_edit: bool = False,
    edit: Edit | None = None,
    refused: Refused | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    if is_edit and approval_id is not None:
        edit = edit_of(store.approval(approval_id))
    page = page_of(request, site, store, state, approval_id, edit=edit, refused=refused)
    return site.renderer.page(request, "approvals.html", here="approvals", page=page, status=status)


def _refusal(error: HansardError, note: str) -> tuple[HTTPStatus, Refused]:
    text = str(error)
    if isinstance(error, NotAsked):
        return HTTPStatus.FORBIDDEN, Refused("Not by you:", text, note)
    if isinstance(error, ApprovalConflict):
        return HTTPStatus.CONFLICT, Refused("Nothing was changed:", text, note)
    if isinstance(error, PrincipalError):
        return HTTPStatus.FORBIDDEN, Refused("Not by you:", text, note)
    if isinstance(error, ActionBlocked):
        return HTTPStatus.FORBIDDEN, Refused("Policy does not let this run:", text, note)
    return HTTPStatus.UNPROCESSABLE_ENTITY, Refused("Not yet:", text, note)


def _stream_href(state: InboxState, ask: Ask | None, *, is_busy: bool) -> str:
    query = parse_qsl(state.address().partition("?")[2])
    if ask is not None:
        is_read = ask.is_open or is_busy
        query += [
            ("id", ask.approval.approval_id),
            ("seen", f"{ask.mark}-{int(is_read)}"),
        ]
    return "/live/approvals" + (f"?{urlencode(query)}" if query else "")
