"""Groups of errors as lists and pages read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, get_args

import apsw

from hansard_store.database.cursors import Page, decode_cursor, encode_cursor
from hansard_store.database.id_prefixes import find_row
from hansard_store.database.transactions import snapshot
from hansard_store.detection.rules import SubjectKind
from hansard_store.error_groups.changes import (
    UNTOUCHED,
    GroupState,
    State,
    count_notes,
    read_state,
    read_states,
)
from hansard_store.error_groups.steps import subject_of
from hansard_store.runs.candidates import candidate_runs
from hansard_store.runs.filters import RunFilter, run_conditions
from hansard_store.steps.shared_span_ids import shared_side, step_id_of

Shown = Literal["open", "closed", "watched", "all"]  # open: also those that opened again
Sort = Literal["-count", "count", "-last_seen", "last_seen", "-first_seen", "first_seen"]
SHOWN: Final[tuple[Shown, ...]] = get_args(Shown)
SORTS: Final[tuple[Sort, ...]] = get_args(Sort)
HOUR_NS: Final = 3_600 * 10**9
DAY_NS: Final = 24 * HOUR_NS
_MOST_HOURS: Final = 48  # of a trend by hour; longer ones are by day
_MOST_BARS: Final = 60  # beyond, a bar is several days
_SAMPLE: Final = 50  # newest steps of a group whose agents and models are shown
_MAX: Final = (1 << 63) - 1
_ALL_RUNS: Final = RunFilter()

_SUMS: Final = """
SELECT fingerprint, count(*), count(DISTINCT error_step.run), min(time_ns), max(time_ns)
FROM error_step INDEXED BY error_step_group{joined}
WHERE counted = 1 AND time_ns >= :since AND time_ns < :until{tests}
GROUP BY fingerprint
"""
_OF_RUNS: Final = " CROSS JOIN run ON run.id = error_step.run"
_BARS: Final = """
SELECT wanted.value, (time_ns - :origin) / :bar_ns, count(*)
FROM json_each(:groups) AS wanted CROSS JOIN error_step INDEXED BY error_step_group
  ON fingerprint = unhex(wanted.value){joined}
WHERE counted = 1 AND time_ns >= :since AND time_ns < :until{tests}
GROUP BY 1, 2
"""
_SEEN: Final = """
SELECT (SELECT min(time_ns) FROM error_step INDEXED BY error_step_group
  WHERE counted = 1 AND fingerprint = :fingerprint),
 (SELECT max(time_ns) FROM error_step INDEXED BY error_step_group
  WHERE counted = 1 AND fingerprint = :fingerprint)
"""
_STEPS: Final = f"""
SELECT span.trace_id, span.span_id, {shared_side("span")}, error_step.time_ns, span.role,
  span.tool_name, span.model, coalesce(span.label, span.name), error_type, message,
  coalesce(span.agent_name, run.agent_name), run.name, run.id
FROM error_step INDEXED BY error_step_group CROSS JOIN span ON span.id = error_step.span
  CROSS JOIN run ON run.id = error_step.run
WHERE counted = 1 AND fingerprint = :fingerprint
ORDER BY error_step.time_ns DESC LIMIT :limit
"""
_FIRST_OF_RUN: Final = """
SELECT wanted.value, error_type, message
FROM json_each(:runs) AS wanted CROSS JOIN error_step INDEXED BY error_step_run
  ON error_step.run = wanted.value AND counted = 1
GROUP BY wanted.value HAVING time_ns = min(time_ns)
"""
_PREFIX: Final = """
SELECT DISTINCT fingerprint FROM error_step INDEXED BY error_step_group
WHERE counted = 1 AND fingerprint BETWEEN :low AND :high
UNION SELECT fingerprint FROM error_group WHERE fingerprint BETWEEN :low AND :high
ORDER BY 1 LIMIT :limit
"""
_GROUP_OF_STEP: Final = """
SELECT fingerprint FROM span INDEXED BY span_identity
  CROSS JOIN error_step ON error_step.span = span.id
WHERE trace_id = :trace AND span_id = :span AND counted = 1 LIMIT 1
"""
_TASKS: Final = """
SELECT task_id, state, evidence FROM task INDEXED BY task_state
WHERE state IN ('blocked', 'approved') AND rule = 'repeated_errors' AND subject_kind = :kind
  AND subject = :subject
