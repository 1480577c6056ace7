"""One candidate looked at closely: its text before and after, its way, its origin, its history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import apsw

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.compilations.receipts import ReceiptFilter, StoredReceipt, list_receipts
from hansard_store.content.payloads import folder_of, payload_ref, peek_payload
from hansard_store.memory.rows import get_memory
from hansard_store.runs.queries import get_run
from hansard_store.steps.queries import get_step
from hansard_web.compile_view.item_origins import OriginFact, facts_of, request_records
from hansard_web.compile_view.labels import DECISIONS, meaning, pass_words, plain_why
from hansard_web.compile_view.passes import Stage, trail_of
from hansard_web.compile_view.record import CompileRecord, stored_payload
from hansard_web.compile_view.rows import receipts_href
from hansard_web.compile_view.state import ContextState
from hansard_web.diff.page.words import Piece, word_diff
from hansard_web.memory.labels import title_of
from hansard_web.ui.format import agent_words, file_size

_READ_BYTES: Final = 256 * 1024  # of a text, for the page; the rest is behind its link
_SHOWN_CHARS: Final = 12_000
_MOST_HISTORY: Final = 12
_LABELS: Final = {"changes": "Changes", "sent": "As sent", "original": "Original"}


@dataclass(frozen=True, slots=True)
class TextTab:
    label: str
    href: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored text by reference."""

    label: str
    ref: str
    href: str  # "" where its bytes are not here
    size: str


@dataclass(frozen=True, slots=True)
class Past:
    """What another compile of this run did with the same item."""

    started_ns: int
    href: str
    decision: str
    word: str
    text: str
    is_this: bool


@dataclass(frozen=True, slots=True)
class Inspected:
    """Everything about one item."""

    receipt: StoredReceipt
    word: str
    by: str
    say: str
    meaning: str
    note: str
    removed: tuple[str, ...]
    kept_pct: float | None
    text_title: str
    tabs: tuple[TextTab, ...]
    pieces: tuple[Piece, ...]
    text_sentence: str  # why there is no text
    stored: tuple[Stored, ...]
    facts: tuple[OriginFact, ...]
    trail: tuple[Stage, ...]
    history: tuple[Past, ...]
    like_this_href: str  # receipts of this item with this reason, in all runs
    every_href: str  # all receipts of this item
    close_href: str


def inspect_item(
    connection: apsw.Connection, record: CompileRecord, state: ContextState, path: str
) -> Inspected | None:
    """Look closely at the item that the address names; None where it names none of this compile."""
    one = record.find(state.item) if state.item else None
    if one is None:
        return None
    changed = one.decision in ("compress", "redact") and one.final != one.original
    pieces, trouble = _pieces(connection, one, state.text if changed else "original")
    before, after = one.tokens_before, one.tokens_after
    shows_share = bool(before) and after is not None and one.decision != "exclude"
    request = request_records(connection, record.compilation.row.request_ref)
    note = record.result.note(one.item_id)
    return Inspected(
        receipt=one,
        word=DECISIONS.get(one.decision, one.decision),
        by=f"by pass {pass_words(one.pass_name)}" if one.pass_name else "",
        say=plain_why(one),
        meaning=meaning(one.reason),
        note=note,
        removed=record.result.removed(one.item_id),
        kept_pct=round(min((after or 0) / (before or 1), 1) * 100, 2) if shows_share else None,
        text_title="What the model read" if one.decision != "exclude" else "What was left out",
        tabs=_tabs(state, path) if changed else (),
        pieces=pieces,
        text_sentence=trouble,
        stored=tuple(_stored(connection, one, changed=changed)),
        facts=tuple(_named(connection, fact) for fact in facts_of(request, one.item_id)),
        trail=trail_of(one, note),
        history=tuple(_history(connection, record, one)),
        like_this_href=receipts_href(item=one.item_id, reason=one.reason),
        every_href=receipts_href(item=one.item_id),
        close_href=state.address(path, item="", first=state.first),
    )


