"""The candidates of a compile as rows: filtered, ordered, grouped, a page at a time. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from hansard_store.compilations.receipts import StoredReceipt
from hansard_web.compile_view.labels import (
    DECISIONS,
    PASS_NUMBERS,
    SECTIONS,
    SWATCHES,
    Why,
    icon_of,
    kind_words,
    meaning,
    missed,
    pass_words,
    points,
    source_words,
    why,
)
from hansard_web.compile_view.record import CompileRecord, prompt_places
from hansard_web.compile_view.result import (
    Breakdown,
    ResultTerm,
    decimal,
    places_of,
    value_text,
    weight_text,
)
from hansard_web.compile_view.state import PAGE_ROWS, ContextState

# A score as a sum on paper: each term with value, weight and points, all decimals in line.

_PLACES: Final = 9  # points are billionths
_LEAST: Final = 3
_ZERO_PCT: Final = 25.0  # where the bars begin; what is subtracted goes to the left of it


@dataclass(frozen=True, slots=True)
class _TermRow:
    """One line of the sum, with its bar."""

    name: str
    value: str
    weight: str
    points: str
    css: str
    x_pct: float
    width_pct: float


@dataclass(frozen=True, slots=True)
class _Sum:
    """A score, written out."""

    rows: tuple[_TermRow, ...]
    nothing: tuple[str, ...]  # names of the terms that add nothing
    total: str
    is_exact: bool  # the terms add up to the total
    adds_up_to: str  # what they add up to where they do not


def sum_of(breakdown: Breakdown) -> _Sum:
    """Lay out a breakdown; every figure is exact."""
    amounts = [term.points for term in breakdown.terms]
    shown = places_of([*amounts, breakdown.total], _PLACES, least=_LEAST)
    largest = max([1, *map(abs, amounts)])
    counted = [term for term in breakdown.terms if term.points]
    return _Sum(
        rows=tuple(_row(term, shown, largest) for term in counted),
        nothing=tuple(_name(term) for term in breakdown.terms if not term.points),
        total=decimal(breakdown.total, _PLACES, shown),
        is_exact=breakdown.sum == breakdown.total,
        adds_up_to=decimal(
            breakdown.sum, _PLACES, places_of([breakdown.sum], _PLACES, least=shown)
        ),
    )


def _row(term: ResultTerm, shown: int, largest: int) -> _TermRow:
    share = abs(term.points) / largest
    is_negative = term.points < 0
    width = share * (_ZERO_PCT if is_negative else 100 - _ZERO_PCT)
    sign = "" if is_negative else "+"
    return _TermRow(
        name=_name(term),
        value=value_text(term),
        weight=weight_text(term),
        points=sign + decimal(term.points, _PLACES, shown),
        css="neg" if is_negative else "pos",
        x_pct=round(_ZERO_PCT - width if is_negative else _ZERO_PCT, 2),
        width_pct=round(width, 2),
    )


def _name(term: ResultTerm) -> str:
    return term.name.replace("_", " ")


OUT: Final = "out"  # the group of what is not in the prompt
_NEVER: Final = -(1 << 62)  # a score below any


@dataclass(frozen=True, slots=True)
class _Row:
    """One candidate in the table."""

    receipt: StoredReceipt
    anchor: str
    title: str
    href: str
    is_selected: bool
    word: str
    icon: str
    kind: str
    source: str
    swatch: str
    share_pct: float  # of the largest that was sent
    score: str  # "" where it has none
    exact_score: str
    sum: _Sum | None
    why: Why
    related_href: str | None
    missed: str
    rules: tuple[tuple[str, str], ...]  # (rule, address of its receipts)
    at_pass: str


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows that stand together, as far as they are on this page."""

    key: str
    label: str
    swatch: str
    aside: str
    tokens: int
    rows: tuple[_Row, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of the table."""

    groups: tuple[_Group, ...]
    shown: int
    first: int
    found: int  # rows that meet the filter
    of: int


def chosen(record: CompileRecord, state: ContextState) -> dict[str, list[StoredReceipt]]:
    """Return the receipts that meet the filter by their group, all in the order that is requested.

    Grouped first: a compile has thousands of receipts and a few groups to be put in order.
    """
    found = record.receipts
    if state.is_filtered:
        found = [one for one in found if _meets(one, state)]
    grouping = _GROUPINGS[state.group]
    groups: dict[str, list[StoredReceipt]] = defaultdict(list)
    for one in sorted(found, key=_ordering(record, state), reverse=state.is_reversed):
        groups[grouping.key(one)].append(one)
    return {key: groups[key] for key in _in_order(groups, grouping.order)}


def page_at(found: Sequence[StoredReceipt], state: ContextState) -> int:
    """Return the number of rows before the page: as asked, else where the chosen item stands."""
    if not state.first and state.item:
        at = next((at for at, one in enumerate(found) if one.item_id == state.item), 0)
        return at - at % PAGE_ROWS
    return state.first if state.first < len(found) else 0


def listing(
    record: CompileRecord, state: ContextState, path: str, *, spoken: Callable[[StoredReceipt], str]
) -> Listing:
    """Return the page of rows that the state asks for.

    `spoken` gives the first words of items whose id says nothing, "" for the others.
    """
    of_group = chosen(record, state)
    found = [one for group in of_group.values() for one in group]
    first = page_at(found, state)
    shown = found[first : first + PAGE_ROWS]
    grouping = _GROUPINGS[state.group]
    make = _RowMaker(record, state.but(first=first), path, spoken)
    groups: list[_Group] = []
    for key in dict.fromkeys(map(grouping.key, shown)):
        rows = tuple(make.row(one) for one in shown if grouping.key(one) == key)
        groups.append(
            _Group(
                key=key,
                label=grouping.label(key),
                swatch=SWATCHES.get(key, "free") if state.group == "place" else "",
                aside=_aside(record, state, key, len(of_group[key]), len(rows)),
                tokens=sum(one.tokens_after or 0 for one in of_group[key]),
                rows=rows,
            )
        )
    return Listing(tuple(groups), len(shown), first, len(found), len(record.receipts))


def _meets(one: StoredReceipt, state: ContextState) -> bool:
    if state.decision and one.decision != state.decision:
        return False
    if state.reason and one.reason != state.reason:
        return False
    if state.at_pass and one.pass_name != state.at_pass:
        return False
    if state.kind and one.kind != state.kind:
        return False
    if not state.find:
        return True
    words = state.find.casefold()
    fields = (one.item_id, one.source, one.source_type, one.kind, one.reason, one.rule_ids)
    return any(words in field.casefold() for field in fields if field)


# ------------------------------------------------------------------------------ order, groups


def _ordering(record: CompileRecord, state: ContextState) -> Callable[[StoredReceipt], Any]:
    if state.order == "score":
        return lambda one: (-_or_less(one.score_nano), one.ordinal)
    if state.order == "tokens":
        return lambda one: (-(one.tokens_after or 0), -_or_less(one.tokens_before), one.ordinal)
    if state.order == "missed":
        return lambda one: (_missed_key(one), one.ordinal)
    if state.order == "item":
        return lambda one: (one.item_id.casefold(), one.ordinal)
    positions, last = prompt_places(record.result), len(record.receipts)
    # What is out: what came nearest first, that is what left latest and with the best score.
    return lambda one: (
        (1, -PASS_NUMBERS.get(one.pass_name or "", 0), -_or_less(one.score_nano), one.ordinal)
        if one.decision == "exclude"
        else (0, positions.get(one.item_id, last), 0, one.ordinal)
    )


def _or_less(amount: int | None) -> int:
    return _NEVER if amount is None else amount


def _missed_key(one: StoredReceipt) -> tuple[int, int]:
    """Tokens before points before what missed by nothing that can be counted."""
    if one.missed_tokens is not None:
        return 0, one.missed_tokens
    if one.missed_score_nano is not None:
        return 1, one.missed_score_nano
    return 2, 0


@dataclass(frozen=True, slots=True)
class _Grouping:
    """A way to put rows into groups; those that `order` does not have stand last."""

    key: Callable[[StoredReceipt], str]
    label: Callable[[str], str]
    order: Sequence[str] = ()  # (): the largest group first


def _place_words(key: str) -> str:
    return SECTIONS.get(key, "Not in the prompt" if key == OUT else key or "In the prompt")


_GROUPINGS: Final[Mapping[str, _Grouping]] = {
    "place": _Grouping(
        lambda one: OUT if one.decision == "exclude" else one.section or "",
        _place_words,
        (*SECTIONS, "", OUT),
    ),
    "decision": _Grouping(
        lambda one: one.decision, lambda key: DECISIONS.get(key, key).capitalize(), (*DECISIONS,)
    ),
    "reason": _Grouping(lambda one: one.reason, meaning),
    "pass": _Grouping(
        lambda one: one.pass_name or "",
        lambda key: f"Pass {pass_words(key)}" if key else "No pass recorded",
        (*PASS_NUMBERS,),
    ),
    "kind": _Grouping(lambda one: one.kind or "", lambda key: kind_words(key).capitalize()),
    "none": _Grouping(lambda _: "", lambda _: ""),
}


def _in_order(groups: Mapping[str, Sequence[StoredReceipt]], order: Sequence[str]) -> list[str]:
    """Return the keys of groups in the order of what they are, else the largest first."""
    if not order:
        return sorted(groups, key=lambda key: (-len(groups[key]), key))
    known = {name: at for at, name in enumerate(order)}
    return sorted(groups, key=lambda key: (known.get(key, len(known)), key))


def _aside(record: CompileRecord, state: ContextState, key: str, total: int, shown: int) -> str:
    text = f"{total:,} item{'' if total == 1 else 's'}"
    if shown < total:
        text += f", {shown:,} on this page"
    if state.group == "reason":
        text += f" · {key}"
    return text


# ------------------------------------------------------------------------------ rows


class _RowMaker:
    """Makes the rows of one page."""

    def __init__(
        self,
        record: CompileRecord,
        state: ContextState,
        path: str,
        spoken: Callable[[StoredReceipt], str],
    ) -> None:
        self._record = record
        self._state = state
        self._path = path
        self._spoken = spoken
        self._largest = max([1, *(one.tokens_after or 0 for one in record.receipts)])
        self._known = {one.item_id for one in record.receipts}

    def row(self, one: StoredReceipt) -> _Row:
        breakdown = self._record.result.breakdown(one.item_id)
        reason, words = why(one), self._spoken(one)
        source = source_words(one)
        return _Row(
            receipt=one,
            anchor=f"i{one.ordinal}",
            title=f"“{words}”" if words else one.item_id,
            href=self._item_href(one.item_id) + f"#i{one.ordinal}",
            is_selected=one.item_id == self._state.item,
            word=DECISIONS.get(one.decision, one.decision),
            icon=icon_of(one.kind),
            kind=kind_words(one.kind),
            source=f"{source} · {one.item_id}" if words else source,
            swatch=SWATCHES.get(one.section or "", ""),
            share_pct=round((one.tokens_after or 0) / self._largest * 100, 2),
            score="" if one.score_nano is None else points(one.score_nano),
            exact_score="" if one.score_nano is None else exact(one.score_nano),
            sum=None if breakdown is None else sum_of(breakdown),
            why=reason,
            related_href=self._item_href(reason.related) if reason.related in self._known else None,
            missed=missed(one) if one.decision == "exclude" else "",
            rules=tuple((rule, receipts_href(rule=rule)) for rule in one.rules),
            at_pass=pass_words(one.pass_name),
        )

    def _item_href(self, item_id: str | None) -> str:
        return self._state.address(self._path, item=item_id or "", text="changes")


def exact(nano: int) -> str:
    """Return billionths of a point as a decimal, to the last digit."""
    return decimal(nano, 9, places_of([nano], 9, least=3))


def receipts_href(**query: str) -> str:
    """Return the address of the receipts that meet a filter, of all runs."""
    return f"/receipts?{urlencode(query)}"
