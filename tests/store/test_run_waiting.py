"""A run and the step that asked are blocked while an approval waits, wherever they are shown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from hansard_store.approvals.service import ApprovalService
from hansard_store.database.sql_console import read_sql
from hansard_store.runs.filters import RunFilter
from hansard_store.runs.queries import last_change, list_runs, run_facets
from hansard_store.steps.queries import get_step
from tests.store.accounts import HOUR, Clock, proposal
from tests.store.maker import NOW, SECOND, StoreMaker, span_id, trace_id
from tests.store.plans import QueryPlans


@pytest.fixture
def desk(store: StoreMaker) -> Iterator[ApprovalService]:
    clock = Clock()
    clock.now_ns = NOW
    with ApprovalService(store.folder, clock=clock) as made:
        yield made


def statuses(store: StoreMaker, *, now_ns: int = NOW) -> dict[str, str]:
    found = list_runs(store.db, RunFilter(), now_ns=now_ns).items
    return {one.name: one.status for one in found}


def of_status(store: StoreMaker, *status: str, now_ns: int = NOW) -> list[str]:
    found = list_runs(store.db, RunFilter(status=status), now_ns=now_ns).items
    return sorted(one.name for one in found)


@pytest.mark.covers("PO-19")
def test_a_run_is_blocked_while_its_approval_waits_and_not_after(
    store: StoreMaker, desk: ApprovalService
) -> None:
    for name in ("one", "two", "three"):
        store.span(name, run=name)
    run_id = trace_id("two").hex()
    before = last_change(store.db)
    made = desk.propose(proposal(run_id=run_id)).approval.approval_id
    waiting = last_change(store.db)

    blocked = of_status(store, "blocked")
    others = of_status(store, "ok"), of_status(store, "blocked", "ok")
    facets = run_facets(store.db, RunFilter(), now_ns=NOW).counts["status"]
    over = of_status(store, "blocked", now_ns=NOW + HOUR)
    desk.approve(made)

    assert len(blocked) == 1
    assert (len(others[0]), len(others[1])) == (2, 3)
    assert {one.value: one.runs for one in facets} == {"ok": 2, "blocked": 1}
    assert over == []
    assert of_status(store, "blocked") == []
    assert set(statuses(store).values()) == {"ok"}
    assert before < waiting < last_change(store.db)  # pages that follow are told


def test_blocked_runs_are_found_without_a_scan(
    store: StoreMaker, desk: ApprovalService, plans: QueryPlans
) -> None:
    store.span("one", run="one")
    desk.propose(proposal(run_id=trace_id("one").hex()))

    for status in ("blocked", "ok", "open", "no_end"):
        with plans.watch(store.db):
            of_status(store, status)

    assert plans.scans() == []


@pytest.mark.parametrize(
    ("ended", "failed", "after"),
    [(True, False, "unset"), (False, False, "open"), (True, True, "error")],
    ids=["returned", "still running", "failed"],
)
def test_the_step_that_asked_is_blocked_until_somebody_decides(
    ended: bool,
    failed: bool,
    after: str,
    store: StoreMaker,
    desk: ApprovalService,
    plans: QueryPlans,
) -> None:
    store.span("other", run="one")
    store.span("asks", run="one", duration_s=1 if ended else None, status=2 if failed else 0)
    step_id = f"{trace_id('one').hex()}-{span_id('asks').hex()}"

    def status(name: str = "asks", *, now_ns: int = NOW) -> str:
        with plans.watch(store.db):
            wanted = f"{trace_id('one').hex()}-{span_id(name).hex()}"
            return get_step(store.db, wanted, now_ns=now_ns).status

    made = desk.propose(proposal(run_id=trace_id("one").hex(), step_id=step_id)).approval
    waiting, other, later = status(), status("other"), status(now_ns=NOW + HOUR)
    desk.reject(made.approval_id)

    assert waiting == ("error" if failed else "blocked")
    assert other != "blocked"
    assert later != "blocked"
    assert status() == after
    assert plans.scans() == []


def test_by_sql_a_run_and_its_steps_are_in_the_state_that_the_api_names(
    store: StoreMaker,
) -> None:
    now_ns = time.time_ns()
    store.now_ns = now_ns
    start_s = (now_ns - NOW) / SECOND - 10
    ended: dict[str, Any] = {"start_s": start_s, "duration_s": 1}
    store.span("fine", run="fine", status=1, **ended)
    store.span("unset", run="unset", **ended)
    store.span("failed", run="failed", status=2, **ended)
    store.span("open", run="open", start_s=start_s, duration_s=None)
    store.span("blocked", run="blocked", **ended)
    store.span("waits", run="waits", start_s=start_s, duration_s=None)
    store.now_ns = now_ns - 20 * 60 * SECOND
    store.span("lost", run="lost", start_s=start_s - 1500, duration_s=None)
    with ApprovalService(store.folder) as desk:
        for name in ("blocked", "waits", "failed"):
            run_id, step = trace_id(name).hex(), span_id(name).hex()
            desk.propose(proposal(run_id=run_id, step_id=f"{run_id}-{step}"))

    by_sql = dict(read_sql(store.folder, "SELECT name, status FROM runs").rows)
    steps_by_sql = dict(read_sql(store.folder, "SELECT name, status FROM steps").rows)

    assert by_sql == statuses(store, now_ns=now_ns)
    assert set(by_sql.values()) == {"ok", "error", "open", "blocked", "no_end"}
    assert steps_by_sql == {
        name: get_step(
            store.db, f"{trace_id(name).hex()}-{span_id(name).hex()}", now_ns=now_ns
        ).status
        for name in by_sql
    }
    assert set(steps_by_sql.values()) == {"ok", "unset", "error", "open", "blocked", "no_end"}
