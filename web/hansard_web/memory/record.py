"""One record of the memory page: versions, source, who read it, where it was used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_compiler.compile.models import EXTERNAL
from hansard_store.bodies import body_of
from hansard_store.compilations.receipts import FoundReceipt, ReceiptFilter, list_receipts
from hansard_store.ids import short_id
from hansard_store.memory.access_log import accesses_of, reads_by_day
from hansard_store.memory.maintenance.reviewed_supersessions import Supersession, links_of
from hansard_store.memory.records import Access, Memory
from hansard_store.memory.retrieval import contradicted_by
from hansard_store.memory.rows import get_memory, versions_of
from hansard_store.principals.model import CLAIMED, person_text
from hansard_store.times import time_text
from hansard_web.compile_view.item_origins import safe_address
from hansard_web.compile_view.labels import DECISIONS
from hansard_web.diff.page.words import Piece, word_diff
from hansard_web.memory.bodies import Use
from hansard_web.memory.labels import (
    ACCESSES,
    STATES,
    ender_of,
    place_of,
    text_of,
    title_of,
    type_words,
    writer_words,
)
from hansard_web.ui.format import agent_words, plural

# Where memory was used: the compiles that had it among their candidates.


def uses_of(connection: apsw.Connection, memory_id: str, *, limit: int = 50) -> list[FoundReceipt]:
    """Return what compiles did with a record, the newest first."""
    filters = ReceiptFilter(item=memory_id)
    return list(list_receipts(connection, filters, limit=limit).items)


def uses_in_run(
    connection: apsw.Connection, run_id: str, *, limit: int = 200
) -> list[FoundReceipt]:
    """Return what the compiles of a run did with memory, the newest first."""
    filters = ReceiptFilter(kind="memory", run=run_id)
    return list(list_receipts(connection, filters, limit=limit).items)


def use_json(found: FoundReceipt) -> Use:
    """Return one use."""
    one = found.receipt
    return body_of(
        Use,
        found,
        at=time_text(found.started_ns),
        decision=one.decision,
        reason=one.reason,
        tokens_before=one.tokens_before,
        tokens_after=one.tokens_after,
    )


_SHOWN = 12
# By state, and whether the record shown is the older of both.
_LINKS: Final[Mapping[tuple[str, bool], str]] = {
    ("applied", True): "superseded by",
    ("applied", False): "supersedes",
    ("undone", True): "was superseded by",
    ("undone", False): "superseded",
    ("proposed", True): "may be superseded by",
    ("proposed", False): "may supersede",
    ("refused", True): "is not superseded by",
    ("refused", False): "does not supersede",
    ("lapsed", True): "was to be superseded by",
    ("lapsed", False): "was to supersede",
}


@dataclass(frozen=True, slots=True)
class _Version:
    """One version, and what it changed of the one before."""

    memory: Memory
    is_this: bool
    writer: str
    standing: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class _Source:
    """A line of where it came from; `href` "" where there is no page."""

    label: str
    text: str
    href: str = ""
    is_code: bool = False
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Touch:
    """A read or write, or what a compile did with it."""

    decision: str  # include exclude …; "" for a read or write
    word: str
    text: str
    href: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """A record that stands beside it and contradicts it, or may."""

    href: str
    text: str
    words: str


@dataclass(frozen=True, slots=True)
class Link:
    """One supersession: of this record, or by it."""

    supersession: Supersession
    say: str  # what superseded what, or may
    other_id: str  # "" where it is gone
    by: str  # who or what decided, with the score
    undone: str  # who took it back; "" nobody


@dataclass(frozen=True, slots=True)
class MemoryPageRecord:
    memory: Memory
    type: str
    title: str
    content: str
    state_words: str
    ended: str
    links: tuple[Link, ...]
    conflicts: tuple[Conflict, ...]
    versions: tuple[_Version, ...]
    sources: tuple[_Source, ...]
    reads: int
    spark: str  # the line of reads by day, a path in a 100 × 24 box
    spark_sentence: str
    used: tuple[Touch, ...]
    touched: tuple[Touch, ...]


def read_record(connection: apsw.Connection, memory_id: str, *, now_ns: int) -> MemoryPageRecord:
    """Read a record; raises NotFoundError or AmbiguousIdError."""
    one = get_memory(connection, memory_id, now_ns=now_ns)
    versions = versions_of(connection, one.line, now_ns=now_ns)
    numbers = [each.id for each in versions]
    touched = accesses_of(connection, numbers, limit=_SHOWN * 10)
    by_day = reads_by_day(connection, numbers, now_ns=now_ns)
    return MemoryPageRecord(
        memory=one,
        type=type_words(one.memory_type),
        title=title_of(one),
        content=text_of(one.content),
        state_words=STATES.get(one.state, one.state),
        ended=f"{ender_of(one.ended)}: {one.ended.reason}" if one.ended else "",
        links=tuple(_link(each, one) for each in links_of(connection, [one.id])[:_SHOWN]),
        conflicts=_conflicts(connection, one, now_ns=now_ns),
        versions=tuple(_versions(versions, one)),
        sources=tuple(_sources(one)),
        reads=sum(each.reads for each in versions),
        spark=_spark(by_day),
        spark_sentence=f"{plural(sum(by_day), 'read')} in the last 30 days",
        used=tuple(_used(each) for each in uses_of(connection, one.memory_id, limit=_SHOWN)),
        touched=tuple(_touched(each) for each in touched if each.kind != "candidate")[:_SHOWN],
    )


def _link(link: Supersession, one: Memory) -> Link:
    is_older = link.older == one.id
    score = "" if link.score is None else f", score {link.score:.2f}"
    decided = ""
    if link.decided_ns is not None:
        decided = f", {link.state} by {_who(link.decided_by, link.decided_method)}"
    undone = ""
    if link.undone_ns is not None:
        reason = f": {link.undone_reason}" if link.undone_reason else ""
        undone = f"{_who(link.undone_by, link.undone_method)}{reason}"
    return Link(
        supersession=link,
        say=_LINKS[link.state, is_older],
        other_id=(link.newer_id if is_older else link.older_id) or "",
        by=f"{link.judge}{score}{decided}",
        undone=undone,
    )


def _who(by: str | None, method: str | None) -> str:
    return person_text(by or "", method or CLAIMED.method)


def _conflicts(connection: apsw.Connection, one: Memory, *, now_ns: int) -> tuple[Conflict, ...]:
    if one.state != "current":
        return ()
    return tuple(
        Conflict(
            f"/memory/{found.memory_id}",
            text_of(get_memory(connection, found.memory_id, now_ns=now_ns).content),
            f"differs in {found.difference}"
            if found.is_certain
            else f"may differ in {found.difference}",
        )
        for found in contradicted_by(connection, one, now_ns=now_ns)
    )


def _versions(versions: Sequence[Memory], one: Memory) -> list[_Version]:
    older = [*versions[1:], None]
    return [
        _Version(
            memory=each,
            is_this=each.id == one.id,
            writer=writer_words(each),
            standing="" if each.state == "current" else STATES.get(each.state, each.state),
            pieces=word_diff(text_of(before.content) if before else "", text_of(each.content))
            if before is not None
            else (Piece("same", text_of(each.content)),),
        )
        for each, before in zip(versions, older, strict=True)
    ]


def _sources(one: Memory) -> list[_Source]:
    gone = " (deleted)" if one.source_run_deleted else ""
    found = [
        _Source("written by", writer_words(one)),
        *(
            _Source("in step", f"{step[33:41]}, run {step[:8]}{gone}",
                   "" if gone else f"/steps/{step}", is_code=True)
            for step in one.source_steps
        ),
    ]  # fmt: skip
    if one.source_run_id:
        href = "" if gone else f"/runs/{one.source_run_id}"
        found.append(_Source("source run", f"{one.source_run_id[:12]}{gone}", href, is_code=True))
    if one.approval_id:
        href = f"/approvals/{one.approval_id}"
        found.append(_Source("approved in", short_id(one.approval_id), href, is_code=True))
    if one.metadata.get("origin") == EXTERNAL:
        url = str(one.metadata.get("url") or "an address that was not recorded")
        found.append(_Source("from outside", url, safe_address(url), is_elsewhere=True))
    found += [
        _Source("scope", place_of(one)),
        _Source("confidence", f"{one.confidence:.2f}"),
    ]
    return found


def _used(found: FoundReceipt) -> Touch:
    one = found.receipt
    known = one.decision in DECISIONS
    return Touch(
        decision=one.decision if known else "",
        word=DECISIONS.get(one.decision, one.decision),
        text=f"{agent_words(found.run_name)[:40]}, run {found.run_id[:8]}"
        + (f", {one.reason.replace('_', ' ')}" if one.decision == "exclude" else ""),
        href=f"/steps/{found.step_id}/context?item={one.item_id}#i{one.ordinal}",
        at_ns=found.started_ns,
    )


def _touched(one: Access) -> Touch:
    where = one.step_id or one.run_id
    if where is None:
        text, href = f"over the {one.origin}", ""
    else:
        text = f"run {where[:8]}" + (" (deleted)" if one.run_is_gone else "")
        href = f"/steps/{one.step_id}" if one.step_id else f"/runs/{one.run_id}"
    if one.agent:
        text = f"{one.agent}, {text}"
    return Touch(
        "", ACCESSES.get(one.kind, one.kind), text, "" if one.run_is_gone else href, one.time_ns
    )


def _spark(by_day: Sequence[int]) -> str:
    most = max([*by_day, 1])
    step = 100 / max(len(by_day) - 1, 1)
    places = [f"{at * step:.2f} {22 - 20 * count / most:.2f}" for at, count in enumerate(by_day)]
    return "M" + " L".join(places)
