"""What a list of runs can be narrowed and sorted by, turned into SQL.

Optional filters are fragments of fixed SQL. One of them may *drive* the query: the one whose index
holds the fewest runs is walked and the others are probed, so that neither a rare value in a large
store nor a common one in a small window walks every run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from string import hexdigits

import apsw

from hansard_store.annotations.queries import MarkCondition, ScoreWanted, mark_conditions
from hansard_store.database.cursors import decode_cursor, encode_cursor
from hansard_store.errors import InvalidCursorError, InvalidQueryError
from hansard_store.runs.status import ALIVE_UNTIL, WAITS_UNTIL

RUN_STATUSES = ("ok", "error", "open", "no_end", "blocked", "cancelled")
RUN_KINDS = ("agent", "other")
RECEIPT_WORDS = {"yes": True, "no": False}
HIDDEN = "hidden"  # of a list of groups: runs of kind other that are in no group with an agent's
ANY_KIND = "any"  # of a query: no condition
FACET_KINDS = ("agent", "model", "tool", "service", "role")
_GROUP_DIGITS = 32
_FEW = 2000  # runs that may be read and sorted for one page
_MANY = 20_000  # up to which common conditions are distinguished: 1 ms each
_MAX_INTEGER = (1 << 63) - 1
MOST_FILTERS = 100  # each has a link on the page that holds all others: N filters, N * N bytes


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Conditions on runs, all of which must hold; empty ones are left out.

    Several values of a status or facet mean any of them. Several attributes must each be on some
    span of the run; a value of None asks for the key alone. Several tags or scores must each stand
    on the run or on a step of it.
    """

    q: str = ""
    kind: str | None = None  # agent: with a step of an agent's work; other: without any
    status: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    service: tuple[str, ...] = ()
    role: tuple[str, ...] = ()
    conversation: str | None = None
    group: bytes | None = None
    user: str | None = None
    error: bytes | None = None  # fingerprint of a group of errors, one of which it has
    attributes: tuple[tuple[str, str | None], ...] = ()
    tag: tuple[str, ...] = ()
    score: tuple[ScoreWanted, ...] = ()
    since_ns: int | None = None  # started at or after
    until_ns: int | None = None  # started before
    min_duration_ns: int | None = None  # an open run has lasted as long as it was heard of
    min_cost_usd_nano: int | None = None
    has_receipts: bool | None = None

    def facets(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(kind, values) for kind in FACET_KINDS if (values := getattr(self, kind))]


def check_filters(count: int) -> None:
    """Refuse more conditions than a list is worth narrowing by; raises InvalidQueryError."""
    if count > MOST_FILTERS:
        raise InvalidQueryError(
            "filters", f"a list of runs takes at most {MOST_FILTERS} filters; {count:,} are given"
        )


@dataclass(frozen=True, slots=True)
class RunSort:
    """An order of runs; ties are broken by the order in which they were first seen."""

    key: str = "first_seen"
    descending: bool = True

    @property
    def text(self) -> str:
        return f"-{self.key}" if self.descending else self.key


NEWEST_FIRST = RunSort()

