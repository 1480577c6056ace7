"""One transcript, of a conversation or a sub-agent: a window of its messages, folds where they were
written, or what the next call is given. Everything that can be chosen is in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import apsw
from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from hansard_collector.derivation.rows import plain_text
from hansard_collector.derived_context.context import text_of
from hansard_compiler.calls import Json
from hansard_compiler.errors import NotFoundError
from hansard_compiler.transcripts.cost import ResumeCost
from hansard_compiler.transcripts.errors import UndecodableMessage
from hansard_compiler.transcripts.ids import BranchId, LogId, parse_log_id
from hansard_compiler.transcripts.messages import Clip, Row, StoredMessage, call_message, decode
from hansard_compiler.transcripts.reads import cost_of
from hansard_compiler.transcripts.views import (
    Branch,
    Conversation,
    Fold,
    Mark,
    current_marks,
    handoff,
    veiled,
)
from hansard_store.transcripts.queries import (
    StepOfMessage,
    TranscriptItem,
    count_runs,
    list_transcripts,
    steps_of,
)
from hansard_store.transcripts.rows import read_rows
from hansard_store.transcripts.service import SqliteTranscripts
from hansard_web.app.addresses import address, conversation_href
from hansard_web.app.site import SiteDep
from hansard_web.transcripts.api import need_admin
from hansard_web.transcripts.json import transcripts_of
from hansard_web.ui.format import count, plural
from hansard_web.ui.messages import ShownMessage, ToolCard, show_message

router = APIRouter()

MESSAGES_A_PAGE: Final = 60
_MOST_COUNTED: Final = 2_000  # messages whose tokens are counted without being requested

View = Literal["all", "active"]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A message on the page, with what stands around it."""

    shown: ShownMessage | None  # None: the row does not decode
    position: int | None
    problem: str = ""
    step: StepOfMessage | None = None  # where it is another than that of the message before
    clips: tuple[Clip, ...] = ()
    mark: Mark | None = None
    folds: tuple[Fold, ...] = ()  # written after this message
    branches: tuple[Branch, ...] = ()  # begun after it
    is_folded: bool = False  # the newest fold stands for it


@dataclass(frozen=True, slots=True)
class TranscriptPage:
    log: LogId
    conversation: Conversation
    branch: Branch | None
    title: str
    view: View
    head: int
    entries: tuple[_Entry, ...]
    folds: tuple[Fold, ...]
    branches: tuple[Branch, ...]  # begun before the first message
    cost: ResumeCost | None
    is_all_counted: bool
    links: Mapping[str, str | None]
    runs: int
    runs_href: str
    is_raw: bool
    has_marks: bool
    window: str


@dataclass(frozen=True, slots=True)
class _Address:
    """What the address of a transcript's page says."""

    log: LogId
    view: View
    at: int
    raw: bool
    cost: bool = False

    def href(self, **changes: object) -> str:
        made = replace(self, **changes)  # type: ignore[arg-type]
        parameters = {
            "view": made.view if made.view != "all" else "",
            "at": str(made.at) if made.at else "",
            "raw": "1" if made.raw else "",
            "cost": "1" if made.cost else "",
        }
        return address(f"/transcripts/{made.log}", parameters)


@router.get("/transcripts/{log_id}")
def transcript(
    request: Request,
    site: SiteDep,
    log_id: str,
    view: Annotated[View, Query()] = "all",
    at: Annotated[int, Query(ge=0, lt=1 << 53)] = 0,
    raw: Annotated[bool, Query()] = False,
    cost: Annotated[bool, Query()] = False,
) -> Response:
    if raw:
        need_admin(request)
    wanted = _Address(parse_log_id(log_id), view, at, raw, cost)
    service = transcripts_of(site)
    with site.readers.read() as connection:
        page = _page(connection, service, wanted)
    return site.renderer.page(request, "transcripts/one.html", here="conversations", page=page)


