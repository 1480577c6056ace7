"""What the runs list shows for a state: read once, arranged for the templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

import apsw

from hansard_store.database.cursors import Page
from hansard_store.errors import InvalidQueryError
from hansard_store.runs.filters import (
    ANY_KIND,
    HIDDEN,
    RUN_STATUSES,
    SORTED_RUNS,
    RunFilter,
    is_scanned,
    parse_sort,
)
from hansard_store.runs.groups import RunGroup, get_groups, list_grouped
from hansard_store.runs.queries import (
    RunDot,
    RunFacets,
    RunItem,
    count_runs,
    has_runs_of_kind,
    last_change,
    list_runs,
    run_facets,
    sample_runs,
)
from hansard_store.runs.saved_views import SavedView, list_views
from hansard_store.runs.values import VALUE_KEYS, filter_values
from hansard_web.diff.headline import Comparison, compare_runs
from hansard_web.runs.columns import COLUMNS, NAME, STATUS, RunColumn
from hansard_web.runs.filters import (
    NS_PER_MS,
    NS_PER_S,
    FilterTerm,
    ListState,
    hidden_pairs,
    to_filter,
)
from hansard_web.runs.heatmap import HeatMap, heat_map
from hansard_web.runs.rows import RunRow, member_rows, mixed_rows
from hansard_web.ui import format as figures

PAGE_ROWS: Final = 50
MOST_OPENED: Final = 100  # traces of a prompt below its row
MOST_AUTOMATIC_PAGES: Final = 10  # then people have to click for more
_FACET_VALUES: Final = 8  # that are seen at once
FACET_VALUES_COUNTED: Final = 1_000  # so that the number of the others is true of the newest runs
_MOST_VALUES: Final = 100  # of one facet that are listed at once
_FACETS: Final = {
    "tag": "Tag",
    "agent": "Agent",
    "model": "Model",
    "service": "Service",
    "tool": "Tool ran",
    "user": "User",
}
_MOST_HIDDEN: Final = 100_000  # runs of kind other that are counted: 3 ms
_MOST_HIDDEN_OF_SOME: Final = 1_000  # with other conditions, each is looked at
_ALL_OTHERS: Final = RunFilter(kind=HIDDEN)
# Kinds that are shown beside the chips, with what they hide.
_OWN_PLACE: Final = (FilterTerm("kind", "agent"), FilterTerm("kind", ANY_KIND))
_ENOUGH_FOR_TENTH: Final = 20  # ended runs below which "the slowest tenth" means little
PERIODS: Final = {
    "": "Any time",
    "15m": "Last 15 minutes",
    "1h": "Last hour",
    "24h": "Last 24 hours",
    "7d": "Last 7 days",
    "30d": "Last 30 days",
}


@dataclass(frozen=True, slots=True)
class _Chip:
    """A condition that is on, and the address without it."""

    label: str
    shown: str
    without: str


@dataclass(frozen=True, slots=True)
class _Choice:
    """A condition that following its address puts on, or off again."""

    label: str
    url: str
    is_on: bool
    runs: str = ""  # how many, as text; "" where nobody counted
    mark: str = ""  # icon


@dataclass(frozen=True, slots=True)
class FacetGroup:
    title: str
    key: str
    choices: tuple[_Choice, ...]
    more: str = ""  # how many others the newest runs have; "" for none


@dataclass(frozen=True, slots=True)
class _Column:
    """The head of a column."""

    key: str
    label: str
    title: str
    is_figure: bool
    url: str  # "" where nothing orders by it
    sorting: str  # aria-sort: "ascending", "descending", "other" (by arrival) or ""


@dataclass(frozen=True, slots=True)
class RowsPage:
    """One page of rows, and how to get the next."""

    rows: tuple[RunRow, ...]
    more_url: str | None  # None on the last page
    more_fragment: str | None
    is_automatic: bool  # the next page loads when its link comes into view


@dataclass(frozen=True, slots=True)
class KindFilter:
    """The filter that hides runs without an agent, model, tool or gate step."""

    is_on: bool = False
    is_given: bool = False  # by the address, and not by default
    hidden: str = ""  # "47 other runs"; "" for none
    any_url: str = ""  # the list without the filter
    only_url: str = ""  # the list with it, where it is off and would hide something


@dataclass(frozen=True, slots=True)
class RunCounts:
    """What is counted over the list, whatever page of it is shown."""

    kind: KindFilter
    pills: tuple[_Choice, ...]
    facets: tuple[FacetGroup, ...]
    is_sampled: bool  # counts are of the newest runs only
    summary: str
    query: str  # the state that was counted


@dataclass(frozen=True, slots=True)
class RunsPage:
    """Everything runs.html and its partials show."""

    state: ListState
    problems: tuple[str, ...]
    table: RowsPage
    chips: tuple[_Chip, ...]
    counts: RunCounts
    period: str
    periods: tuple[_Choice, ...]
    heat: HeatMap | None
    columns: tuple[_Column, ...]
    order: str  # what orders the rows, where no head of a column says so
    comparison: Comparison | None
    hidden: tuple[tuple[str, str], ...]  # what the filter form carries along unseen
    live_url: str
    views: tuple[SavedView, ...]
    all_columns: tuple[_Choice, ...]
    export: tuple[tuple[str, str], ...]  # the filters of the list as a file


def runs_page(connection: apsw.Connection, state: ListState, *, now_ns: int) -> RunsPage:
    """Return the whole page of a state; an invalid search is named on the page."""
    state = _with_default_kind(connection, state)
    meant = to_filter(state, now_ns=now_ns)
    problems = list(meant.problems)
    seq = last_change(connection)
    try:
        rows = rows_page(connection, state, now_ns=now_ns)
        dots = sample_runs(connection, meant.filter, now_ns=now_ns)
        counts = _counts(connection, state, dots, now_ns=now_ns)
    except InvalidQueryError as error:
        problems.append(str(error))
        rows, dots = RowsPage((), None, None, is_automatic=False), []
        counts = _no_counts(state)
    newest = max((row.group.newest if row.group else row.run.id for row in rows.rows), default=0)
    return RunsPage(
        state=state,
        problems=tuple(problems),
        table=rows,
        chips=tuple(_chips(state)),
        counts=counts,
        period=_period(state),
        periods=tuple(_periods(state)),
        heat=heat_map(
            dots, since_ns=meant.filter.since_ns, until_ns=meant.filter.until_ns or now_ns
        ),
        columns=tuple(_columns(state)),
        order=_order(state),
        comparison=compare_runs(connection, state, now_ns=now_ns),
        hidden=tuple(hidden_pairs(state, leave_out=("q", "cursor", "compare"))),
        live_url=live_url(state, seq=seq, newest=newest),
        views=tuple(list_views(connection)),
        all_columns=tuple(
            _Choice(one.label, "", one.key in state.shown_columns, mark=one.key)
            for one in COLUMNS.values()
        ),
        export=tuple(
            pair for pair in state.explicit().pairs()
            if pair[0] not in ("columns", "view", "cursor", "compare")
        ),
    )  # fmt: skip


def counts_of(connection: apsw.Connection, state: ListState, *, now_ns: int) -> RunCounts:
    """Return what is counted over a state; nothing where its search cannot be meant."""
    state = _with_default_kind(connection, state)
    filters = to_filter(state, now_ns=now_ns).filter
    try:
        dots = sample_runs(connection, filters, now_ns=now_ns)
        return _counts(connection, state, dots, now_ns=now_ns)
    except InvalidQueryError:
        return _no_counts(state)


def _counts(
    connection: apsw.Connection, state: ListState, dots: Sequence[RunDot], *, now_ns: int
) -> RunCounts:
    filters = to_filter(state, now_ns=now_ns).filter
    found = run_facets(connection, filters, now_ns=now_ns, values=FACET_VALUES_COUNTED)
    return RunCounts(
        kind=_kind_filter(connection, state, filters, now_ns=now_ns),
        pills=tuple(_pills(state, found, dots)),
        facets=tuple(_facets(connection, state, found, now_ns=now_ns)),
        is_sampled=not found.is_complete,
        summary=_summary(found),
        query=state.query,
    )


def rows_page(
    connection: apsw.Connection, state: ListState, *, now_ns: int, depth: int = 1
) -> RowsPage:
    """Return the rows at the state's cursor; `depth` counts pages loaded so far."""
    state = _with_default_kind(connection, state)
    found = list_rows(connection, state, now_ns=now_ns)
    rows = mixed_rows(
        connection, found.items, now_ns=now_ns, selected=state.compare,
        columns=state.shown_columns,
    )  # fmt: skip
    if found.next_cursor is None:
        return RowsPage(rows, None, None, is_automatic=False)
    more = state.at(found.next_cursor)
    fragment = f"/fragments/runs/more?{urlencode([*more.pairs(), ('depth', depth + 1)])}"
    return RowsPage(rows, more.url, fragment, is_automatic=depth < MOST_AUTOMATIC_PAGES)