# Key -> the sorted expression, and how to walk all runs in its order.
_SORTS = {
    "first_seen": ("run.id", "run NOT INDEXED"),
    "started_at": ("run.started_ns", "run INDEXED BY run_started"),
    "duration_ms": ("run.ended_ns - run.started_ns", "run INDEXED BY run_duration"),
    "cost_usd": ("coalesce(run.cost_usd_nano, -1)", "run INDEXED BY run_cost"),
}
# The same of agents' runs alone, which may be few among others.
_AGENT_WALKS = {
    "first_seen": "run INDEXED BY run_agent",
    "started_at": "run INDEXED BY run_agent_started",
    "duration_ms": "run INDEXED BY run_agent_duration",
    "cost_usd": "run INDEXED BY run_agent_cost",
}
# Orders with one index for both kinds: runs of both are the two halves of it, merged.
_HALVED_SORTS = {
    "tokens": (
        "coalesce(run.tokens_input + run.tokens_output, run.tokens_input, run.tokens_output, -1)",
        "run INDEXED BY run_tokens",
    ),
    "steps": ("run.step_count", "run INDEXED BY run_steps"),
    "errors": ("run.error_count", "run INDEXED BY run_errors"),
}
# Orders without an index: it would be written with every batch for a list that is rarely wanted.
# The newest SORTED_RUNS that meet the filter are read and sorted.
SORTED_RUNS = 10_000
_LAST_TEXT = "\U0010ffff"  # where a text is missing: behind all others
_SCAN_SORTS = {
    "name": "lower(substr(run.name, 1, 80))",
    "status": "run.status",
    "agent": f"lower(substr(coalesce(run.agent_name, '{_LAST_TEXT}'), 1, 80))",
    "model": "coalesce((SELECT lower(min(value)) FROM run_facet"
    f" WHERE run = run.id AND kind = 'model'), '{_LAST_TEXT}')",
    "service": "coalesce((SELECT lower(min(value)) FROM run_facet"
    f" WHERE run = run.id AND kind = 'service'), '{_LAST_TEXT}')",
    "user": f"lower(substr(coalesce(run.user_id, '{_LAST_TEXT}'), 1, 80))",
    "last_seen": "run.last_received_ns",
    "tools": "run.tool_calls",
    "calls": "run.model_calls",
    "input": "coalesce(run.tokens_input, -1)",
    "output": "coalesce(run.tokens_output, -1)",
    "cached": "coalesce(1000 * run.tokens_cache_read / nullif(run.tokens_input, 0), -1)",
}
_TEXT_SORTS = ("name", "status", "agent", "model", "service", "user")
INDEXED_SORTS = (*_SORTS, *_HALVED_SORTS)
RUN_SORTS = (*INDEXED_SORTS, *_SCAN_SORTS)


def parse_kind(text: str | None) -> str | None:
    """Return the kind of runs that a query asks for; None: both."""
    if not text or text == ANY_KIND:
        return None
    if text not in RUN_KINDS:
        known = ", ".join((*RUN_KINDS, ANY_KIND))
        raise InvalidQueryError("kind", f"no run has kind {text!r}; known are {known}")
    return text


def parse_receipts(text: str | None) -> bool | None:
    """Return whether a query asks for runs with receipts; None where it does not say."""
    if not text:
        return None
    if text not in RECEIPT_WORDS:
        raise InvalidQueryError("receipts", f"receipts is {text[:40]!r}; it is yes or no")
    return RECEIPT_WORDS[text]


def parse_group(text: str | None) -> bytes | None:
    """Return the group that a query names; None where it names none."""
    if not text:
        return None
    if len(text) != _GROUP_DIGITS or not set(text) <= set(hexdigits):
        raise InvalidQueryError("group", f"group is {text!r}; it has {_GROUP_DIGITS} hex digits")
    return bytes.fromhex(text)


def parse_error(text: str | None) -> bytes | None:
    """Return the group of errors that a query names; None where it names none."""
    if not text:
        return None
    if len(text) != _GROUP_DIGITS or not set(text) <= set(hexdigits):
        raise InvalidQueryError("error", f"error is {text!r}; it has {_GROUP_DIGITS} hex digits")
    return bytes.fromhex(text)


def parse_sort(text: str) -> RunSort:
    """Return the sort of a query value: a key, with `-` before it for largest or newest first."""
    key = text.removeprefix("-")
    if key not in RUN_SORTS:
        known = ", ".join(RUN_SORTS)
        raise InvalidQueryError(
            "sort", f"cannot sort by {text!r}; known are {known}, each also with -"
        )
    return RunSort(key, descending=text.startswith("-"))


@dataclass(frozen=True, slots=True)
class RunCursor:
    """The last run of a page: its value in the sort, and its number."""

    value: int | str
    id: int

    def encode(self, sort: RunSort) -> str:
        value = 0 if isinstance(self.value, str) else self.value
        return encode_cursor(f"runs {sort.text}", value, self.id)


def decode_run_cursor(connection: apsw.Connection, text: str, sort: RunSort) -> RunCursor:
    """Return the place a cursor names; raises InvalidCursorError, also for one of another sort.

    In an order of texts it is the place of a run as it is now; of a run that is gone there is none.
    """
    value, number = decode_cursor(f"runs {sort.text}", text, count=2)
    if sort.key not in _TEXT_SORTS:
        return RunCursor(value, number)
    found = connection.execute(f"SELECT {_SCAN_SORTS[sort.key]} FROM run WHERE id = ?", (number,))
    if (words := found.get) is None:
        raise InvalidCursorError("cursor")
    return RunCursor(words, number)


