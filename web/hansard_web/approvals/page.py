"""The inbox of approvals, and one approval with its whole story; decisions by plain forms."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends, Form, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_compiler.errors import HansardError
from hansard_store.approvals.argument_display import show, visible
from hansard_store.approvals.errors import (
    ActionBlocked,
    ApprovalConflict,
    InvalidProposal,
    NotAnApprover,
)
from hansard_store.approvals.json import listed, progress_text
from hansard_store.approvals.records import Approval, Status
from hansard_store.approvals.rows import ABOVE_ALL, cursor_after, read_cursor
from hansard_store.approvals.service import ApprovalService
from hansard_store.errors import InvalidQueryError
from hansard_store.principals.authority import ME
from hansard_store.principals.errors import PrincipalError
from hansard_store.principals.model import is_same, name_text, read_as
from hansard_web.app.addresses import way_back
from hansard_web.app.site import Site, SiteDep
from hansard_web.app.strict_json import parse_json
from hansard_web.approvals.detail import ArgumentChange, Ask, changes_between, read_request_form
from hansard_web.approvals.labels import SOON_NS, Standing, clean, one_line, standing, time_left
from hansard_web.approvals.page_state import (
    DECIDED,
    FIELDS,
    OPEN,
    TERMINAL_STATUSES,
    UNKNOWN,
    InboxState,
    read_state,
)
from hansard_web.approvals.worker import AccountsDep
from hansard_web.principals.dependencies import may_not_decide, principal_of
from hansard_web.sidecar.errors import InvalidBody
from hansard_web.ui.format import WAITS
from hansard_web.ui.forms import OwnForm

# The list beside an approval: what waits, what was sent back, what needs a look, what is over.

_MOST_OPEN: Final = 100  # of a group; more are counted
_DECIDED_BESIDE: Final = 20
_DECIDED_ROWS: Final = 50
_SENTENCE_CHARS: Final = 240


@dataclass(frozen=True, slots=True)
class Item:
    """An approval in the list."""

    approval: Approval
    href: str
    standing: Standing
    say: str
    agent: str
    left: str  # "" where no time runs
    is_soon: bool
    at_ns: int  # when it was decided, or last changed
    progress: str  # how many approved it, where it takes several and waits
    flagged: int  # arguments that a person should look at while it waits


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    title: str
    items: tuple[Item, ...]
    count: int
    more: str = ""  # what is not shown


@dataclass(frozen=True, slots=True)
class Inbox:
    """The list as it is at a moment."""

    state: InboxState
    groups: tuple[_Group, ...]
    open_count: int
    chips: tuple[tuple[str, str, str], ...]  # name, value, address without it
    older_href: str | None
    is_bare: bool  # nothing was ever proposed
    problem: str = ""

    @property
    def first_id(self) -> str | None:
        """Return what is to be shown when nothing was chosen."""
        return next(
            (one.approval.approval_id for group in self.groups for one in group.items), None
        )


def read_inbox(store: ApprovalService, state: InboxState) -> Inbox:
    """Return the list; those whose time is over have expired."""
    now_ns, counts, problem = store.now_ns(), store.waiting(), ""
    make = partial(_item, state, now_ns)
    try:
        before = read_cursor(state.cursor or None)
    except InvalidQueryError as error:
        before, problem = ABOVE_ALL, str(error)
    groups = [_open_group(store, state, make, one, counts) for one in _open_names(state)]
    decided, older = _decided(store, state, make, before)
    shown = tuple(group for group in (*groups, decided) if group is not None and group.items)
    return Inbox(
        state=state,
        groups=shown,
        open_count=sum(counts.values()),
        chips=tuple(
            (name, getattr(state, name), state.address(**{name: "", "cursor": ""}))
            for name in FIELDS
            if getattr(state, name)
        ),
        older_href=None
        if older is None
        else state.address(status=state.status or DECIDED, cursor=older),
        is_bare=not shown and not state.filters,
        problem=problem,
    )


def _open_names(state: InboxState) -> Sequence[str]:
    every = (str(Status.AWAITING), str(Status.REVISED), UNKNOWN)
    return (
        every if state.status in ("", OPEN) else tuple(one for one in every if one == state.status)
    )


def _open_group(
    store: ApprovalService,
    state: InboxState,
    make: Callable[[Approval], Item],
    name: str,
    counts: dict[str, int],
) -> _Group:
    # The nearest deadline first; what needs a look has none, and the newest is looked at first.
    if name == UNKNOWN:
        found = store.approvals(state.filter(execution="unknown"), limit=_MOST_OPEN)
        which = "newest"
    else:
        found = store.urgent(state.filter(status=(name,)), limit=_MOST_OPEN)
        which = "most urgent"
    is_full = len(found) == _MOST_OPEN
    count = counts.get(name, 0) if is_full and not state.is_narrowed else len(found)
    titles = {
        str(Status.AWAITING): WAITS.capitalize(),
        str(Status.REVISED): "Sent back, agent is redrafting",
        UNKNOWN: "Needs a look",
    }
    return _Group(
        name=name,
        title=titles[name],
        items=tuple(map(make, found)),
        count=max(count, len(found)),
        more=f"the {which} {_MOST_OPEN} are shown; a filter narrows them" if is_full else "",
    )


def _decided(
    store: ApprovalService, state: InboxState, make: Callable[[Approval], Item], before: int
) -> tuple[_Group | None, str | None]:
    statuses = TERMINAL_STATUSES
    if state.status in statuses:
        statuses = (state.status,)
    elif state.status not in ("", DECIDED):
        return None, None
    limit = _DECIDED_ROWS if state.status else _DECIDED_BESIDE
    found = store.approvals(state.filter(status=statuses), before=before, limit=limit)
    if not state.status:  # those stand above already
        shown = [one for one in found if one.execution.state != "unknown"]
    else:
        shown = found
    title = {"": "Decided", DECIDED: "Decided"}.get(state.status, state.status.capitalize())
    group = _Group(DECIDED, title, tuple(map(make, shown)), len(shown))
    return group, cursor_after(found, limit=limit)


def _item(state: InboxState, now_ns: int, approval: Approval) -> Item:
    left_ns, is_pending = approval.expires_ns - now_ns, approval.is_pending
    flagged = sum(one.flag is not None for one in approval.fields)
    return Item(
        approval=approval,
        href=state.address(approval.approval_id),
        standing=standing(approval, now_ns=now_ns),
        say=one_line(approval.description, _SENTENCE_CHARS),
        agent=one_line(name_text(approval.agent or ""), 120),
        left=time_left(left_ns) if is_pending else "",
        is_soon=is_pending and left_ns < SOON_NS,
        at_ns=approval.execution.finished_ns or approval.decided_ns or approval.updated_ns,
        progress=one_line(progress_text(approval), 160) if is_pending else "",
        flagged=flagged if is_pending else 0,
    )


# Arguments as a person edits them: JSON that hides nothing, and what an edit changes.

_NOT_PLAIN: Final = re.compile(r"[^\x20-\x7e\n]")


@dataclass(frozen=True, slots=True)
class Edit:
    """The form of an edit; `changes` are shown before anything is decided."""

    text: str
    problem: str = ""
    changes: tuple[ArgumentChange, ...] = ()
    is_looked_at: bool = False


def edit_of(approval: Approval) -> Edit:
    """Return the form with the arguments as they are."""
    return Edit(edit_text(approval.arguments))


def looked_at(approval: Approval, text: str) -> Edit:
    """Return the form with what the edit would change, or with what is wrong with it."""
    try:
        edited = read_arguments(text)
    except InvalidProposal as error:
        return Edit(text, problem=str(error))
    changes = changes_between(show(approval.arguments), show(edited))
    return Edit(edit_text(edited), changes=changes, is_looked_at=True)


def edit_text(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON; what cannot be seen in it is written as an escape."""
    return _NOT_PLAIN.sub(_escaped, json.dumps(arguments, ensure_ascii=False, indent=2))


