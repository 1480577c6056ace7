"""Receipts of all runs: "every run in which this file was left out for want of room"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import apsw
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from hansard_compiler.compile.engine import PASSES
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.compilations.receipts import (
    FoundReceipt,
    ReceiptFilter,
    StoredReceipt,
    list_receipts,
)
from hansard_store.errors import InvalidQueryError
from hansard_store.memory.records import Memory
from hansard_store.memory.rows import get_memory
from hansard_web.app.addresses import address
from hansard_web.app.site import SiteDep
from hansard_web.compile_view.labels import (
    DECISIONS,
    ItemNames,
    icon_of,
    kind_words,
    missed,
    pass_words,
    plain_why,
    source_words,
)
from hansard_web.compile_view.state import ContextState
from hansard_web.memory.labels import title_of
from hansard_web.ui.format import plural

router = APIRouter()

_ROWS: Final = 50
_NO_REQUEST: Final = ItemNames()
_LONGEST: Final = 512
# name in the address -> field of the filter
_FIELDS: Final[Mapping[str, str]] = {
    "item": "item",
    "source": "source",
    "reason": "reason",
    "rule": "rule",
    "pass": "pass_name",
    "decision": "decision",
    "kind": "kind",
    "run": "run",
}


@dataclass(frozen=True, slots=True)
class FoundRow:
    """One receipt, and where it is from."""

    found: FoundReceipt
    href: str
    decision: str
    word: str
    icon: str
    kind: str
    name: str  # what people call the item, where its id is a hash
    source: str
    say: str
    missed: str
    at_pass: str


@dataclass(frozen=True, slots=True)
class ReceiptsPage:
    fields: Mapping[str, str]
    odd_decision: str  # a word requested that no decision has
    is_asked: bool
    say: str
    problem: str
    rows: tuple[FoundRow, ...]
    more_href: str | None
    decisions: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]
    passes: tuple[str, ...]


@router.get("/receipts")
def receipts(request: Request, site: SiteDep) -> Response:
    query = request.query_params
    fields = {name: query.get(name, "").strip()[:_LONGEST] for name in _FIELDS}
    with site.readers.read() as connection:
        page = _page(connection, fields, cursor=query.get("cursor", ""))
    return site.renderer.page(request, "receipts.html", here="receipts", page=page)


def _page(connection: apsw.Connection, fields: Mapping[str, str], *, cursor: str) -> ReceiptsPage:
    filters = {name: value for name, value in fields.items() if value}
    found, more, problem = _found(connection, filters, cursor=cursor)
    return ReceiptsPage(
        fields=fields,
        odd_decision="" if fields["decision"] in DECISIONS else fields["decision"],
        is_asked=bool(filters),
        say=_say(found, has_more=bool(more)),
        problem=problem,
        rows=tuple(_row(connection, one) for one in found),
        more_href=address("/receipts", {**filters, "cursor": more}) if more else None,
        decisions=tuple(DECISIONS.items()),
        reasons=tuple(sorted(code.value for code in ReasonCode)),
        passes=tuple(name for name, _ in PASSES),
    )


def _found(
    connection: apsw.Connection, fields: Mapping[str, str], *, cursor: str
) -> tuple[Sequence[FoundReceipt], str | None, str]:
    filters = ReceiptFilter(**{_FIELDS[name]: value for name, value in fields.items()})  # type: ignore[arg-type]  # all of these are texts
    try:
        page = list_receipts(connection, filters, limit=_ROWS, cursor=cursor or None)
    except (NotFoundError, AmbiguousIdError, InvalidQueryError) as error:
        return [], None, str(error)
    return page.items, page.next_cursor, ""


def _say(found: Sequence[FoundReceipt], *, has_more: bool) -> str:
    if not found:
        return ""
    runs = plural(len({one.run_id for one in found}), "run")
    newest = "the newest " if has_more else ""
    return f"{newest}{plural(len(found), 'receipt')} in {runs}"


def _row(connection: apsw.Connection, found: FoundReceipt) -> FoundRow:
    one = found.receipt
    state = ContextState(item=one.item_id)
    return FoundRow(
        found=found,
        href=state.address(f"/steps/{found.step_id}/context") + f"#i{one.ordinal}",
        decision=one.decision if one.decision in DECISIONS else "unknown",
        word=DECISIONS.get(one.decision, one.decision),
        icon=icon_of(one.kind),
        kind=kind_words(one.kind),
        name=_name(connection, one),
        source=source_words(one),
        say=plain_why(one),
        missed=missed(one) if one.decision == "exclude" else "",
        at_pass=pass_words(one.pass_name),
    )


def _name(connection: apsw.Connection, one: StoredReceipt) -> str:
    memory = _memory(connection, one.item_id) if one.kind == "memory" else None
    if memory is not None:
        return f"memory “{title_of(memory)}”"
    return _NO_REQUEST.name(one.item_id, one.kind)


def _memory(connection: apsw.Connection, item_id: str) -> Memory | None:
    """Return the memory of that id; None where it is of another store, or no memory's."""
    try:
        found = get_memory(connection, item_id, now_ns=0)
    except (NotFoundError, AmbiguousIdError):
        return None
    return found if found.memory_id == item_id.lower() else None  # not what merely begins so
