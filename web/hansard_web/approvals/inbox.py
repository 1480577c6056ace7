"""The list beside an approval: what waits, what was sent back, what needs a look, what is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hansard_store.approvals.json import progress_text
from hansard_store.approvals.records import Approval
from hansard_store.approvals.rows import ABOVE_ALL, cursor_after, read_cursor
from hansard_store.approvals.service import Accountability
from hansard_store.approvals.states import Status
from hansard_store.errors import BadQueryError
from hansard_store.ids import short_id
from hansard_store.principals.model import name_text
from hansard_web.approvals.labels import SOON_NS, Standing, one_line, standing, time_left
from hansard_web.approvals.page_state import DECIDED, FIELDS, OPEN, UNKNOWN, InboxState, terminal
from hansard_web.ui.format import WAITS

_MOST_OPEN: Final = 100  # of a group; more are counted
_DECIDED_BESIDE: Final = 20
_DECIDED_ROWS: Final = 50
_SAY_CHARS: Final = 240


@dataclass(frozen=True, slots=True)
class Item:
    """An approval in the list."""

    approval_id: str
    short_id: str
    href: str
    standing: Standing
    say: str
    tool: str
    agent: str
    left: str  # "" where no time runs
    is_soon: bool
    expires_ns: int
    at_ns: int  # when it was decided, or last changed
    progress: str  # how many approved it, where it takes several and waits
    flagged: int  # arguments that a person should look at while it waits


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    title: str
    items: tuple[Item, ...]
    count: int
    more: str = ""  # what is not shown


@dataclass(frozen=True, slots=True)
class Inbox:
    """The list as it is at a moment."""

    state: InboxState
    groups: tuple[Group, ...]
    open_count: int
    chips: tuple[tuple[str, str, str], ...]  # name, value, address without it
    older_href: str | None
    is_bare: bool  # nothing was ever proposed
    problem: str = ""

    @property
    def first_id(self) -> str | None:
        """Return what is to be shown when nothing was chosen."""
        return next((one.approval_id for group in self.groups for one in group.items), None)


def read_inbox(store: Accountability, state: InboxState) -> Inbox:
    """Return the list; those whose time is over have expired."""
    now_ns, counts, problem = store.now_ns(), store.waiting(), ""
    make = _maker(state, now_ns)
    try:
        before = read_cursor(state.cursor or None)
    except BadQueryError as error:
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
        older_href=None if older is None else state.address(status=_page_of(state), cursor=older),
        is_bare=not shown and not state.given,
        problem=problem,
    )


def _open_names(state: InboxState) -> Sequence[str]:
    every = (str(Status.AWAITING), str(Status.REVISED), UNKNOWN)
    return (
        every if state.status in ("", OPEN) else tuple(one for one in every if one == state.status)
    )


def _open_group(
    store: Accountability,
    state: InboxState,
    make: Callable[[Approval], Item],
    name: str,
    counts: dict[str, int],
) -> Group:
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
    return Group(
        name=name,
        title=titles[name],
        items=tuple(map(make, found)),
        count=max(count, len(found)),
        more=f"the {which} {_MOST_OPEN} are shown; a filter narrows them" if is_full else "",
    )


def _decided(
    store: Accountability, state: InboxState, make: Callable[[Approval], Item], before: int
) -> tuple[Group | None, str | None]:
    statuses = terminal()
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
    group = Group(DECIDED, title, tuple(map(make, shown)), len(shown))
    return group, cursor_after(found, limit=limit)


def _page_of(state: InboxState) -> str:
    return state.status or DECIDED


def _maker(state: InboxState, now_ns: int) -> Callable[[Approval], Item]:
    def make(approval: Approval) -> Item:
        left_ns = approval.expires_ns - now_ns
        return Item(
            approval_id=approval.approval_id,
            short_id=short_id(approval.approval_id),
            href=state.address(approval.approval_id),
            standing=standing(approval, now_ns=now_ns),
            say=one_line(approval.description, _SAY_CHARS),
            tool=approval.tool,
            agent=one_line(name_text(approval.agent or ""), 120),
            left=time_left(left_ns) if approval.is_pending else "",
            is_soon=approval.is_pending and left_ns < SOON_NS,
            expires_ns=approval.expires_ns,
            at_ns=approval.execution.finished_ns or approval.decided_ns or approval.updated_ns,
            progress=one_line(progress_text(approval), 160) if approval.is_pending else "",
            flagged=sum(one.flag is not None for one in approval.fields)
            if approval.is_pending
            else 0,
        )

    return make