ORDER BY id DESC LIMIT 50
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which errors are counted, and how their groups are ordered."""

    since_ns: int = 0
    until_ns: int = _MAX
    runs: RunFilter = _ALL_RUNS  # whose errors; its words are looked for in messages
    shown: Shown = "open"
    sort: Sort = "-count"

    @classmethod
    def of(cls, filters: RunFilter, *, shown: Shown = "open", sort: Sort = "-count") -> Wanted:
        """Return those of a filter, whose times are of the errors and not of their runs."""
        return cls(
            since_ns=filters.since_ns or 0,
            until_ns=_MAX if filters.until_ns is None else filters.until_ns,
            runs=replace(filters, since_ns=None, until_ns=None),
            shown=shown,
            sort=sort,
        )


class Trend(NamedTuple):
    """How often in each piece of a time, the oldest first."""

    since_ns: int
    bar_ns: int
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ErrorOccurrence:
    """One step that failed."""

    step_id: str
    run_id: str
    at_ns: int
    error_type: str | None
    message: str | None
    agent_name: str | None
    run_name: str
    model: str | None
    step_name: str


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Errors of one subject with one signature; counts are of the time that was wanted."""

    error_id: str
    subject_kind: SubjectKind
    subject: str
    error_type: str | None
    message: str | None  # of the newest one
    count: int
    run_count: int
    first_ns: int  # of all that are stored, whenever
    last_ns: int
    trend: Trend
    agents: tuple[str, ...]  # of the newest 50, as are the models
    models: tuple[str, ...]
    newest: tuple[ErrorOccurrence, ...]
    state: State
    watched: bool
    closed_ns: int | None
    reopened_ns: int | None
    note_count: int

    @property
    def key(self) -> bytes:
        return bytes.fromhex(self.error_id)


class ErrorSums(NamedTuple):
    """What all groups that are wanted come to, whatever is shown of them."""

    groups: int
    errors: int
    counts: Mapping[Shown, int]  # groups by what can be shown


class _Sum(NamedTuple):
    """A group as it is ordered."""

    fingerprint: bytes
    errors: int
    run_count: int
    first_ns: int
    last_ns: int


def list_errors(
    connection: apsw.Connection,
    wanted: Wanted,
    *,
    now_ns: int,
    limit: int,
    cursor: str | None = None,
) -> tuple[Page[ErrorGroup], ErrorSums]:
    """Return one page of the groups, and the sums over all; raises InvalidCursorError.

    Reads every error of the time that is wanted, by its index: 0.4 µs each.
    """
    kind = f"errors {wanted.sort} {wanted.shown}"
    (first,) = decode_cursor(kind, cursor, count=1) if cursor else (0,)
    with snapshot(connection):
        query = _Query.of(connection, wanted, now_ns=now_ns)
        states, notes = read_states(connection), count_notes(connection)
        found = query.sums(connection)
        by_shown = {
            shown: [one for one in found if _is_shown(states.get(one.fingerprint), shown)]
            for shown in SHOWN
        }
        chosen = _ordered(by_shown[wanted.shown], wanted.sort)
        page = chosen[max(first, 0) :][:limit]
        trends = query.trends(connection, page, now_ns=now_ns)
        items = [
            _group(connection, one, trends[one.fingerprint], states, notes, limit=_SAMPLE)
            for one in page
        ]
    more = encode_cursor(kind, first + limit) if len(chosen) > first + limit else None
    sums = ErrorSums(
        len(chosen),
        sum(one.errors for one in chosen),
        {shown: len(some) for shown, some in by_shown.items()},
    )
    return Page(items, more), sums


def get_error(
    connection: apsw.Connection, error_id: str, *, now_ns: int, newest: int = _SAMPLE
) -> ErrorGroup:
    """Return a group by its id or a unique beginning of 8 digits or more.

    Of one whose steps are all deleted, what was decided is left: its count is 0. Raises
    NotFoundError or AmbiguousIdError.
    """
    with snapshot(connection):
        fingerprint = find_error(connection, error_id)
        query = _Query.of(connection, Wanted(), now_ns=now_ns, fingerprint=fingerprint)
        sums = query.sums(connection) or [_Sum(fingerprint, 0, 0, 0, 0)]
        trends = query.trends(connection, sums, now_ns=now_ns)
        states = {fingerprint: read_state(connection, fingerprint)}
        notes = count_notes(connection)
        return _group(
            connection, sums[0], trends[fingerprint], states, notes, limit=max(newest, _SAMPLE)
        )