def _named(connection: apsw.Connection, fact: OriginFact) -> OriginFact:
    """Give a step, run or memory of ours its name; what is not here stays text."""
    if not fact.href or fact.is_elsewhere:
        return fact
    kind, _, wanted_id = fact.href[1:].partition("/")
    try:
        if kind == "steps":
            name = get_step(connection, wanted_id, now_ns=0).name
        elif kind == "memory":
            name = title_of(get_memory(connection, wanted_id, now_ns=0))
        else:
            name = agent_words(get_run(connection, wanted_id, now_ns=0).name or fact.text[:12])
    except (NotFoundError, AmbiguousIdError):
        return replace(fact, text=f"{fact.text[:12]}…, not here", href="")
    return replace(fact, text=name)


def _tabs(state: ContextState, path: str) -> tuple[TextTab, ...]:
    return tuple(
        TextTab(label, state.address(path, text=key) + "#item", state.text == key)
        for key, label in _LABELS.items()
    )


def _pieces(
    connection: apsw.Connection, one: StoredReceipt, which: str
) -> tuple[tuple[Piece, ...], str]:
    """Return the text to show, and why there is none."""
    if which == "original" or one.final is None:
        original, trouble = _text(connection, one.original)
        return _whole(original), trouble
    sent, trouble = _text(connection, one.final)
    if which == "sent" or trouble:
        return _whole(sent), trouble
    original, trouble = _text(connection, one.original)
    return (_whole(sent) if trouble else word_diff(original, sent)), ""


def _whole(text: str) -> tuple[Piece, ...]:
    if len(text) <= _SHOWN_CHARS:
        return (Piece("same", text),) if text else ()
    left_out = Piece("gap", f"{len(text) - _SHOWN_CHARS:,} more characters: see the original")
    return Piece("same", text[:_SHOWN_CHARS]), left_out


def _text(connection: apsw.Connection, digest: bytes | None) -> tuple[str, str]:
    """Return the beginning of a stored text, and why there is none."""
    if digest is None:
        return "", "Its text was withheld: neither its bytes nor its digest were kept."
    payload = stored_payload(connection, payload_ref(digest))
    if payload is None:
        return "", "Its text is not here: it was never sent, was lost, or was deleted."
    data = peek_payload(folder_of(connection), payload, most_bytes=_READ_BYTES)
    text = data.decode("utf-8", "replace")
    if "\0" in text:
        return "", "It is no text."
    return (text, "") if text.strip() else ("", "It is empty.")


def _stored(connection: apsw.Connection, one: StoredReceipt, *, changed: bool) -> list[Stored]:
    named = [("original", one.original)]
    if changed:
        named.append(("as sent", one.final))
    found = []
    for label, digest in named:
        if digest is None:
            continue
        ref = payload_ref(digest)
        payload = stored_payload(connection, ref)
        is_here = payload is not None
        size = file_size(payload.size) if payload is not None else "not stored"
        found.append(Stored(label, ref, f"/v1/payloads/{ref}" if is_here else "", size))
    return found


def _history(connection: apsw.Connection, record: CompileRecord, one: StoredReceipt) -> list[Past]:
    """Return what the compiles of this run did with the item, the oldest first."""
    filters = ReceiptFilter(item=one.item_id, run=record.compilation.run_id)
    page = list_receipts(connection, filters, limit=_MOST_HISTORY)
    if len(page.items) < 2:
        return []
    state = ContextState(item=one.item_id)
    return [
        Past(
            started_ns=found.started_ns,
            href=state.address(f"/steps/{found.step_id}/context"),
            decision=found.receipt.decision,
            word=DECISIONS.get(found.receipt.decision, found.receipt.decision),
            text=_past_text(found.receipt, one),
            is_this=found.receipt.span == one.span,
        )
        for found in reversed(page.items)
    ]


def _past_text(then: StoredReceipt, now: StoredReceipt) -> str:
    if then.decision == "exclude":
        return plain_why(then)
    if then.span != now.span and then.final is not None and then.final == now.final:
        return "the same bytes"
    after = f"{then.tokens_after or 0:,}"
    return f"{then.tokens_before:,} → {after}" if then.decision == "compress" else f"{after} tokens"