def _with_default_kind(connection: apsw.Connection, state: ListState) -> ListState:
    """Return the state with the filter that holds by default.

    Runs of kind other are hidden, unless there are no others.
    """
    if state.hides_other or state.value("kind") or state.value("group"):
        return state
    return replace(state, hides_other=has_runs_of_kind(connection, "agent"))


def _kind_filter(
    connection: apsw.Connection, state: ListState, filters: RunFilter, *, now_ns: int
) -> KindFilter:
    """Return the filter with what it hides of the runs that meet all other conditions."""
    others = replace(filters, kind=HIDDEN)
    if filters.kind is None:
        both = has_runs_of_kind(connection, "other") and has_runs_of_kind(connection, "agent")
        return KindFilter(only_url=state.without("kind").url if both else "")
    if filters.kind == "other":
        return KindFilter()
    most = _MOST_HIDDEN if others == _ALL_OTHERS else _MOST_HIDDEN_OF_SOME
    hidden = count_runs(connection, others, now_ns=now_ns, limit=most + 1)
    return replace(_no_counts(state).kind, hidden=_other_runs(hidden, most=most))


def _other_runs(hidden: int, *, most: int) -> str:
    if not hidden:
        return ""
    return figures.plural(hidden, "other run") if hidden <= most else f"{most:,}+ other runs"