def find_error(connection: apsw.Connection, error_id: str) -> bytes:
    """Return the fingerprint that an id, or a beginning of it, stands for."""
    return bytes(find_row(connection, _PREFIX, "error", error_id)[0])


def error_of_step(connection: apsw.Connection, step_id: str) -> str | None:
    """Return the id of the group that a step is counted in; None for any other step."""
    trace, _, digits = step_id.rpartition("-")
    digits = digits.partition(".")[0]
    parameters = {"trace": bytes.fromhex(trace), "span": bytes.fromhex(digits)}
    found = connection.execute(_GROUP_OF_STEP, parameters).get
    return None if found is None else bytes(found).hex()


def task_of_error(connection: apsw.Connection, group: ErrorGroup) -> str | None:
    """Return the id of the open review that the detector opened for a group; None: there is none.

    Found by its newest evidence, as a review holds no recorded words.
    """
    parameters = {"kind": group.subject_kind, "subject": group.subject}
    rows: list[Any] = connection.execute(_TASKS, parameters).fetchall()
    for task_id, _, evidence in rows:
        for kind, one, _ in reversed(json.loads(evidence)):
            if kind == "step" and error_of_step(connection, one) == group.error_id:
                return bytes(task_id).hex()
    return None


def error_title(connection: apsw.Connection, fingerprint: bytes) -> str:
    """Return what fails, `tool get_order`; "error" where no step of the group is stored."""
    row: Any = connection.execute(_STEPS, {"fingerprint": fingerprint, "limit": 1}).fetchone()
    return "error" if row is None else " ".join(subject_of(*row[4:8]))


def first_errors(connection: apsw.Connection, runs: Sequence[int]) -> dict[int, str]:
    """Return, by run, the type and message of the first error that counts, on one line."""
    rows: Any = connection.execute(_FIRST_OF_RUN, {"runs": json.dumps(list(runs))})
    return {run: words for run, kind, message in rows if (words := error_words(kind, message))}


def error_words(error_type: str | None, message: str | None) -> str:
    """Return type and message as one line; the type once, where the message begins with it."""
    if not error_type or not message or message.startswith(error_type):
        return message or error_type or ""
    return f"{error_type}: {message}"