def first_page(sort: RunSort) -> RunCursor:
    """Return a place before every run."""
    edge = _MAX_INTEGER if sort.descending else -_MAX_INTEGER - 1
    if sort.key in _TEXT_SORTS:
        return RunCursor(_LAST_TEXT if sort.descending else "", edge)
    return RunCursor(edge, edge)


@dataclass(frozen=True, slots=True)
class _Driver:
    """A way to walk only the runs that meet one condition."""

    table: str
    condition: str  # what its index is searched by
    number: str = "run.id"  # the run's number as its index holds it
    in_order: bool = False  # its index gives runs in the order they were first seen
    index: str = ""  # the index alone, where its rows can be counted without those of their runs

    def count(self, connection: apsw.Connection, bindings: dict[str, object], *, limit: int) -> int:
        """Return how many runs it gives, at most some."""
        sql = (
            f"SELECT count(*) FROM (SELECT 1 FROM {self.index or self.table}"
            f" WHERE {self.condition} LIMIT {limit})"
        )
        return int(connection.execute(sql, bindings).get)


@dataclass(frozen=True, slots=True)
class _Condition:
    """One filter: as a test of a run at hand and, where an index serves it, as a driver."""

    test: str
    driver: _Driver | None = None


def _column(test: str, index: str, *, in_order: bool = False) -> _Condition:
    return _Condition(test, _Driver(f"run INDEXED BY {index}", test, in_order=in_order))


def _facet(kind: str) -> _Condition:
    return _Condition(
        "EXISTS (SELECT 1 FROM run_facet AS facet"
        f" WHERE facet.kind = '{kind}' AND facet.value = :{kind} AND facet.run = run.id)",
        _Driver(
            "run_facet AS driver CROSS JOIN run ON run.id = driver.run",
            f"driver.kind = '{kind}' AND driver.value = :{kind}",
            number="driver.run",
            in_order=True,
            index="run_facet AS driver",
        ),
    )


def _mark(one: MarkCondition) -> _Condition:
    """An annotation that stands, on the run or a step of it."""
    return _Condition(
        "EXISTS (SELECT 1 FROM annotation INDEXED BY annotation_run"
        f" WHERE trace_id = run.trace_id AND ended_ns IS NULL AND {one.sql})",
        _Driver(
            "(SELECT DISTINCT trace_id FROM annotation INDEXED BY annotation_name"
            f" WHERE {one.sql} AND ended_ns IS NULL) AS driver"
            " CROSS JOIN run ON run.trace_id = driver.trace_id",
            "1",
        ),
    )


def _any_facet(kind: str) -> _Condition:
    return _Condition(
        "EXISTS (SELECT 1 FROM run_facet AS facet WHERE facet.run = run.id"
        f" AND facet.kind = '{kind}' AND facet.value IN (SELECT value FROM json_each(:{kind})))"
    )