def _no_counts(state: ListState) -> RunCounts:
    is_given = state.value("kind") == "agent"
    is_on = is_given or state.hides_other
    kind = KindFilter(is_on, is_given, any_url=state.setting("kind", ANY_KIND).url)
    return RunCounts(
        kind, (), (), is_sampled=False, summary=figures.plural(0, "run"), query=state.query
    )


def list_rows(
    connection: apsw.Connection, state: ListState, *, now_ns: int
) -> Page[RunItem | RunGroup]:
    """Return what stands at the state's cursor; of a list of one group's traces, each of them."""
    of = list_runs if state.value("group") else list_grouped
    return of(
        connection,
        to_filter(state, now_ns=now_ns).filter,
        now_ns=now_ns,
        sort=parse_sort(state.sort or "-first_seen"),
        limit=PAGE_ROWS,
        cursor=state.cursor or None,
    )


@dataclass(frozen=True, slots=True)
class MembersPage:
    """The traces of one prompt, to be set below its row."""

    rows: tuple[RunRow, ...]
    all_url: str  # a list of them all, where they are too many to be set there; else ""


def members_page(
    connection: apsw.Connection, group_id: bytes, state: ListState, *, now_ns: int
) -> MembersPage:
    """Return the traces of a prompt; none where they are not several any more."""
    group = get_groups(connection, [group_id], now_ns=now_ns).get(group_id)
    if group is None:
        return MembersPage((), "")
    rows = member_rows(
        connection, group, now_ns=now_ns, selected=state.compare, columns=state.shown_columns
    )
    is_all = group.is_complete and len(rows) <= MOST_OPENED
    return MembersPage(rows[:MOST_OPENED], "" if is_all else f"/?group={group.group_id}")