def read_arguments(text: str) -> dict[str, Any]:
    """Read what a person wrote; raises InvalidProposal where it is no object of JSON."""
    try:
        found = parse_json(text.encode("utf-8", "surrogatepass"))
    except InvalidBody as error:
        message = str(error).replace("the body", "what you wrote")
        raise InvalidProposal("arguments", message) from None
    if not isinstance(found, dict):
        raise InvalidProposal("arguments", 'the arguments are an object: {"name": value}')
    return found


def _escaped(found: re.Match[str]) -> str:
    one = found[0]
    return one if visible(one) == one else json.dumps(one)[1:-1]


# A person's decision from a form: the same calls of the store as the API and the command line.

_DIGITS: Final = 32


def decide(
    store: ApprovalService,
    approval_id: str,
    kind: str,
    *,
    by: str,
    note: str,
    result_ref: str,
    revision: int | None,
    arguments: str,
    seen: Sequence[str],
) -> Approval:
    """Take a decision, and return the approval to show then.

    `revision` is the draft that was looked at, of a batch `seen`; `arguments` as edited, or "".
    Raises ApprovalConflict (with the first decision), InvalidProposal, ActionBlocked.
    """
    match kind:
        case "approve":
            edited = read_arguments(arguments) if arguments else None
            return store.approve(
                approval_id, by=by, arguments=edited, revision=revision, comment=note or None
            )
        case "reject":
            return store.reject(approval_id, by=by, reason=note or None, revision=revision)
        case "revise":
            return store.revise(approval_id, note=note, by=by, revision=revision)
        case "approve_batch":
            batch_id = store.approval(approval_id).batch_id
            if batch_id is None:
                raise InvalidProposal("decision", "this action was proposed alone")
            store.approve_batch(batch_id, by=by, revisions=read_seen(seen))
            return store.approval(approval_id)
        case "ran" | "did_not_run" as outcome:
            return store.settle_outcome(
                approval_id, outcome, note=note, by=by, result_ref=result_ref or None
            )
        case "undo":
            return store.undo(approval_id, by=by).approval
    raise InvalidProposal("decision", f"there is no decision {clean(kind[:40])!r}")