@router.get("/fragments/transcripts/{log_id}")
def more_messages(
    request: Request,
    site: SiteDep,
    log_id: str,
    view: Annotated[View, Query()] = "all",
    at: Annotated[int, Query(ge=0, lt=1 << 53)] = 0,
    raw: Annotated[bool, Query()] = False,
) -> Response:
    """Further messages, in place of the link that requested them."""
    if raw:
        need_admin(request)
    wanted = _Address(parse_log_id(log_id), view, at, raw)
    if request.headers.get("hx-request") != "true":
        return RedirectResponse(wanted.href(), 303)
    service = transcripts_of(site)
    with site.readers.read() as connection:
        page = _page(connection, service, wanted)
    return site.renderer.fragment(request, "transcripts/_more.html", page=page)


def transcript_page(
    connection: apsw.Connection, service: SqliteTranscripts, log: LogId
) -> TranscriptPage:
    """Return a transcript from its first message, as other pages show it."""
    return _page(connection, service, _Address(log, "all", 0, raw=False))


@router.get("/transcripts/{log_id}/messages/{position}")
def message_text(
    request: Request,
    site: SiteDep,
    log_id: str,
    position: Annotated[int, Path(ge=0, lt=1 << 53)],
    raw: Annotated[bool, Query()] = False,
) -> Response:
    """One message whole, as text: what "show all" leads to."""
    if raw:
        need_admin(request)
    log, service = parse_log_id(log_id), transcripts_of(site)
    found = service.messages(log, after=position - 1, limit=1)
    if not found:
        raise NotFoundError("message", f"{log} {position}")
    mark = None if raw else current_marks(service.marks(log)).get(position)
    text = plain_text(text_of(call_message(veiled(found[0].body, mark))))
    return PlainTextResponse(text.encode("utf-8", "backslashreplace"))


def _page(
    connection: apsw.Connection, service: SqliteTranscripts, address: _Address
) -> TranscriptPage:
    log = address.log
    conversation = service.conversation(log)
    branch = service.branch(log) if isinstance(log, BranchId) else None
    folds, head = service.folds(log), service.head(log)
    marks = current_marks(service.marks(log))
    fold = folds[-1] if folds else None
    start = _start(address, fold, head)
    rows = read_rows(connection, log, after=start - 1, limit=MESSAGES_A_PAGE)
    entries = _entries(connection, service, address, rows, folds, marks)
    if address.view == "active" and fold is not None and start == fold.message_position + 1:
        entries = [_handoff_entry(fold), *entries]
    active_count = head - (fold.message_position if fold else -1)
    may_count = address.cost or active_count <= _MOST_COUNTED
    may_count_all = address.cost or head <= _MOST_COUNTED
    return TranscriptPage(
        log=log,
        conversation=conversation,
        branch=branch,
        title=branch.name if branch else _first_words(service, log) or conversation.name,
        view=address.view,
        head=head,
        entries=tuple(entries),
        folds=tuple(folds),
        branches=tuple(one for one in service.branches(log) if one.parent_position < 0),
        cost=_cost(service, log, counts_folded=may_count_all) if may_count else None,
        is_all_counted=may_count_all,
        links=_links(address, fold, start, head),
        runs=count_runs(connection, conversation.name),
        runs_href=conversation_href(conversation.name),
        is_raw=address.raw,
        has_marks=bool(marks),
        window=_window(start, rows, head),
    )


def _start(address: _Address, fold: Fold | None, head: int) -> int:
    first = fold.message_position + 1 if fold and address.view == "active" else 0
    return min(max(address.at, first), max(head, first))


def _window(start: int, rows: Sequence[Row], head: int) -> str:
    if not rows:
        return "no messages after the fold" if head >= 0 else "no messages"
    last = rows[-1].position
    if (start, last) == (0, head):
        return plural(head + 1, "message")
    return f"{count(start + 1)} to {count(last + 1)} of {plural(head + 1, 'message')}"


def _links(address: _Address, fold: Fold | None, start: int, head: int) -> dict[str, str | None]:
    first = _start(replace(address, at=0), fold, head)
    after = start + MESSAGES_A_PAGE
    newest = max(head - MESSAGES_A_PAGE + 1, first)
    return {
        "all": address.href(view="all", at=0),
        "active": address.href(view="active", at=0),
        "earlier": address.href(at=max(start - MESSAGES_A_PAGE, 0)) if start > first else None,
        "later": address.href(at=after) if after <= head else None,
        "more": "/fragments" + address.href(at=after) if after <= head else None,
        "newest": address.href(at=newest) if after <= head else None,
        "raw": address.href(raw=not address.raw),
        "cost": address.href(cost=True),
    }


