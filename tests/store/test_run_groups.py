"""Lists in which the traces of one prompt are one item: places, pages, sums."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hansard_store.database.connections import open_for_maintenance
from hansard_store.ingest.derived_rows import Usage
from hansard_store.maintenance.deletion import delete_run
from hansard_store.runs.filters import RUN_SORTS, RunFilter, RunSort
from hansard_store.runs.groups import MOST_MEMBERS, RunGroup, get_groups, list_grouped
from hansard_store.runs.queries import RunItem, list_runs
from tests.store.maker import NOW, StoreMaker, model_step, trace_id
from tests.store.plans import QueryPlans


def add(
    store: StoreMaker,
    run: str,
    prompt: str | None = None,
    *,
    start_s: float = 0,
    duration_s: float | None = 1,
    status: int = 0,
    usage: Usage = Usage(10, 2, None, None, None, 100),  # noqa: B008 - frozen
    service: str = "svc",
    words: str | None = None,
    response_id: str | None = None,
    scope: str = "",
) -> None:
    """Store a run with one model call, of a prompt of one session."""
    made = model_step(
        usage,
        response_id=response_id,
        conversation_id="s",
        prompt_id=prompt,
        first_input=words and f"{words}?",
        last_output=words and f"{words}!",
    )
    store.span(
        run, run=run, start_s=start_s, duration_s=duration_s, status=status, service=service,
        scope_name=scope, projection=made,
    )  # fmt: skip


def names(item: RunItem | RunGroup) -> tuple[str, ...]:
    return tuple(run.name for run in (item.members if isinstance(item, RunGroup) else (item,)))


def listed(
    store: StoreMaker,
    wanted: RunFilter = RunFilter(),  # noqa: B008 - frozen
    *,
    sort: str = "first_seen",
    descending: bool = True,
    limit: int = 50,
) -> list[tuple[str, ...]]:
    """Return the names of all items of all pages."""
    found, cursor = [], None
    while True:
        page = list_grouped(
            store.db, wanted, now_ns=NOW, sort=RunSort(sort, descending), limit=limit, cursor=cursor
        )
        assert page.items or cursor is None
        found += [names(item) for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


def test_runs_of_one_prompt_are_one_item_where_its_newest_stands(store: StoreMaker) -> None:
    for number, prompt in enumerate((None, "p", "q", "p", None, "p", "alone"), start=1):
        add(store, f"r{number}", prompt, start_s=number)

    assert listed(store) == [("r7",), ("r2", "r4", "r6"), ("r5",), ("r3",), ("r1",)]
    assert listed(store, descending=False)[1] == ("r2", "r4", "r6")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    prompts=st.lists(st.sampled_from((None, "a", "b", "c", "d")), max_size=14),
    limit=st.integers(1, 5),
    sort=st.sampled_from(RUN_SORTS),
    descending=st.booleans(),
    only=st.sampled_from((None, "x", "y")),
    data=st.data(),
)
def test_all_pages_joined_are_each_run_or_group_once(
    tmp_path_factory: pytest.TempPathFactory,
    prompts: list[str | None],
    limit: int,
    sort: str,
    descending: bool,
    only: str | None,
    data: st.DataObject,
) -> None:
    store = StoreMaker(tmp_path_factory.mktemp("groups"))
    try:
        for number, prompt in enumerate(prompts):
            figure = data.draw(st.integers(0, 3))
            add(
                store, f"r{number}", prompt, start_s=figure, duration_s=1 + figure,
                usage=Usage(1, 1, None, None, None, figure),
                service=data.draw(st.sampled_from("xy")),
            )  # fmt: skip
        wanted = RunFilter(service=(only,)) if only else RunFilter()

        found = listed(store, wanted, sort=sort, descending=descending, limit=limit)

        order = RunSort(sort, descending)
        meeting = list_runs(store.db, wanted, now_ns=NOW, sort=order, limit=500).items
        first = {run.group_id or run.name: run.name for run in reversed(meeting)}
        expected = [run.name for run in meeting if first[run.group_id or run.name] == run.name]
        lead = {name: at for at, run in enumerate(meeting) for name in (run.name,)}
        assert [min((lead[name], name) for name in item if name in lead)[1] for item in found] == (
            expected
        )
        assert len({name for item in found for name in item}) == sum(map(len, found))
    finally:
        store.close()


def test_a_group_is_found_by_any_of_its_runs_and_summed_over_all(store: StoreMaker) -> None:
    add(store, "r1", "p", words="hello")
    add(store, "r2", "p", start_s=5, status=2, service="other")
    add(store, "r3", "p", start_s=9, words="done")

    [group] = list_grouped(store.db, RunFilter(service=("other",)), now_ns=NOW).items

    assert isinstance(group, RunGroup)
    assert names(group) == ("r1", "r2", "r3")
    whole = group.whole
    assert (whole.name, whole.first_input, whole.last_output) == ("r1", "hello?", "done!")
    assert (whole.status, whole.error_count) == ("ok", 1)
    assert (whole.model_calls, whole.cost_usd_nano) == (3, 300)
    assert whole.tokens is not None
    assert (whole.tokens.input, whole.tokens.output, whole.tokens.cache_read) == (30, 6, None)
    assert whole.duration_ns == 10_000_000_000
    assert whole.service_names == ("svc", "other")


def test_a_group_is_open_while_one_of_its_runs_is_and_ends_as_the_last(store: StoreMaker) -> None:
    add(store, "r1", "p")
    add(store, "r2", "p", start_s=3590, duration_s=None)
    [group] = list_grouped(store.db, RunFilter(), now_ns=NOW).items
    assert isinstance(group, RunGroup)
    assert (group.whole.status, group.whole.ended_ns) == ("open", None)

    add(store, "r2", "p", start_s=3590, duration_s=3, status=2)

    [group] = list_grouped(store.db, RunFilter(), now_ns=NOW).items
    assert isinstance(group, RunGroup)
    assert group.whole.status == "error"


def test_what_no_run_tells_is_unknown_of_the_group(store: StoreMaker) -> None:
    for run in ("r1", "r2"):
        add(store, run, "p", usage=Usage())

    [group] = list_grouped(store.db, RunFilter(), now_ns=NOW).items

    assert isinstance(group, RunGroup)
    assert (group.whole.tokens, group.whole.cost_usd_nano) == (None, None)


def test_a_deleted_run_is_no_more_in_its_group(store: StoreMaker) -> None:
    for run in ("r1", "r2", "r3"):
        add(store, run, "p")
    maintenance = open_for_maintenance(store.folder)

    delete_run(maintenance, trace_id("r2"), reason="by hand")
    assert listed(store) == [("r1", "r3")]

    delete_run(maintenance, trace_id("r1"), reason="by hand")
    assert listed(store) == [("r3",)]
    maintenance.close()


@pytest.mark.parametrize(
    ("one", "other", "calls"),
    [
        ({"response_id": "a"}, {"response_id": "a"}, 1),
        ({"response_id": "a"}, {"response_id": "b"}, 2),
        ({"response_id": "a"}, {"response_id": "a", "start_s": 60}, 2),  # ids begin anew
        ({"scope": "x"}, {"scope": "y"}, 1),
        ({"scope": "x"}, {"scope": "x"}, 2),
        ({"scope": "x"}, {"scope": "y", "start_s": 60}, 2),
        ({"scope": "x"}, {"scope": "y", "usage": Usage(10, 3)}, 2),
        ({"scope": "x", "usage": Usage()}, {"scope": "y", "usage": Usage()}, 2),
    ],
    ids=str,
)
def test_a_call_that_two_traces_of_a_prompt_tell_counts_once(
    store: StoreMaker, one: dict[str, object], other: dict[str, object], calls: int
) -> None:
    add(store, "r1", "p", **one)  # type: ignore[arg-type]
    add(store, "r2", "p", **other)  # type: ignore[arg-type]

    [group] = list_grouped(store.db, RunFilter(), now_ns=NOW).items

    assert isinstance(group, RunGroup)
    assert group.whole.model_calls == calls
    if calls == 1:
        assert group.whole.tokens is not None
        assert group.whole.tokens.input == 10


def test_of_a_very_large_group_some_runs_are_read(store: StoreMaker) -> None:
    with store.batch():
        for number in range(MOST_MEMBERS + 2):
            add(store, f"r{number}", "p")

    [group] = list_grouped(store.db, RunFilter(), now_ns=NOW, limit=2).items

    assert isinstance(group, RunGroup)
    assert len(group.members) == MOST_MEMBERS
    assert not group.is_complete


@pytest.mark.parametrize("key", RUN_SORTS)
def test_no_list_of_groups_scans_a_table(store: StoreMaker, plans: QueryPlans, key: str) -> None:
    for number in range(6):
        add(store, f"r{number}", "pq"[number % 2])

    with plans.watch(store.db):
        page = list_grouped(store.db, RunFilter(kind="agent"), now_ns=NOW, limit=1)
        list_grouped(
            store.db, RunFilter(kind="agent"), now_ns=NOW, limit=1, cursor=page.next_cursor
        )
        list_grouped(store.db, RunFilter(), now_ns=NOW, sort=RunSort(key))
        group = bytes.fromhex(list_runs(store.db, RunFilter(), now_ns=NOW).items[0].group_id or "")
        list_runs(store.db, RunFilter(group=group), now_ns=NOW)
        get_groups(store.db, [group], now_ns=NOW)

    assert plans.scans() == []
