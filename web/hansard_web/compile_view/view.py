"""A compile laid out: the sentence, the bar, the passes, the table, the item, what was sent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_store.compilations.queries import Compilation, compilation_after, compilation_before
from hansard_store.steps.queries import StepSkeleton
from hansard_web.compile_view.bar import Budget, KeyEntry, Segment, item_segments, rest_segments
from hansard_web.compile_view.controls import (
    Chip,
    Choice,
    Paging,
    Sort,
    chips,
    choices,
    paging,
    sorts,
)
from hansard_web.compile_view.item import Inspected, inspect_item
from hansard_web.compile_view.item_texts import spoken_words
from hansard_web.compile_view.labels import (
    DECISIONS,
    SECTIONS,
    SWATCHES,
)
from hansard_web.compile_view.passes import PassDid, passes_did
from hansard_web.compile_view.policy_checks import Checks, checks_of
from hansard_web.compile_view.record import Record, read_record
from hansard_web.compile_view.request import Shown, shown_requests
from hansard_web.compile_view.rows import Listing, listing
from hansard_web.compile_view.sections import SectionRow, section_rows
from hansard_web.compile_view.state import GROUPS, ORDERS, ContextState
from hansard_web.ui.format import count, plural

_MOST_NAMED: Final = 4  # items in a note
_NAME_CHARACTERS: Final = 80


@dataclass(frozen=True, slots=True)
class Cached:
    """What the provider read from its cache, on the bar."""

    tokens: int
    end_pct: float


@dataclass(frozen=True, slots=True)
class Related:
    """A step that belongs to the compile: itself, or a call that was made with it."""

    label: str
    step: StepSkeleton
    href: str
    is_this: bool


@dataclass(frozen=True, slots=True)
class NativeView:
    """Everything the native Context tab shows."""

    compilation: Compilation
    path: str
    state: ContextState
    pairs: tuple[tuple[str, str], ...]  # what a form must keep of the address
    said: tuple[tuple[str, str, int], ...]  # (decision, words, number)
    total: int
    budget: Budget
    used_text: str
    bar_label: str
    segments: tuple[Segment, ...]
    rest: tuple[Segment, ...]
    cached: Cached | None
    keys: tuple[KeyEntry, ...]
    billed: str
    passes: tuple[PassDid, ...]
    choices: tuple[Choice, ...]
    chips: tuple[Chip, ...]
    sorts: dict[str, Sort]
    orders: tuple[tuple[str, str], ...]
    groups: tuple[tuple[str, str], ...]
    listing: Listing
    paging: Paging | None
    inspected: Inspected | None
    sections: tuple[SectionRow, ...]
    previous_href: str | None  # the compile before in this run
    next_href: str | None
    by_class: tuple[tuple[str, int], ...]
    checks: Checks
    requests: tuple[Shown, ...]
    requests_href: str  # of the page with them unfolded, or folded again
    related: tuple[Related, ...]
    notes: tuple[str, ...]
    row_count: int  # of the table, for readers that count

    def item_href(self, item_id: str) -> str:
        return self.state.address(self.path, item=item_id, text="changes")

    def pass_href(self, name: str) -> str:
        return self.state.address(self.path, at_pass=name, item="")


def native_view(
    connection: apsw.Connection,
    compilation: Compilation,
    step: StepSkeleton,
    state: ContextState,
    *,
    now_ns: int,
) -> NativeView:
    """Read a compile and lay it out for one of its steps: the compile itself, or its call."""
    record = read_record(connection, compilation, now_ns=now_ns)
    path = f"/steps/{step.step_id}/context"
    listed = listing(record, state, path, spoken=lambda one: spoken_words(connection, one))
    state = state.but(first=listed.first)
    before = compilation_before(connection, compilation)
    after = compilation_after(connection, compilation)
    budget, sent = record.budget, record.sent()
    result = record.result
    return NativeView(
        compilation=compilation,
        path=path,
        state=state,
        pairs=tuple(pair for pair in state.pairs() if pair[0] in _KEPT),
        said=_said(record),
        total=compilation.row.item_total,
        budget=budget,
        used_text=_used_text(budget),
        bar_label=_bar_label(record, budget),
        segments=item_segments(sent, budget, selected=state.item),
        rest=rest_segments(budget),
        cached=_cached(record, budget),
        keys=_keys(record, budget, before),
        billed=_billed(record, budget),
        passes=passes_did(record),
        choices=choices(_said(record), len(record.receipts), state, path),
        chips=chips(state, path),
        sorts=sorts(state, path),
        orders=tuple(ORDERS.items()),
        groups=tuple(GROUPS.items()),
        listing=listed,
        paging=paging(listed, state, path),
        inspected=inspect_item(connection, record, state, path),
        sections=section_rows(record, before),
        previous_href=f"/steps/{before.step_id}/context" if before else None,
        next_href=f"/steps/{after.step_id}/context" if after else None,
        by_class=tuple((name, tokens) for name, tokens in result.by_class.items() if tokens),
        checks=checks_of(connection, compilation, record.receipts),
        requests=shown_requests(connection, record, whole=state.shows_request),
        requests_href=state.address(path, shows_request=not state.shows_request) + "#request",
        related=_related(record, step),
        notes=_notes(record),
        row_count=listed.found,
    )


_KEPT: Final = ("decision", "reason", "pass", "kind")


# ------------------------------------------------------------------------------ sentences


def _said(record: Record) -> tuple[tuple[str, str, int], ...]:
    counts = Counter(one.decision for one in record.receipts)
    known = [(name, word, counts.pop(name, 0)) for name, word in DECISIONS.items()]
    return (*known, *((name, name, number) for name, number in counts.items()))


def _used_text(budget: Budget) -> str:
    if budget.available is None:
        return f"{count(budget.used)} tokens; their budget is not recorded"
    return f"{count(budget.used)} of {count(budget.available)}"


def _bar_label(record: Record, budget: Budget) -> str:
    parts = [f"{entry.label} {count(entry.tokens)}" for entry in _keys(record, budget, None)]
    whole = "unknown size" if budget.tokens is None else plural(budget.tokens, "token")
    return f"Budget of {whole}: {', '.join(parts)}"


def _notes(record: Record) -> tuple[str, ...]:
    row = record.compilation.row
    notes = row.notes.split("\n") if row.notes else []
    if row.receipt_count < row.item_total:
        notes.append(
            f"receipts of {count(row.receipt_count)} of {count(row.item_total)} candidates are here"
        )
    if record.result_trouble:
        notes.append(f"{record.result_trouble} Score terms, notes and sections are missing.")
    if doubtful := record.result.doubtful:
        more = len(doubtful) - _MOST_NAMED
        named = ", ".join(one[:_NAME_CHARACTERS] for one in doubtful[:_MOST_NAMED])
        notes.append(
            f"{plural(len(doubtful), 'item')} may contradict another one; both are kept: {named}"
            + (f" and {count(more)} more" if more > 0 else "")
        )
    return tuple(note[:1].upper() + note[1:] for note in dict.fromkeys(notes))


# ------------------------------------------------------------------------------ the bar


def _keys(record: Record, budget: Budget, before: Compilation | None) -> tuple[KeyEntry, ...]:
    tokens: Counter[str] = Counter()
    for one in record.receipts:
        if one.decision != "exclude":
            tokens[one.section or ""] += one.tokens_after or 0
    row = record.compilation.row
    entries = []
    for name, label in SECTIONS.items():
        aside = ""
        if name == "stable_prefix" and before is not None and row.stable_prefix_hash:
            same = before.row.stable_prefix_hash == row.stable_prefix_hash
            aside = "same bytes as last turn" if same else "changed since last turn"
        entries.append(KeyEntry(SWATCHES[name], label.lower(), tokens.pop(name, 0), aside))
    if rest := sum(tokens.values()):
        entries.append(KeyEntry("task", "in no section", rest))
    if budget.free is not None:
        over = "over the budget" if budget.free < 0 else ""
        entries.append(KeyEntry("free", "free", budget.free, over))
    if budget.reserve is not None:
        entries.append(KeyEntry("reserve", "kept for the answer", budget.reserve))
    return tuple(entries)


def _cached(record: Record, budget: Budget) -> Cached | None:
    for call in record.calls[:1]:
        read = call.tokens.cache_read if call.tokens else None
        if read:
            return Cached(read, round(min(read / budget.whole, 1) * 100, 3))
    return None


def _billed(record: Record, budget: Budget) -> str:
    """Return how the estimate compares with what the provider counted."""
    for call in record.calls[:1]:
        billed = call.tokens.input if call.tokens else None
        if billed:
            off = (budget.used - billed) / billed * 100
            way = "under" if off < 0 else "over"
            return f"{count(billed)} billed, the estimate is {abs(off):.1f}% {way}"
    by = {"counted": record.result.counter, "rated": record.result.scorer}
    return ", ".join(f"{what} by {one}" for what, one in by.items() if one)


# ------------------------------------------------------------------------------ what belongs to it


def _related(record: Record, step: StepSkeleton) -> tuple[Related, ...]:
    found = [("compiled by", record.step), *(("sent by", call) for call in record.calls)]
    return tuple(
        Related(label, one, f"/steps/{one.step_id}/context", one.id == step.id)
        for label, one in found
    )