def _entries(
    connection: apsw.Connection,
    service: SqliteTranscripts,
    address: _Address,
    rows: Sequence[Row],
    folds: Sequence[Fold],
    marks: Mapping[int, Mark],
) -> list[_Entry]:
    log = address.log
    decoded = [_decoded(log, row) for row in rows]
    steps = steps_of(connection, [one for one in decoded if isinstance(one, StoredMessage)])
    begun = service.branches(log)
    folded_until = folds[-1].message_position if folds else -1
    entries = []
    before: StepOfMessage | None = None
    for row, one in zip(rows, decoded, strict=True):
        entry = _entry(one, address, marks.get(row.position))
        step = _step(row, steps)
        entries.append(
            replace(
                entry,
                position=row.position,
                step=None if step == before else step,
                folds=tuple(fold for fold in folds if fold.message_position == row.position),
                branches=tuple(b for b in begun if b.parent_position == row.position),
                is_folded=row.position <= folded_until,
            )
        )
        before = step
    return entries


def _decoded(log: LogId, row: Row) -> StoredMessage | UndecodableMessage:
    try:
        return decode(log, row)
    except UndecodableMessage as error:
        return error


def _cost(service: SqliteTranscripts, log: LogId, *, counts_folded: bool) -> ResumeCost | None:
    try:
        return cost_of(service, log, counts_folded=counts_folded)
    except UndecodableMessage:
        return None  # shown where its row stands


def _step(row: Row, steps: Mapping[tuple[str, str], StepOfMessage]) -> StepOfMessage | None:
    if row.trace_id is None or row.span_id is None:
        return None
    return steps.get((row.trace_id.hex(), row.span_id.hex()))


def _entry(one: StoredMessage | UndecodableMessage, address: _Address, mark: Mark | None) -> _Entry:
    if isinstance(one, UndecodableMessage):
        return _Entry(None, one.position, problem=one.why)
    body = one.body if address.raw else veiled(one.body, mark)
    rest = f"/transcripts/{one.log}/messages/{one.position}{'?raw=1' if address.raw else ''}"
    return _Entry(
        shown=_shown(body, str(one.position + 1), rest),
        position=one.position,
        clips=() if mark and not address.raw else tuple(one.clips),
        mark=mark,
    )


def _handoff_entry(fold: Fold) -> _Entry:
    return _Entry(shown=_shown(handoff(fold), "", f"/transcripts/{fold.log}"), position=None)


def _shown(body: Json, number: str, rest: str) -> ShownMessage:
    """Return a message as it stands: its calls and results each in their own place."""
    shown = show_message(call_message(body), number=number, rest=rest, media="")
    blocks = [
        replace(block, states=()) if isinstance(block, ToolCard) else block
        for block in shown.blocks
    ]
    return replace(shown, blocks=tuple(blocks))


def _first_words(service: SqliteTranscripts, log: LogId) -> str | None:
    try:
        found = service.messages(log, limit=1)
    except UndecodableMessage:
        return None
    mark = current_marks(service.marks(log)).get(0)
    texts = [call_message(veiled(one.body, mark)).text for one in found]
    return next((text for text in texts if text), None)


# Transcripts: the list of them.

_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class TranscriptRow:
    item: TranscriptItem
    href: str
    since_fold: int  # messages after the newest fold


@dataclass(frozen=True, slots=True)
class TranscriptsPage:
    rows: tuple[TranscriptRow, ...]
    more_href: str | None
    is_first: bool


@router.get("/transcripts")
def transcripts(request: Request, site: SiteDep, cursor: Annotated[str, Query()] = "") -> Response:
    with site.readers.read() as connection:
        found = list_transcripts(connection, limit=_ROWS, cursor=cursor or None)
    more = found.next_cursor
    page = TranscriptsPage(
        rows=tuple(_row(item) for item in found.items),
        more_href=address("/transcripts", {"cursor": more}) if more else None,
        is_first=not cursor,
    )
    return site.renderer.page(request, "transcripts/list.html", here="conversations", page=page)


def _row(item: TranscriptItem) -> TranscriptRow:
    folded = 0 if item.folded_until is None else item.folded_until + 1
    return TranscriptRow(item, f"/transcripts/{item.conversation.id}", item.messages - folded)