def live_url(state: ListState, *, seq: int, newest: int) -> str:
    """Return the address of the stream that continues this page."""
    pairs = [(key, value) for key, value in state.explicit().pairs() if key != "compare"]
    return f"/live/runs?{urlencode([*pairs, ('after', seq), ('newest', newest)])}"


def _chips(state: ListState) -> list[_Chip]:
    chips = [_Chip(term.label, term.shown, state.toggled(term.key, term.value).url)
             for term in state.terms if term not in _OWN_PLACE]  # fmt: skip
    if state.words:
        chips.append(_Chip("text", state.words, state.searching("").url))
    return chips


def _facets(
    connection: apsw.Connection, state: ListState, counts: RunFacets, *, now_ns: int
) -> list[FacetGroup]:
    groups = []
    for key, title in {"status": "Status", **_FACETS}.items():
        # What else could be chosen shows only when the choice made here is left out.
        chosen = [term.value for term in state.terms if term.key == key]
        of = counts
        if chosen and key != "tag":  # tags add up: each must stand
            rest = to_filter(state.without(key), now_ns=now_ns).filter
            of = run_facets(connection, rest, now_ns=now_ns, values=FACET_VALUES_COUNTED)
        runs = {found.value: found.runs for found in of.counts.get(key, ())}
        known = [status for status in RUN_STATUSES if status in runs] if key == "status" else runs
        values = [*known][:_FACET_VALUES]
        values += [value for value in chosen if value not in values]
        others = len(runs) - sum(value in runs for value in values)
        choices = tuple(
            _Choice(
                label=value,
                url=state.toggled(key, value).url,
                is_on=value in chosen,
                runs=figures.count(runs.get(value, 0)),
            )
            for value in values
        )
        if choices:
            more = figures.count(others) if others else ""
            groups.append(FacetGroup(title, key, choices, more if key in VALUE_KEYS else ""))
    return groups


@dataclass(frozen=True, slots=True)
class ValuesPage:
    """All values of a facet, as choices of a list."""

    key: str
    title: str
    choices: tuple[_Choice, ...]
    is_complete: bool
    address: str  # of these values, to be searched
    is_list: bool  # only the list of them


def values_page(
    connection: apsw.Connection, state: ListState, key: str, *, like: str | None
) -> ValuesPage:
    """Return the values of a facet in the whole store; raises InvalidQueryError for another key."""
    found = filter_values(connection, key, like=like or "", limit=_MOST_VALUES)
    choices = tuple(
        _Choice(
            label=one.value,
            url=state.toggled(key, one.value).url,
            is_on=state.has(key, one.value),
            runs="" if one.runs is None else figures.count(one.runs),
        )
        for one in found.items
    )
    return ValuesPage(
        key=key,
        title=_FACETS.get(key, key),
        choices=choices,
        is_complete=found.is_complete,
        address=f"/fragments/values/{key}?{state.query}",
        is_list=like is not None,
    )


