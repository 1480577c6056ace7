"""Usage: what every call used is summed once, however it is grouped."""

from __future__ import annotations

import pytest

from hansard_store.errors import InvalidQueryError
from hansard_store.ingest.derived_rows import Usage
from hansard_store.runs.status import TokenSums
from hansard_store.runs.usage import USAGE_GROUPS, UsageRow, list_usage, run_usage
from tests.store.maker import NOW, SECOND, StoreMaker, model_step
from tests.store.plans import QueryPlans

DAY_S = 86_400


def spend(
    store: StoreMaker,
    run: str,
    *,
    day: int,
    model: str,
    usage: Usage,
    agent: str | None = None,
    conversation: str | None = None,
) -> None:
    made = model_step(usage, model=model, agent_name=agent, conversation_id=conversation)
    store.span(f"{run} {model}", run=run, start_s=-day * DAY_S, projection=made)


@pytest.fixture
def spent(store: StoreMaker) -> StoreMaker:
    spend(
        store, "a", day=0, model="big", usage=Usage(100, 10, cost_usd_nano=500), agent="x",
        conversation="c1",
    )  # fmt: skip
    spend(store, "a", day=0, model="small", usage=Usage(7, 1, cost_usd_nano=2))
    spend(store, "b", day=1, model="small", usage=Usage(3, 1), agent="x")
    spend(store, "c", day=1, model="own", usage=Usage(), conversation="c2")
    return store


def rows(store: StoreMaker, by: str) -> dict[str | None, UsageRow]:
    return {row.key: row for row in list_usage(store.db, by)}


def test_usage_by_day_is_newest_first(spent: StoreMaker) -> None:
    days = list_usage(spent.db, "day")

    assert [(row.runs, row.model_calls, row.cost_usd_nano) for row in days] == [
        (1, 2, 502),
        (2, 2, None),
    ]
    assert days[0].key is not None
    assert days[1].key is not None
    assert days[0].key > days[1].key
    assert days[1].tokens == TokenSums(input=3, output=1)


def test_usage_by_model_tells_unknown_from_zero(spent: StoreMaker) -> None:
    models = rows(spent, "model")

    assert list(models) == ["big", "small", "own"]
    assert models["small"] == UsageRow("small", 2, 2, TokenSums(input=10, output=2), 2)
    assert models["own"] == UsageRow("own", 1, 1, None, None)


def test_usage_by_agent_and_conversation_shows_what_names_none(spent: StoreMaker) -> None:
    agents, conversations = rows(spent, "agent"), rows(spent, "conversation")

    assert agents["x"].runs == 2
    assert agents["x"].tokens == TokenSums(input=110, output=12)
    assert agents[None].runs == 1
    assert {key: row.runs for key, row in conversations.items()} == {"c1": 1, "c2": 1, None: 1}


@pytest.mark.parametrize("by", USAGE_GROUPS)
def test_every_grouping_has_the_same_sum(spent: StoreMaker, by: str) -> None:
    found = list_usage(spent.db, by)

    assert sum(row.tokens.total for row in found if row.tokens) == 122
    assert sum(row.model_calls for row in found) == 4


@pytest.mark.parametrize("by", USAGE_GROUPS)
def test_a_window_holds_the_runs_that_started_in_it(spent: StoreMaker, by: str) -> None:
    since_ns = NOW - 7200 * SECOND

    assert sum(row.model_calls for row in list_usage(spent.db, by, since_ns=since_ns)) == 2
    assert sum(row.model_calls for row in list_usage(spent.db, by, until_ns=since_ns)) == 2


def test_usage_of_one_run_is_by_model(spent: StoreMaker) -> None:
    assert [(row.key, row.model_calls) for row in run_usage(spent.db, 1)] == [
        ("big", 1),
        ("small", 1),
    ]


def test_an_unknown_grouping_is_refused(store: StoreMaker) -> None:
    known = "known are day, model, agent, user, service, tag, conversation"
    with pytest.raises(InvalidQueryError, match=known):
        list_usage(store.db, "week")


def test_no_usage_scans_a_table(spent: StoreMaker, plans: QueryPlans) -> None:
    with plans.watch(spent.db):
        for by in USAGE_GROUPS:
            list_usage(spent.db, by, since_ns=1)
        run_usage(spent.db, 1)

    assert plans.scans() == []