_SINCE, _UNTIL = "run.started_ns >= :since_ns", "run.started_ns < :until_ns"
_COLUMNS = {
    "conversation": _column("run.conversation_id = :conversation", "run_conversation"),
    "group": _column("run.group_id = :group", "run_group", in_order=True),
    "user": _column("run.user_id = :user", "run_user", in_order=True),
    "error": _Condition(
        "EXISTS (SELECT 1 FROM error_step INDEXED BY error_step_run WHERE error_step.run = run.id"
        " AND counted = 1 AND fingerprint = :error)",
        _Driver(
            "(SELECT DISTINCT error_step.run FROM error_step INDEXED BY error_step_group"
            " WHERE counted = 1 AND fingerprint = :error) AS driver"
            " CROSS JOIN run ON run.id = driver.run",
            "1",
        ),
    ),
    "since_ns": _column(_SINCE, "run_started"),
    "until_ns": _column(_UNTIL, "run_started"),
    "min_duration_ns": _column("run.ended_ns - run.started_ns >= :min_duration_ns", "run_duration"),
    "min_cost_usd_nano": _column(
        "coalesce(run.cost_usd_nano, -1) >= :min_cost_usd_nano", "run_cost"
    ),
}
_WINDOW = _column(f"{_SINCE} AND {_UNTIL}", "run_started")
_WAITS = f"{WAITS_UNTIL} > :now_ns"
_STATUS = {
    status: _column(test, "run_status", in_order=True)
    for status, test in {
        "error": "run.status = 'error'",
        "cancelled": "run.status = 'cancelled'",
        "ok": f"run.status = 'ok' AND NOT {_WAITS}",
        "open": f"run.status = 'open' AND {ALIVE_UNTIL} >= :now_ns AND NOT {_WAITS}",
        "no_end": f"run.status = 'open' AND {ALIVE_UNTIL} < :now_ns AND NOT {_WAITS}",
    }.items()
} | {
    "blocked": _Condition(
        f"run.status NOT IN ('error', 'cancelled') AND {_WAITS}",
        _Driver(
            "(SELECT DISTINCT trace_id FROM approval INDEXED BY approval_status"
            " WHERE status IN ('awaiting', 'revised') AND trace_id IS NOT NULL"
            " AND expires_ns > :now_ns) AS driver"
            " CROSS JOIN run ON run.trace_id = driver.trace_id",
            "run.status NOT IN ('error', 'cancelled')",
        ),
    ),
}
_RECEIPTS = {
    True: _column("run.id > 0 AND run.has_receipts = 1", "run_receipts", in_order=True),
    False: _Condition("run.has_receipts = 0"),
}
# The number makes it a search of the partial index, whatever else is asked.
_KIND = {
    "agent": _column("run.id > 0 AND run.work_count > 0", "run_agent", in_order=True),
    "other": _column("run.id > 0 AND run.work_count = 0", "run_other", in_order=True),
    HIDDEN: _column(
        """run.id > 0 AND run.work_count = 0 AND (run.group_id IS NULL OR NOT EXISTS (
          SELECT 1 FROM run AS peer INDEXED BY run_group
          WHERE peer.group_id = run.group_id AND peer.work_count > 0))""",
        "run_other",
        in_order=True,
    ),
}
_FACET = {kind: _facet(kind) for kind in FACET_KINDS}
_ANY_FACET = {kind: _any_facet(kind) for kind in FACET_KINDS}
_CANDIDATES = _Condition(
    "1",
    _Driver("json_each(:candidates) AS driver CROSS JOIN run ON run.id = driver.value", "1"),
)


@dataclass(frozen=True, slots=True)
class RunQuery:
    """SQL that yields runs in order: `FROM {source} WHERE {where} ORDER BY {order}`."""

    source: str
    where: str
    order: str
    value: str  # the sorted expression
    bindings: dict[str, object]


def run_query(
    connection: apsw.Connection,
    filters: RunFilter,
    *,
    sort: RunSort,
    after: RunCursor,
    now_ns: int,
    candidates: Sequence[int] | None = None,
) -> RunQuery:
    """Choose how to walk the runs that meet a filter, and return the SQL for it.

    `q` and `attributes` are not looked at: they arrive as `candidates`, the numbers of the runs
    that meet them.
    """
    bindings = _bindings(filters, now_ns=now_ns) | {
        "after_value": after.value,
        "after_id": after.id,
    }
    is_walked = sort.key in _HALVED_SORTS and filters.kind is not None
    conditions, of_marks = _conditions(filters, is_walked=is_walked)
    bindings |= of_marks
    if candidates is None:
        driver = _best_driver(connection, conditions, bindings=bindings, sort=sort)
    else:
        bindings["candidates"] = json.dumps(list(candidates))
        driver = _CANDIDATES.driver
    value, walk = _order_of(sort, filters.kind)
    if is_walked:
        half = _half(walk, is_agent=filters.kind == "agent")
        conditions.append(half)
        driver = driver or half.driver
    number = "run.id" if driver is None else driver.number
    direction, compare = ("DESC", "<") if sort.descending else ("ASC", ">")
    if value == "run.id":
        after_last = [f"{number} {compare} :after_id"]
        order = f"{number} {direction}"
    else:
        # The first is the index search, the second breaks ties.
        after_last = [
            f"{value} {compare}= :after_value",
            f"({value} {compare} :after_value OR run.id {compare} :after_id)",
        ]
        order = f"{value} {direction}, run.id {direction}"
    tests = [f"({one.test})" for one in conditions if driver is None or one.driver is not driver]
    search = [] if driver is None else [driver.condition]
    return RunQuery(
        source=walk if driver is None else driver.table,
        where=" AND ".join([*search, *after_last, *tests]),
        order=order,
        value=value,
        bindings=bindings,
    )


@dataclass(frozen=True, slots=True)
class RunConditions:
    """What must hold of a row of `run` at hand: SQL, and its bindings."""

    tests: tuple[str, ...]
    bindings: dict[str, object]