def _pills(state: ListState, counts: RunFacets, dots: Sequence[RunDot]) -> list[_Choice]:
    runs = {found.value: found.runs for found in counts.counts.get("status", ())}
    pills = [
        _Choice(
            label=label,
            url=state.toggled("status", status).url,
            is_on=state.has("status", status),
            runs=figures.count(runs.get(status, 0)),
            mark=status,
        )
        for status, label in (("error", "errors"), ("open", "open"))
        if runs.get(status) or state.has("status", status)
    ]
    lengths = [dot.duration_ns for dot in dots if dot.duration_ns is not None]
    costs = [dot.cost_usd_nano for dot in dots if dot.cost_usd_nano]
    if counts.with_receipts and not state.value("receipts"):
        url = state.setting("receipts", "yes").url
        with_receipts = figures.count(counts.with_receipts)
        pills.append(_Choice("has receipts", url, False, with_receipts, mark="compile"))
    if slow := _tenth(state, "min_duration_ms", lengths, NS_PER_MS):
        pills.append(_Choice(f"slow, over {figures.duration(slow[0])}", *slow[1:], mark="clock"))
    if costly := _tenth(state, "min_cost", costs, NS_PER_S):
        pills.append(_Choice(f"costly, over {figures.money(costly[0])}", *costly[1:], mark="coin"))
    return pills


def _tenth(
    state: ListState, key: str, amounts: Sequence[int], scale: int
) -> tuple[int, str, bool, str] | None:
    """Return limit, address, whether it is on, and count of the largest tenth of the runs."""
    if state.value(key):
        return None  # its chip says so, and takes it away
    if len(amounts) < _ENOUGH_FOR_TENTH:
        return None
    ordered = sorted(amounts)
    limit = _two_figures(ordered[len(ordered) * 9 // 10])
    above = sum(amount >= limit for amount in ordered)
    if not above or limit <= 2 * ordered[len(ordered) // 2]:
        return None
    value = f"{limit / scale:.9f}".rstrip("0").rstrip(".")
    return limit, state.setting(key, value).url, False, figures.count(above)


def _two_figures(amount: int) -> int:
    """Round to two significant figures, as people would choose a limit."""
    step: int = 10 ** max(len(str(amount)) - 2, 0)
    return amount // step * step


def _summary(counts: RunFacets) -> str:
    if not counts.is_complete:
        shown = f"more than {figures.plural(counts.runs, 'run')}"
    else:
        shown = figures.plural(counts.runs, "run")
    still_open = sum(found.runs for found in counts.counts.get("status", ())
                     if found.value == "open")  # fmt: skip
    return f"{shown}, {still_open} still open" if still_open else shown


def _period(state: ListState) -> str:
    since, until = state.value("since"), state.value("until")
    if until:
        return f"{_short(since) or 'the beginning'} to {_short(until)}"
    return PERIODS.get(since, f"Since {_short(since)}")


def _short(moment: str) -> str:
    return moment[:16].replace("T", " ")


def _periods(state: ListState) -> list[_Choice]:
    bare = state.without("since", "until")
    return [
        _Choice(
            label,
            (bare.setting("since", value) if value else bare).url,
            is_on=state.value("since") == value and not state.value("until"),
        )
        for value, label in PERIODS.items()
    ]


def _columns(state: ListState) -> list[_Column]:
    return [_column(state, one) for one in (STATUS, NAME, *map(COLUMNS.get, state.shown_columns))
            if one]  # fmt: skip


def _column(state: ListState, column: RunColumn) -> _Column:
    first = column.sort
    second = first.removeprefix("-") if first.startswith("-") else f"-{first}"
    sorting, title = "", column.title
    following = first
    if first and state.sort in (first, second):
        # The third click gives back the order of arrival.
        following = second if state.sort == first else ""
        sorting = "descending" if state.sort.startswith("-") else "ascending"
    elif column.key == "started" and state.sort in ("", "-first_seen"):
        sorting, title = "other", "ordered by arrival, the newest first; a click orders by start"
    return _Column(
        column.key,
        column.label,
        title,
        column.is_figure,
        state.sorted_by(following).url if first else "",
        sorting,
    )


def _order(state: ListState) -> str:
    if state.sort in ("", "-first_seen"):
        return "Newest arrival first"
    try:
        sort = parse_sort(state.sort)
    except InvalidQueryError:
        return ""
    return f"Sorted among the newest {SORTED_RUNS:,} runs" if is_scanned(sort) else ""
