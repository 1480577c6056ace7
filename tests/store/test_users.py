"""Users: runs that name one id, summed, sorted, paged, and gone with their runs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansard_compiler.errors import NotFoundError
from hansard_store.errors import InvalidCursorError, InvalidQueryError
from hansard_store.ingest.derived_rows import Usage
from hansard_store.maintenance.deletion import delete_run
from hansard_store.runs.conversations import (
    CONVERSATION_SORTS,
    ConversationFilter,
    list_conversations,
)
from hansard_store.runs.status import TokenSums
from hansard_store.runs.users import (
    USER_SORTS,
    UserFilter,
    get_user,
    list_users,
    user_conversations,
    user_days,
    user_traces,
)
from hansard_store.steps.flags import SpanFlag
from tests.store.maker import SECOND, StoreMaker, model_step, trace_id
from tests.store.plans import QueryPlans

DAY_S = 86_400


def work(
    store: StoreMaker,
    run: str,
    user: str | None,
    *,
    at_s: float = 0,
    cost: int = 5,
    conversation: str | None = None,
    agent: str = "planner",
    failed: bool = False,
) -> None:
    made = model_step(
        Usage(10, 1, cost_usd_nano=cost),
        user_id=user,
        conversation_id=conversation,
        agent_name=agent,
    )
    flags = int(SpanFlag.ERROR) if failed else 0
    store.span(run, run=run, start_s=at_s, flags=flags, projection=made)


def names(store: StoreMaker, **query: str) -> list[str]:
    return [one.user_id for one in list_users(store.db, **query).items]  # type: ignore[arg-type]


def test_a_user_is_summed_over_the_runs_that_name_the_id(store: StoreMaker) -> None:
    work(store, "a", "ann", conversation="c", agent="writer")
    work(store, "b", "ann", at_s=DAY_S, conversation="d", failed=True)
    work(store, "c", "bob")
    work(store, "d", None)

    ann = get_user(store.db, "ann")

    assert (ann.runs, ann.failed_runs, ann.error_rate) == (2, 1, 0.5)
    assert (ann.tokens, ann.cost_usd_nano, ann.model_calls) == (TokenSums(20, 2), 10, 2)
    assert (ann.agents, ann.conversations) == (("planner", "writer"), 2)
    assert ann.last_seen_ns > ann.first_seen_ns + DAY_S * SECOND - 1
    assert user_conversations(store.db, "ann") == ["d", "c"]
    assert [(day.runs, day.failed_runs) for day in user_days(store.db, "ann")] == [(1, 1), (1, 0)]
    with pytest.raises(NotFoundError):
        get_user(store.db, "carl")


def test_a_period_counts_only_the_runs_that_started_in_it(store: StoreMaker) -> None:
    work(store, "a", "ann")
    work(store, "b", "ann", at_s=100)
    work(store, "c", "bob")
    first = get_user(store.db, "ann").first_seen_ns
    since = UserFilter(since_ns=first + 50 * SECOND)

    assert [(one.user_id, one.runs) for one in list_users(store.db, since).items] == [("ann", 1)]
    with pytest.raises(NotFoundError):
        get_user(store.db, "bob", since)


def test_names_are_found_by_how_they_begin(store: StoreMaker) -> None:
    for number, user in enumerate(["ann", "anna@x.org", "Ann", "an%", "bob", "\U0010ffffz"]):
        work(store, f"r{number}", user)

    def found(prefix: str) -> set[str]:
        return {one.user_id for one in list_users(store.db, UserFilter(prefix=prefix)).items}

    assert found("ann") == {"ann", "anna@x.org"}
    assert found("an%") == {"an%"}
    assert found("\U0010ffff") == {"\U0010ffffz"}
    assert len(found("")) == 6


def test_an_unknown_sort_and_a_cursor_of_another_sort_are_refused(store: StoreMaker) -> None:
    work(store, "a", "ann")
    work(store, "b", "bob")
    cursor = list_users(store.db, sort="user", limit=1).next_cursor

    with pytest.raises(InvalidQueryError):
        list_users(store.db, sort="age")
    with pytest.raises(InvalidCursorError):
        list_users(store.db, sort="-user", cursor=cursor)
    with pytest.raises(InvalidQueryError):
        list_conversations(store.db, sort="age")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3), st.booleans()), max_size=20),
    st.integers(1, 4),
)
def test_pages_of_every_sort_hold_each_user_and_conversation_once_in_order(
    tmp_path_factory: pytest.TempPathFactory,
    made: Sequence[tuple[str, int, bool]],
    limit: int,
) -> None:
    store = StoreMaker(tmp_path_factory.mktemp("users"))
    with store.batch():
        for number, (user, cost, failed) in enumerate(made):
            work(store, f"r{number}", user, cost=cost, failed=failed, conversation=f"c{user}")
    known = {user for user, _, _ in made}

    for sort in [text for key in USER_SORTS for text in (key, f"-{key}")]:
        whole = [one.user_id for one in list_users(store.db, sort=sort, limit=99).items]
        pages: list[str] = []
        cursor: str | None = None
        while True:
            page = list_users(store.db, sort=sort, limit=limit, cursor=cursor)
            pages += [one.user_id for one in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert pages == whole
        assert sorted(pages) == sorted(known)
    for sort in [text for key in CONVERSATION_SORTS for text in (key, f"-{key}")]:
        whole = [one.conversation_id for one in list_conversations(store.db, sort=sort).items]
        pages, cursor = [], None
        while True:
            found = list_conversations(store.db, sort=sort, limit=limit, cursor=cursor)
            pages += [one.conversation_id for one in found.items]
            cursor = found.next_cursor
            if cursor is None:
                break
        assert pages == whole
        assert sorted(pages) == sorted(f"c{user}" for user in known)
    store.close()


def test_columns_sort_as_their_figures_say(store: StoreMaker) -> None:
    work(store, "a", "many", cost=1)
    work(store, "b", "many", cost=1, at_s=1)
    work(store, "c", "dear", cost=9, at_s=2)
    work(store, "d", "failing", cost=2, at_s=3, failed=True)

    assert names(store, sort="-runs")[0] == "many"
    assert names(store, sort="-cost_usd")[0] == "dear"
    assert names(store, sort="-error_rate")[0] == "failing"
    assert names(store, sort="user") == ["dear", "failing", "many"]
    assert names(store) == ["failing", "dear", "many"]


def test_conversations_are_narrowed_to_a_user_an_agent_and_a_period(store: StoreMaker) -> None:
    work(store, "a", "ann", conversation="one", agent="writer")
    work(store, "b", "bob", conversation="one", at_s=10)
    work(store, "c", "bob", conversation="two", at_s=1000)

    def found(**filters: object) -> list[tuple[str, int]]:
        page = list_conversations(store.db, ConversationFilter(**filters))  # type: ignore[arg-type]
        return [(one.conversation_id, one.runs) for one in page.items]

    started = get_user(store.db, "ann").first_seen_ns
    assert found(user="ann") == [("one", 2)]
    assert found(user="bob") == [("two", 1), ("one", 2)]
    assert found(agent="writer") == [("one", 2)]
    assert found(since_ns=started + 500 * SECOND) == [("two", 1)]
    assert found(until_ns=started + 500 * SECOND) == [("one", 2)]
    assert found(user="nobody") == []


def test_a_deleted_run_is_gone_from_the_figures_of_its_user(store: StoreMaker) -> None:
    work(store, "a", "ann")
    work(store, "b", "ann", at_s=1)
    assert user_traces(store.db, "ann") == [trace_id("a"), trace_id("b")]

    delete_run(store.ingest, trace_id("a"), reason="by hand")
    assert get_user(store.db, "ann").runs == 1

    delete_run(store.ingest, trace_id("b"), reason="by hand")
    assert list_users(store.db).items == []


def test_lists_of_users_read_an_index_and_no_run(store: StoreMaker, plans: QueryPlans) -> None:
    for number in range(4):
        work(store, f"r{number}", f"u{number % 3}", conversation=f"c{number % 3}")

    with plans.watch(store.db):
        for key in USER_SORTS:
            list_users(store.db, sort=f"-{key}")
        get_user(store.db, "u1")
        user_days(store.db, "u1")
        for key in CONVERSATION_SORTS[1:]:
            list_conversations(store.db, sort=f"-{key}")

    in_queries = ("people", "scored")  # tables made inside the query
    assert [line for line, _ in plans.scans() if line.split()[1] not in in_queries] == []
    grouped = [line for line, sql in plans.lines if "GROUP BY run." in sql and "run USING" in line]
    assert grouped