def run_conditions(filters: RunFilter, *, now_ns: int) -> RunConditions:
    """Return the tests of a filter, for queries that read runs beside rows of another table.

    Without `q` and `attributes`, as `run_query`.
    """
    conditions, of_marks = _conditions(filters)
    bindings = _bindings(filters, now_ns=now_ns) | of_marks
    return RunConditions(tuple(one.test for one in conditions), bindings)


def _conditions(
    filters: RunFilter, *, is_walked: bool = False
) -> tuple[list[_Condition], dict[str, object]]:
    """Return all conditions but words and attributes, and the bindings of those on annotations.

    `is_walked`: the walk itself gives runs of the wanted kind alone.
    """
    bindings: dict[str, object] = {}
    conditions = [*_column_conditions(filters), *_status_conditions(filters)]
    if filters.kind is not None and (not is_walked or filters.kind == HIDDEN):
        conditions.append(_KIND[filters.kind])
    if filters.has_receipts is not None:
        conditions.append(_RECEIPTS[filters.has_receipts])
    for one in mark_conditions(filters.tag, filters.score):
        bindings |= one.bindings
        conditions.append(_mark(one))
    for kind, values in filters.facets():
        conditions.append((_FACET if len(values) == 1 else _ANY_FACET)[kind])
    return conditions, bindings


def _order_of(sort: RunSort, kind: str | None) -> tuple[str, str]:
    """Return the sorted expression, and how to walk all runs of a kind in its order."""
    if sort.key in _SCAN_SORTS:
        return _SCAN_SORTS[sort.key], "run NOT INDEXED"
    if sort.key in _HALVED_SORTS:
        return _HALVED_SORTS[sort.key]
    value, walk = _SORTS[sort.key]
    return value, _AGENT_WALKS[sort.key] if kind == "agent" else walk


def _half(walk: str, *, is_agent: bool) -> _Condition:
    """Runs of one kind as an index of both holds them: the expression and nothing else."""
    test = f"(run.work_count > 0) = {int(is_agent)}"
    return _Condition(test, _Driver(walk, test))


def is_halved(filters: RunFilter, sort: RunSort) -> bool:
    """Whether the runs of a filter are to be read kind by kind and merged."""
    return filters.kind is None and sort.key in _HALVED_SORTS


def is_scanned(sort: RunSort) -> bool:
    """Whether no index has this order: only the newest SORTED_RUNS can be sorted."""
    return sort.key in _SCAN_SORTS


def _bindings(filters: RunFilter, *, now_ns: int) -> dict[str, object]:
    bindings: dict[str, object] = {"now_ns": now_ns}
    for name in _COLUMNS:
        bindings[name] = getattr(filters, name)
    for kind, values in filters.facets():
        bindings[kind] = values[0] if len(values) == 1 else json.dumps(values)
    return bindings


def _column_conditions(filters: RunFilter) -> list[_Condition]:
    names = [name for name in _COLUMNS if getattr(filters, name) is not None]
    if {"since_ns", "until_ns"} <= set(names):
        rest = [_COLUMNS[name] for name in names if name not in ("since_ns", "until_ns")]
        return [*rest, _WINDOW]
    return [_COLUMNS[name] for name in names]


def _status_conditions(filters: RunFilter) -> list[_Condition]:
    if unknown := [status for status in filters.status if status not in _STATUS]:
        known = ", ".join(RUN_STATUSES)
        raise InvalidQueryError("status", f"no run has status {unknown[0]!r}; known are {known}")
    if not filters.status:
        return []
    if len(filters.status) == 1:
        return [_STATUS[filters.status[0]]]
    return [_Condition(" OR ".join(f"({_STATUS[status].test})" for status in filters.status))]


def _best_driver(
    connection: apsw.Connection,
    conditions: Sequence[_Condition],
    *,
    bindings: dict[str, object],
    sort: RunSort,
) -> _Driver | None:
    drivers = [one.driver for one in conditions if one.driver is not None]
    if not drivers:
        return None
    if len(drivers) == 1 and drivers[0].in_order and sort.key == "first_seen":
        return drivers[0]
    counts = [driver.count(connection, bindings, limit=_FEW) for driver in drivers]
    if min(counts) < _FEW:
        return drivers[counts.index(min(counts))]
    # All are common: only one that is in the wanted order already is better than that order.
    in_order = [one for one in drivers if one.in_order] if sort.key == "first_seen" else []
    if len(in_order) < 2:
        return in_order[0] if in_order else None
    return min(in_order, key=lambda one: one.count(connection, bindings, limit=_MANY))