@dataclass(frozen=True, slots=True)
class _Query:
    """The errors that are wanted, as SQL."""

    joined: str
    tests: str
    bindings: dict[str, Any]

    @classmethod
    def of(
        cls,
        connection: apsw.Connection,
        wanted: Wanted,
        *,
        now_ns: int,
        fingerprint: bytes | None = None,
    ) -> _Query:
        """Return those of a time, of runs that meet a filter, or of one group."""
        filters = replace(wanted.runs, q="", attributes=(), since_ns=None, until_ns=None)
        of_runs = run_conditions(filters, now_ns=now_ns)
        tests, bindings = [*of_runs.tests], dict(of_runs.bindings)
        bindings |= {"since": wanted.since_ns, "until": wanted.until_ns}
        if wanted.runs.attributes:
            found = candidate_runs(connection, replace(wanted.runs, q=""))
            bindings["candidates"] = json.dumps(list(found or ()))
            tests.append("error_step.run IN (SELECT value FROM json_each(:candidates))")
        for number, word in enumerate(wanted.runs.q.split()[:20]):
            bindings[f"word_{number}"] = word.strip('"')
            tests.append(
                f"(instr(lower(message), lower(:word_{number}))"
                f" OR instr(lower(error_type), lower(:word_{number})))"
            )
        if fingerprint is not None:
            bindings["fingerprint"] = fingerprint
            tests.append("fingerprint = :fingerprint")
        return cls(_OF_RUNS if of_runs.tests else "", "".join(f" AND ({one})" for one in tests),
                   bindings)  # fmt: skip

    def sums(self, connection: apsw.Connection) -> list[_Sum]:
        """Return all groups of them."""
        sql = _SUMS.format(joined=self.joined, tests=self.tests)
        return [_Sum(*row) for row in connection.execute(sql, self.bindings)]

    def trends(
        self, connection: apsw.Connection, groups: Sequence[_Sum], *, now_ns: int
    ) -> dict[bytes, Trend]:
        """Return how often each of some groups happened, in the same pieces of time."""
        last_ns = max((one.last_ns for one in groups), default=0)
        until_ns = min(self.bindings["until"], max(now_ns, last_ns + 1))
        first_ns = min((one.first_ns for one in groups), default=0)
        since_ns = self.bindings["since"] or max(min(first_ns, until_ns - DAY_NS), 0)
        bar_ns = bar_of(since_ns, until_ns)
        origin = since_ns - since_ns % bar_ns
        bars = [[0] * max(-((origin - until_ns) // bar_ns), 1) for _ in groups]
        places = {one.fingerprint: bars[at] for at, one in enumerate(groups)}
        sql = _BARS.format(joined=self.joined, tests=self.tests)
        bindings = {
            **self.bindings, "origin": origin, "bar_ns": bar_ns,
            "groups": json.dumps([one.fingerprint.hex() for one in groups]),
        }  # fmt: skip
        for digits, at, count in connection.execute(sql, bindings):
            places[bytes.fromhex(digits)][at] += count
        return {one: Trend(origin, bar_ns, tuple(counts)) for one, counts in places.items()}


def bar_of(since_ns: int, until_ns: int) -> int:
    """Return the length of a piece of a trend: an hour, a day, or several days."""
    length_ns = max(until_ns - since_ns, 1)
    if length_ns <= _MOST_HOURS * HOUR_NS:
        return HOUR_NS
    return DAY_NS * max(-(-length_ns // (DAY_NS * _MOST_BARS)), 1)


def _is_shown(state: GroupState | None, shown: Shown) -> bool:
    found = state or UNTOUCHED
    if shown == "watched":
        return found.watched
    return shown == "all" or (found.state == "closed") == (shown == "closed")


def _ordered(groups: Sequence[_Sum], sort: Sort) -> list[_Sum]:
    by = {
        "count": lambda one: (one.errors, one.last_ns),
        "last_seen": lambda one: (one.last_ns, one.errors),
        "first_seen": lambda one: (one.first_ns, one.errors),
    }[sort.removeprefix("-")]
    ties = sorted(groups, key=lambda one: one.fingerprint)
    return sorted(ties, key=by, reverse=sort.startswith("-"))


def _group(
    connection: apsw.Connection,
    sums: _Sum,
    trend: Trend,
    states: Mapping[bytes, GroupState],
    notes: Mapping[bytes, int],
    *,
    limit: int,
) -> ErrorGroup:
    key = {"fingerprint": sums.fingerprint}
    rows: list[Any] = connection.execute(_STEPS, {**key, "limit": limit}).fetchall()
    seen: Any = connection.execute(_SEEN, key).fetchone()
    newest = tuple(_occurrence(row) for row in rows)
    kind, subject = subject_of(*rows[0][4:8]) if rows else ("step", "")
    state = states.get(sums.fingerprint, UNTOUCHED)
    return ErrorGroup(
        error_id=sums.fingerprint.hex(),
        subject_kind=kind,
        subject=subject,
        error_type=newest[0].error_type if newest else None,
        message=newest[0].message if newest else None,
        count=sums.errors,
        run_count=sums.run_count,
        first_ns=seen[0] or 0,
        last_ns=seen[1] or 0,
        trend=trend,
        agents=tuple(dict.fromkeys(one.agent_name for one in newest if one.agent_name)),
        models=tuple(dict.fromkeys(one.model for one in newest if one.model)),
        newest=newest,
        state=state.state,
        watched=state.watched,
        closed_ns=state.closed_ns,
        reopened_ns=state.reopened_ns,
        note_count=notes.get(sums.fingerprint, 0),
    )


def _occurrence(row: Any) -> ErrorOccurrence:
    trace_id, span_id, side, at_ns, _, _, model, name, error_type, message, agent, run_name, _ = row
    return ErrorOccurrence(
        step_id=step_id_of(trace_id, span_id, side),
        run_id=trace_id.hex(),
        at_ns=at_ns,
        error_type=error_type,
        message=message,
        agent_name=agent,
        run_name=run_name,
        model=model,
        step_name=name,
    )
