"""Groups of errors: which failed steps count, what a group is, and what people decide about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_compiler.models.error_groups import ChangeError
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.audit.event_types import EventFilter
from hansard_store.audit.events import read_events
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.transactions import transaction
from hansard_store.detection.failed_steps import errors_by_kind
from hansard_store.detection.scan import scan
from hansard_store.error_groups.changes import read_history
from hansard_store.error_groups.errors import (
    ErrorGroupChanged,
    ErrorNoteNotRetained,
    InvalidErrorChange,
)
from hansard_store.error_groups.queries import (
    DAY_NS,
    HOUR_NS,
    ErrorGroup,
    Wanted,
    error_of_step,
    error_words,
    first_errors,
    get_error,
    list_errors,
    task_of_error,
)
from hansard_store.error_groups.service import ErrorGroupService
from hansard_store.error_groups.steps import fingerprint_of
from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.maintenance.deletion import delete_run
from hansard_store.notifications import outbox
from hansard_store.runs.filters import RunFilter
from hansard_store.runs.queries import list_runs
from hansard_store.steps.flags import SpanFlag
from hansard_store.tasks.service import TaskService
from tests.store.maker import NOW, SECOND, StoreMaker, trace_id
from tests.store.plans import QueryPlans

HOUR_S = 3_600


class ErrorMaker:
    """Steps that fail, and the service; the clock stands at `now_ns`."""

    def __init__(self, path: Path) -> None:
        self.store = StoreMaker(path)
        self.now_ns = NOW
        self.service = ErrorGroupService(self.store.folder, clock=lambda: self.now_ns)

    def close(self) -> None:
        self.service.close()
        self.store.close()

    def fail(
        self,
        name: str,
        message: str | None = "connection refused",
        *,
        parent: str | None = None,
        run: str = "run",
        role: str = "tool",
        tool: str | None = "get_order",
        model: str | None = None,
        agent: str | None = None,
        start_s: float = 0,
        duration_s: float = 1,
        error_type: str | None = None,
        flags: int = 0,
        status: int = 2,
    ) -> None:
        self.store.span(
            name,
            parent,
            run=run,
            start_s=start_s,
            duration_s=duration_s,
            status=status,
            flags=flags,
            texts=[("error", message)] if message else [],
            facets=[("agent", agent)] if agent else [],
            projection=SpanProjection(
                role=role,
                dialect="otel",
                tool_name=tool if role == "tool" else None,
                model=model,
                agent_name=agent,
                error_type=error_type,
                summary=message[:119] if message else None,
            ),
        )

    def groups(self, **wanted: Any) -> list[ErrorGroup]:
        page, _ = list_errors(self.store.db, Wanted(**wanted), now_ns=self.now_ns, limit=100)
        return list(page.items)

    def counts(self, **wanted: Any) -> dict[str, int]:
        """Return how often each subject fails."""
        return {one.subject: one.count for one in self.groups(**wanted)}

    def one(self) -> ErrorGroup:
        (group,) = self.groups(shown="all")
        return group

    def change(self, decision: str, note: str | None = None, *, by: str = "rosa") -> ErrorGroup:
        request = ChangeError(decision=decision, note=note, by=by)  # type: ignore[arg-type]
        return self.service.change(self.one().error_id, request)


@pytest.fixture
def errors(tmp_path: Path) -> Iterator[ErrorMaker]:
    maker = ErrorMaker(tmp_path / "data")
    yield maker
    maker.close()


# ---- an error counts once


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_an_error_that_goes_up_counts_for_its_tool_in_any_order_of_arrival(
    errors: ErrorMaker, order: tuple[int, int, int]
) -> None:
    spans: list[dict[str, Any]] = [
        {"name": "root", "role": "workflow"},
        {"name": "agent", "role": "agent", "parent": "root"},
        {"name": "tool", "parent": "agent"},
    ]
    for at in order:
        errors.fail(**spans[at])

    assert errors.counts() == {"get_order": 1}


def test_a_tool_is_named_and_not_the_request_inside_of_it(errors: ErrorMaker) -> None:
    errors.fail("agent", role="agent")
    errors.fail("tool", parent="agent")
    errors.fail("wrapper", role="other", parent="tool")
    errors.fail("GET", role="other", parent="wrapper")

    assert errors.counts() == {"get_order": 1}


def test_a_tool_that_is_an_agent_passes_the_error_of_its_own_tool_on(errors: ErrorMaker) -> None:
    errors.fail("outer", tool="ask_researcher")
    errors.fail("agent", role="agent", parent="outer")
    errors.fail("inner", parent="agent")

    assert errors.counts() == {"get_order": 1}


def test_each_attempt_of_a_retry_is_an_error_and_the_retry_itself_is_none(
    errors: ErrorMaker,
) -> None:
    errors.fail("retry", "gave up after 3 attempts: connection refused", role="other", duration_s=9)
    for number in range(3):
        errors.fail(f"attempt {number}", parent="retry", start_s=number)

    (group,) = errors.groups()
    assert (group.subject, group.count, group.run_count) == ("get_order", 3, 1)


def test_steps_that_fail_beside_one_another_are_errors_each(errors: ErrorMaker) -> None:
    errors.fail("agent", "one or more tools failed", role="agent", duration_s=5)
    errors.fail("left", "no such order", parent="agent", tool="get_order", duration_s=4.99)
    errors.fail("right", "timed out", parent="agent", tool="get_stock", duration_s=2)

    assert errors.counts() == {"get_order": 1, "get_stock": 1}


def test_what_an_agent_reports_later_in_words_of_its_own_is_another_error(
    errors: ErrorMaker,
) -> None:
    errors.fail("agent", "too many turns", role="agent", duration_s=60)
    errors.fail("tool", parent="agent")

    assert errors.counts() == {"get_order": 1, "agent": 1}


def test_a_step_without_a_message_passes_that_of_its_child_on(errors: ErrorMaker) -> None:
    errors.fail("agent", None, role="agent", duration_s=60)
    errors.fail("tool", parent="agent")

    assert errors.counts() == {"get_order": 1}


def test_duplicates_do_not_count(errors: ErrorMaker) -> None:
    errors.fail("tool")
    errors.fail("twin", flags=SpanFlag.DUPLICATE)

    assert errors.counts() == {"get_order": 1}


def test_a_report_that_says_it_went_well_takes_the_error_back(errors: ErrorMaker) -> None:
    errors.fail("agent", role="agent", duration_s=60)
    errors.fail("tool", parent="agent", duration_s=1)
    before = errors.counts()

    errors.fail("tool", None, parent="agent", duration_s=2, status=1)

    assert (before, errors.counts()) == ({"get_order": 1}, {"agent": 1})


def test_a_chain_of_steps_longer_than_is_followed_costs_no_more_than_that(
    errors: ErrorMaker,
) -> None:
    with errors.store.batch():
        for depth in range(300):
            parent = f"level {depth - 1}" if depth else None
            errors.fail(f"level {depth}", role="other", parent=parent)

    assert errors.counts() == {"level 299": 1}


# ---- groups


def test_a_fingerprint_stays_what_it_is() -> None:
    """Groups that people closed are found by it: a change needs another FINGERPRINT_VERSION."""
    found = fingerprint_of(b"k" * 32, "tool", "get_order", "no order 'a-17' after 30 s")

    assert found == fingerprint_of(b"k" * 32, "tool", "get_order", "no order 'b-9' after 4 s")
    assert found.hex() == FINGERPRINT
    assert found != fingerprint_of(b"x" * 32, "tool", "get_order", "no order 'a-17' after 30 s")


FINGERPRINT = "10554c7186a2ac3da96aabb03a9f66bd"


def test_groups_have_counts_times_agents_models_and_their_newest_error(errors: ErrorMaker) -> None:
    for number in range(3):
        errors.fail(
            "tool", f"no order {number}", run=f"run {number}", agent=f"agent {number % 2}",
            error_type="LookupError", start_s=number * 60,
        )  # fmt: skip
    errors.fail("call", "overloaded", role="llm", model="gpt-4o", run="other", start_s=-60)

    first, second = errors.groups()

    start_ns = NOW - HOUR_NS
    assert (first.subject_kind, first.subject, first.count, first.run_count) == (
        "tool", "get_order", 3, 3,
    )  # fmt: skip
    assert (first.first_ns, first.last_ns) == (start_ns, start_ns + 120 * SECOND)
    assert (first.error_type, first.message) == ("LookupError", "no order 2")
    assert sorted(first.agents) == ["agent 0", "agent 1"]
    assert first.newest[0].run_id == trace_id("run 2").hex()
    assert (second.subject_kind, second.subject, second.models) == ("model", "gpt-4o", ("gpt-4o",))
    assert sum(first.trend.counts) == 3
    assert first.trend.bar_ns == HOUR_NS


def test_a_trend_of_weeks_is_by_day_and_of_years_by_several(errors: ErrorMaker) -> None:
    errors.fail("old", run="old", start_s=-86_400 * 20)
    errors.fail("new", run="new")
    by_day = errors.one().trend
    errors.fail("oldest", run="oldest", start_s=-86_400 * 3_000)

    by_more = errors.one().trend

    assert (by_day.bar_ns, by_day.counts[0], sum(by_day.counts)) == (DAY_NS, 1, 2)
    assert by_more.bar_ns == 51 * DAY_NS
    assert len(by_more.counts) <= 61
    assert sum(by_more.counts) == 3


def test_errors_are_narrowed_by_time_by_their_runs_and_by_words(errors: ErrorMaker) -> None:
    errors.fail("a", "no such order", run="a", agent="mender")
    errors.fail("b", "Timed out", run="b", tool="get_stock", agent="other", start_s=600)

    middle = NOW - HOUR_NS + 300 * SECOND
    assert errors.counts(since_ns=middle) == {"get_stock": 1}
    assert errors.counts(until_ns=middle) == {"get_order": 1}
    assert errors.counts(runs=RunFilter(agent=("mender",))) == {"get_order": 1}
    assert errors.counts(runs=RunFilter(q="timed OUT")) == {"get_stock": 1}
    assert errors.counts(runs=RunFilter(attributes=(("service.name", "svc"),))) == {
        "get_order": 1, "get_stock": 1,
    }  # fmt: skip
    assert errors.counts(runs=RunFilter(user="nobody")) == {}


def test_groups_come_in_the_order_that_is_wanted_and_page_by_page(errors: ErrorMaker) -> None:
    for tool, times in (("a", 1), ("b", 3), ("c", 2)):
        for number in range(times):
            errors.fail(
                f"{tool}{number}", f"{tool}", tool=tool, run=tool, start_s=10 * ord(tool) + number
            )

    def order(sort: str) -> list[str]:
        return [one.subject for one in errors.groups(sort=sort)]

    page, sums = list_errors(errors.store.db, Wanted(), now_ns=NOW, limit=2)
    rest, _ = list_errors(errors.store.db, Wanted(), now_ns=NOW, limit=2, cursor=page.next_cursor)
    assert order("-count") == ["b", "c", "a"]
    assert order("-last_seen") == ["c", "b", "a"]
    assert order("first_seen") == ["a", "b", "c"]
    assert [one.subject for one in (*page.items, *rest.items)] == ["b", "c", "a"]
    assert (sums.groups, sums.errors, rest.next_cursor) == (3, 6, None)


def test_runs_are_listed_by_the_group_and_say_their_first_error(errors: ErrorMaker) -> None:
    errors.fail("one", "no such order", run="a", error_type="LookupError", start_s=5)
    errors.fail("two", "timed out", run="a", tool="get_stock", start_s=9)
    errors.fail("three", "timed out", run="b", tool="get_stock")
    group = next(one for one in errors.groups() if one.subject == "get_order")

    page = list_runs(errors.store.db, RunFilter(error=group.key), now_ns=NOW)

    (run,) = page.items
    assert run.run_id == trace_id("a").hex()
    assert first_errors(errors.store.db, [run.id]) == {run.id: "LookupError: no such order"}


def test_words_of_an_error_name_its_type_once() -> None:
    assert error_words("ToolError", "ToolError: refused") == "ToolError: refused"
    assert error_words("ToolError", "refused") == "ToolError: refused"
    assert error_words("ToolError", None) == "ToolError"
    assert error_words(None, None) == ""


@pytest.mark.parametrize(
    "message", ["<script>alert(1)</script>", "\u202eabc\n\n\tdef", "x" * 1_000_000, "\ud800 \x00"]
)
def test_any_message_is_stored_on_one_short_line(errors: ErrorMaker, message: str) -> None:
    errors.fail("tool", message.encode("utf-8", "replace").decode())

    shown = errors.one().message
    assert shown is not None
    assert len(shown) <= 300
    assert "\n" not in shown


# ---- what people decide


def test_a_closed_group_opens_again_when_it_returns_and_only_then(errors: ErrorMaker) -> None:
    errors.fail("before", run="a")
    errors.change("watch")
    closed = errors.change("close", "fixed in 1.2")
    errors.fail("late", run="late", start_s=-60)  # of before it was closed
    still = errors.one()

    errors.now_ns = errors.store.now_ns = NOW + 7_200 * SECOND
    errors.fail("after", run="b", start_s=HOUR_S + 60)
    errors.fail("again", run="c", start_s=HOUR_S + 61)

    again = errors.one()
    history = read_history(errors.store.db, again.key)
    about = EventFilter(subject=f"error:{again.error_id}")
    events = read_events(errors.store.db, about, limit=10)
    assert (closed.state, closed.closed_ns, still.state) == ("closed", NOW, "closed")
    assert (again.state, again.watched, again.reopened_ns) == ("reopened", True, errors.now_ns)
    assert [(one.kind, one.by, one.note) for one in history] == [
        ("reopened", "hansard", None),
        ("close", "rosa", "fixed in 1.2"),
        ("watch", "rosa", None),
    ]
    assert [(one.type, one.action, one.actor) for one in events] == [
        ("error_group.changed", "error.reopened", "system"),
        ("error_group.changed", "error.close", "me"),
        ("error_group.changed", "error.watch", "me"),
    ]


def test_lists_show_what_is_open_closed_or_watched(errors: ErrorMaker) -> None:
    errors.fail("tool")

    errors.change("close")

    assert (errors.counts(), errors.counts(shown="closed")) == ({}, {"get_order": 1})
    errors.change("open")
    errors.change("watch")
    assert errors.counts() == errors.counts(shown="watched") == {"get_order": 1}
    errors.change("unwatch")
    assert errors.counts(shown="watched") == {}


def test_a_repeated_change_is_written_once_and_each_note_for_itself(errors: ErrorMaker) -> None:
    errors.fail("tool")
    for _ in range(2):
        errors.change("close")
        errors.change("note", "seen")

    kinds = [one.kind for one in read_history(errors.store.db, errors.one().key)]
    assert kinds == ["note", "note", "close"]
    assert errors.one().note_count == 2
    with pytest.raises(ErrorGroupChanged):
        errors.change("close", "too late")


def test_a_note_needs_words_and_a_store_that_holds_them(errors: ErrorMaker) -> None:
    errors.fail("tool")
    mode = RetentionMode.METADATA_ONLY
    service = ErrorGroupService(errors.store.folder, mode)

    with pytest.raises(InvalidErrorChange):
        errors.change("note", "  ")
    with pytest.raises(ErrorNoteNotRetained):
        service.change(errors.one().error_id, ChangeError(decision="note", note="seen", by="rosa"))
    service.close()


def test_secrets_in_a_note_are_not_stored(errors: ErrorMaker) -> None:
    errors.fail("tool")

    errors.change("note", "key sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7" * 2)

    (note,) = read_history(errors.store.db, errors.one().key)
    assert note.note is not None
    assert "aB3dE5gH" not in note.note


def test_a_group_is_found_by_the_beginning_of_its_id(errors: ErrorMaker) -> None:
    errors.fail("tool")
    whole = errors.one().error_id

    assert get_error(errors.store.db, whole[:8], now_ns=NOW).error_id == whole
    for wrong in ("0" * 32, "no id", whole[:7]):
        with pytest.raises((NotFoundError, AmbiguousIdError)):
            get_error(errors.store.db, wrong, now_ns=NOW)


def test_of_a_deleted_run_what_was_decided_is_left_and_none_of_its_words(
    errors: ErrorMaker,
) -> None:
    errors.fail("tool", "no order for Rosa Ruiz")
    errors.change("close", "fixed")
    error_id = errors.one().error_id

    with closing(open_for_maintenance(errors.store.folder)) as connection:
        delete_run(connection, trace_id("run"), reason="by hand")

    left = get_error(errors.store.db, error_id, now_ns=NOW)
    assert (left.count, left.message, left.state, left.newest) == (0, None, "closed", ())
    assert errors.groups(shown="all") == []
    assert errors.store.db.execute("SELECT count(*) FROM error_step").get == 0


# ---- notifications


def test_a_group_that_returns_is_notified_of_once_until_it_is_closed_again(
    errors: ErrorMaker,
) -> None:
    def follow() -> None:
        with transaction(errors.store.ingest):
            outbox.follow(errors.store.ingest, [], now_ns=errors.now_ns)

    def returned() -> list[dict[str, Any]]:
        sql = "SELECT data FROM notification WHERE type = 'error_group.returned' ORDER BY id"
        return [json.loads(data) for (data,) in errors.store.db.execute(sql)]

    errors.fail("before")
    follow()
    for round in (1, 2):
        errors.change("close")
        errors.now_ns += 100 * SECOND
        errors.store.now_ns = errors.now_ns
        for name in ("first", "second"):
            run = f"{name} {round}"
            errors.fail(name, run=run, start_s=HOUR_S + 100 * round - 50)
            follow()

    found = returned()
    assert [one["title"] for one in found] == ["tool get_order"] * 2
    assert {one["error_group_id"] for one in found} == {errors.one().error_id}
    assert errors.one().state == "reopened"


# ---- how it is read and made again


def test_what_is_read_of_one_group_scans_no_table(errors: ErrorMaker, plans: QueryPlans) -> None:
    errors.fail("tool", agent="mender")
    group = errors.one()

    with plans.watch(errors.store.db):
        get_error(errors.store.db, group.error_id, now_ns=NOW)
        first_errors(errors.store.db, [1])
        task_of_error(errors.store.db, group)
        list_runs(errors.store.db, RunFilter(error=group.key), now_ns=NOW)
        errors_by_kind(errors.store.db, since_ns=0, now_ns=NOW)

    assert [one for one in plans.scans() if "FROM error_change" not in one[1]] == []


def test_a_review_and_its_group_are_found_from_one_another(errors: ErrorMaker) -> None:
    for number in range(5):
        errors.fail(f"tool {number}", start_s=60 * number)
    tasks = TaskService(errors.store.folder, clock=lambda: errors.now_ns)

    (recorded,) = tasks.record(scan(errors.store.db, now_ns=errors.now_ns).findings)
    tasks.close()

    group = errors.one()
    assert recorded.task is not None
    assert task_of_error(errors.store.db, group) == recorded.task.task_id
    newest = recorded.task.evidence[-1].id
    assert error_of_step(errors.store.db, newest) == group.error_id