def read_seen(texts: Sequence[str]) -> dict[str, int]:
    """Read which draft of which action was looked at: `ID:REVISION`."""
    found = (one.partition(":") for one in texts)
    return {
        approval_id: int(revision)
        for approval_id, _, revision in found
        if len(approval_id) == _DIGITS and revision.isascii() and revision.isdecimal()
    }


router = APIRouter()
SOURCE: Final = "page"


@dataclass(frozen=True, slots=True)
class _Refused:
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
    refused: _Refused | None
    may_not: str  # why this reader cannot decide; "" who can
    may_not_again: str  # why this reader cannot approve this draft, and can do all else; or ""
    here: str  # the address of what is shown
    next_href: str | None  # what waits beside this one
    stream_href: str
    snippet: tuple[str, ...] = (
        '@hansard.tool(effect="write", describe="Send {to} an e-mail: {subject}", wait_s=3600)',
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
    form = edit_of(accounts.store.approval(approval_id)) if edit else None
    return _answer(request, site, accounts.store, state, approval_id, edit=form)


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
    try:
        found = decide(
            store,
            approval_id,
            decision,
            by=by.strip() or ME,
            note=note.strip(),
            result_ref=result_ref.strip(),
            revision=revision,
            arguments=arguments,
            seen=seen,
        )
    except (ApprovalConflict, InvalidProposal, ActionBlocked, PrincipalError) as error:
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
    store: ApprovalService,
    state: InboxState,
    approval_id: str | None,
    *,
    edit: Edit | None = None,
    refused: _Refused | None = None,
) -> ApprovalsPage:
    """Read what a page shows; without a choice, what stands first."""
    inbox = read_inbox(store, state)
    selected = approval_id or inbox.first_id
    ask = read_request_form(store, selected) if selected else None
    shown = None if ask is None else ask.approval
    following = [
        one
        for group in inbox.groups
        if group.name == "awaiting"
        for one in group.items
        if shown is None or one.approval.approval_id != shown.approval_id
    ]
    return ApprovalsPage(
        inbox=inbox,
        ask=ask,
        edit=edit,
        refused=refused,
        may_not=may_not(request, site, shown),
        may_not_again=_may_not_again(request, shown),
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
    requested = [one.name for one in approval.approvers[: approval.asked]]
    if requested and not any(is_same(principal.name, one) for one in requested):
        names = clean(listed(requested))
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
    store: ApprovalService,
    state: InboxState,
    approval_id: str | None = None,
    *,
    edit: Edit | None = None,
    refused: _Refused | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    page = page_of(request, site, store, state, approval_id, edit=edit, refused=refused)
    return site.renderer.page(request, "approvals.html", here="approvals", page=page, status=status)


def _refusal(error: HansardError, note: str) -> tuple[HTTPStatus, _Refused]:
    match error:
        case NotAnApprover() | PrincipalError():
            status, title = HTTPStatus.FORBIDDEN, "Not by you:"
        case ApprovalConflict():
            status, title = HTTPStatus.CONFLICT, "Nothing was changed:"
        case ActionBlocked():
            status, title = HTTPStatus.FORBIDDEN, "Policy does not let this run:"
        case _:
            status, title = HTTPStatus.UNPROCESSABLE_ENTITY, "Not yet:"
    return status, _Refused(title, str(error), note)


def _stream_href(state: InboxState, ask: Ask | None, *, is_busy: bool) -> str:
    query = parse_qsl(state.address().partition("?")[2])
    if ask is not None:
        is_read = ask.is_open or is_busy
        query += [
            ("id", ask.approval.approval_id),
            ("seen", f"{ask.mark}-{int(is_read)}"),
        ]
    return "/live/approvals" + (f"?{urlencode(query)}" if query else "")
